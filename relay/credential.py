"""The provider's key, held so that it cannot be shown by accident."""

from __future__ import annotations

from dataclasses import dataclass, field


class InvalidCredential(ValueError):
    """A key that cannot be a header value. The text never holds the key."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A provider's key. Its repr and its errors hide it.

    Args:
        value: the key; visible ASCII only, since it becomes a header value.
        source: where it came from, for messages: `ANTHROPIC_API_KEY`.
    """

    value: str = field(repr=False)
    source: str = ""

    def __post_init__(self) -> None:
        name = self.source or "the key"
        if not self.value:
            raise InvalidCredential(f"{name} is empty")
        if "\n" in self.value or "\r" in self.value:
            raise InvalidCredential(f"{name} holds a line break; store it without one")
        if not all(0x21 <= ord(character) <= 0x7E for character in self.value):
            raise InvalidCredential(
                f"{name} holds a space, a control character or a letter outside ASCII"
            )
