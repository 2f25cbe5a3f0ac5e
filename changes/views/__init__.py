"""The pages of changes."""
