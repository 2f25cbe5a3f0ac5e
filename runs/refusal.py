"""The one error that means: nothing was started, and this is what to change."""


class Refusal(Exception):
    """Bad input or a missing precondition. The text is one line that names the fix."""


class HostRefusal(Refusal):
    """What was asked for is all right; this host cannot do it now: no engine, no room, no key."""
