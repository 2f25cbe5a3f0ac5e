"""The one file a run leaves for people: REPORT.md at the root of its workspace."""

from __future__ import annotations

import codecs
import hashlib
import os
from dataclasses import dataclass, replace

from runs import tree
from runs.agents.base import REPORT_NAME
from runs.hidden import Hiding
from runs.models import Run

INSTRUCTION = (
    "When the work is done, write what you found to ./REPORT.md in the working directory. "
    "It is the only text of yours that is kept: whatever you print is thrown away with the "
    "container."
)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found where the report should be. `note` says in words what is unusual."""

    state: Run.Report
    text: str = ""
    sha256: str = ""  # of the whole file as read; of the kept part when it was cut
    size: int | None = None
    note: str = ""


def hidden(found: Report, hiding: Hiding) -> Report:
    """The report without keys. The file is as it was until the next run removes it.

    The digest stays that of the file, so that it is known as collected: it is set aside for
    nobody, and no part of a memory.
    """
    text = hiding.text(found.text)
    if text == found.text:
        return found
    note = "; ".join(part for part in (found.note, "altered: a key was taken out") if part)
    return replace(found, text=text, note=note)


def with_instruction(task: str) -> str:
    return f"{task.rstrip()}\n\n{INSTRUCTION}\n"


def set_aside(workspace: str, uid: str, *, known: frozenset[str] = frozenset()) -> str:
    """Move what is called REPORT.md out of the agent's way, and return its new name, or "".

    A person's own file stays beside the new report, under a name of its own. Only a report that was
    collected whole already (its sha256 is in `known`) is removed.
    """
    name = f"REPORT.before-{uid}.md"
    with tree.opened(workspace) as root:
        try:
            content = tree.read_file(root, REPORT_NAME, limit=64 * 2**20)
            if not content.cut and hashlib.sha256(content.data).hexdigest() in known:
                os.unlink(REPORT_NAME, dir_fd=root)
                return ""
        except (tree.NotARegularFile, PermissionError):
            pass  # a directory, a link, a pipe: it is moved as it is
        except FileNotFoundError:
            return ""
        os.rename(REPORT_NAME, name, src_dir_fd=root, dst_dir_fd=root)
    return name


def put_back(workspace: str, name: str) -> bool:
    """Give a file that was set aside its name back, unless the agent wrote a report."""
    with tree.opened(workspace) as root:
        try:
            os.stat(REPORT_NAME, dir_fd=root, follow_symlinks=False)
            return False
        except FileNotFoundError:
            pass
        try:
            os.rename(name, REPORT_NAME, src_dir_fd=root, dst_dir_fd=root)
        except FileNotFoundError:
            return False
    return True


def collect(workspace: str, *, limit: int) -> Report:
    """Read REPORT.md without following anything, at most `limit` bytes of it."""
    try:
        with tree.opened(workspace) as root:
            content = tree.read_file(root, REPORT_NAME, limit=limit)
    except FileNotFoundError:
        return Report(Run.Report.MISSING)
    except tree.NotARegularFile:
        return Report(Run.Report.REFUSED, note=f"{REPORT_NAME} is no regular file: not read")
    except PermissionError:
        return Report(Run.Report.REFUSED, note=f"{REPORT_NAME} may not be read by this account")
    except OSError as exc:  # the directory itself was replaced, or its disk fails
        return Report(Run.Report.REFUSED, note=f"{REPORT_NAME} cannot be read: {exc.strerror}")
    digest = hashlib.sha256(content.data).hexdigest()
    notes = []
    text, readable = _decoded(content)
    if not readable:
        notes.append("it is not UTF-8: unreadable bytes are shown as �")
    if content.cut:
        notes.append(f"cut: the first {limit:,} of {content.size:,} bytes")
        text += f"\n\n[cut here by sanduk: the first {limit:,} of {content.size:,} bytes]\n"
    # a NUL is legal UTF-8, but no database column takes it
    text = text.replace("\x00", "␀")
    state = Run.Report.CUT if content.cut else Run.Report.SAVED
    return Report(state, text, digest, content.size, "; ".join(notes))


def _decoded(content: tree.Content) -> tuple[str, bool]:
    """The text, and whether it is UTF-8; a character that the cut runs through is left out."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return decoder.decode(content.data, final=not content.cut), True
    except UnicodeDecodeError:
        return content.data.decode("utf-8", errors="replace"), False
