"""Pages of assistants: the gate, what they are and what they remember."""
