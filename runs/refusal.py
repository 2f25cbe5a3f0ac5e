"""The one error that means: nothing was started, and this is what to change."""


class Refusal(Exception):
    """Bad input or a missing precondition. The text is one line that names the fix."""
