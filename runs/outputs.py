"""Where a person wants a copy of something: a file, opened for before the run and written after it.

The directory is held by its descriptor from before the agent starts, and the file is replaced as a
whole. So an agent that owns the place can move it about, put a link or a pipe there, and neither
sends the copy elsewhere nor makes anybody wait.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from django.conf import settings

from runs.mounts import check_not_in_state
from runs.paths import expanded
from runs.refusal import Refusal


class Output:
    """Args:
    flag: the flag it came from, for messages.
    text: the path as it was given.

    Raises Refusal: no such directory, one of our own, or something that is no regular file
    stands there.
    """

    def __init__(self, flag: str, text: str) -> None:
        self.flag, self.text = flag, text
        path = expanded(text, what=flag)
        if not path.name:
            raise Refusal(f"{flag} {text} is no file's name")
        self.path = Path(os.path.realpath(path.parent)) / path.name
        check_not_in_state(f"{flag} {text}", self.path, settings.SANDUK_HOME)
        self._name = path.name
        try:
            self._directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise Refusal(f"{flag} {text}: there is no directory {path.parent}") from None
        except OSError as exc:
            raise Refusal(f"{flag} {text}: {path.parent}: {exc.strerror}") from None
        if not self._is_free():
            raise Refusal(f"{flag} {text} is no regular file; it is not written through or over")
        if not os.access(self._name if self._exists() else ".", os.W_OK, dir_fd=self._directory):
            raise Refusal(f"{flag} {text} may not be written by this account")

    def write(self, content: bytes) -> None:
        """Replace the file, 0600. Raises OSError; nothing is half written."""
        if not self._is_free():
            raise OSError("what stands there now is no regular file")
        draft = f".{self._name[:100]}.{secrets.token_hex(4)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o600, dir_fd=self._directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.rename(draft, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        except BaseException:
            os.unlink(draft, dir_fd=self._directory)
            raise

    def _exists(self) -> bool:
        try:
            os.stat(self._name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _is_free(self) -> bool:
        """Whether nothing but a regular file stands there."""
        try:
            facts = os.stat(self._name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return stat.S_ISREG(facts.st_mode)
