"""Keys that a container printed, taken out before anything is kept or shown.

In open mode the agent has the key, and in any mode a key may lie in a file it reads. What it prints
on purpose in another spelling is beyond this: the rule is for accidents.
"""

from __future__ import annotations

from collections.abc import Iterable

MARK = "[a key was here]"
SHORTEST = 8  # a dummy of a few letters would blank ordinary words


class Hiding:
    """Takes keys out of texts, and out of one stream of bytes however it is cut.

    Args:
        keys: what must not be kept; those of fewer than SHORTEST characters are left alone.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        # the longest first: one key may begin another
        chosen = sorted({key for key in keys if len(key) >= SHORTEST}, key=len, reverse=True)
        self._keys = [key.encode() for key in chosen]
        self._held = b""
        self.found = False

    def stream(self) -> Hiding:
        """The same keys for another stream; what it finds is noted there."""
        return Hiding(key.decode() for key in self._keys)

    def feed(self, data: bytes) -> bytes:
        """What may be passed on; the end of it waits where it may be the beginning of a key."""
        if not self._keys:
            return data
        whole = self._without(self._held + data)
        cut = len(whole) - self._begun(whole)
        self._held = whole[cut:]
        return whole[:cut]

    def rest(self) -> bytes:
        """What still waited when the stream ended."""
        rest, self._held = self._held, b""
        return rest

    def text(self, text: str) -> str:
        found = self._without(text.encode("utf-8", "surrogatepass"))
        return found.decode("utf-8", "surrogatepass")

    def _without(self, data: bytes) -> bytes:
        for key in self._keys:
            if key in data:
                data = data.replace(key, MARK.encode())
                self.found = True
        return data

    def _begun(self, data: bytes) -> int:
        """How many bytes at the end may be the beginning of a key."""
        longest = 0
        for key in self._keys:
            start = max(len(data) - len(key) + 1, 0)
            while (start := data.find(key[:1], start)) >= 0:
                if key.startswith(data[start:]):
                    longest = max(longest, len(data) - start)
                    break
                start += 1
        return longest
