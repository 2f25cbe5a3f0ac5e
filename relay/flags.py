"""What the flags of both command lines have in common: numbers, and names that are gone."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

INSTEAD_OF_ALLOW_PATH = "--allow-path adds a path and keeps the provider's own"


def whole(low: int = 1, high: int = 10**15) -> Callable[[str], int]:
    """A reader of whole numbers from `low` to `high`, digits only.

    It raises argparse.ArgumentTypeError, which argparse puts behind the flag's name.
    """

    def read(text: str) -> int:
        plain = text.strip()
        value = int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 20 else -1
        if not low <= value <= high:
            most = f" to {high}" if high < 10**15 else ""
            raise argparse.ArgumentTypeError(
                f"it takes a whole number from {low}{most}, in digits, not {text!r}"
            )
        return value

    return read


class Replaced(argparse.Action):
    """A flag of the first program that has become something else; its `const` says what."""

    def __call__(self, parser: Any, *_: Any) -> None:
        parser.error(f"{self.option_strings[0]} is gone: {self.const}")
