"""A repository task, its patch and the decision about it. Not built yet."""
