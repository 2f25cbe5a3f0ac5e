"""How moments are written, in each language that the admin speaks."""
