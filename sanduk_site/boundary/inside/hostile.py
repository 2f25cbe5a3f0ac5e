"""Breaking all that can be broken, and leaving a tree full of traps."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from typing import Any

from .box import Box


def hostile(box: Box) -> list[str]:
    """Break all that can be broken, leave programs behind, and a tree that springs traps."""
    order, work = box.order, box.order["work"]
    reached = []
    for place in [
        *order["private"],
        order["repository"],
        os.path.join(order["repository"], ".git"),
    ]:
        mark = os.path.join(place, order["mark"])
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_WRONLY, 0o644))
            reached.append(f"a file could be written in {place}")
        except OSError:
            pass
    for name in ("tracked.txt", ".git"):  # a repository that was made for this alone
        target = os.path.join(order["repository"], name)
        if os.path.isdir(target):
            shutil.rmtree(target, ignore_errors=True)
        elif os.path.lexists(target):
            os.unlink(target)
    with open(os.path.join(work, "filling"), "wb") as file:
        file.write(os.urandom(1 << 20) * 10)
    for _ in range(2):
        subprocess.Popen(
            ["sh", "-c", f"trap '' TERM HUP INT; : {order['mark']}; while :; do sleep 1; done"],
            start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
    traps(order, work)
    box.extra["hostile"] = {"as": getpass.getuser()}
    return reached


def traps(order: dict[str, Any], work: str) -> None:
    def put(path: str, text: str, mode: int = 0o644) -> None:
        path = os.path.join(work, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)

    sprung = f"sh -c 'echo sprung > {order['sprung']}'"
    put(
        ".git/config",
        f"""[core]
\trepositoryformatversion = 0
\tfsmonitor = {sprung}
\thooksPath = {work}/hooks
[filter "trap"]
\tclean = {sprung}
\tsmudge = {sprung}
\tprocess = {sprung}
\trequired = true
[diff "trap"]
\tcommand = {sprung}
\ttextconv = {sprung}
[diff]
\texternal = {sprung}
""",
    )
    put("hooks/post-index-change", f"#!/bin/sh\n{sprung}\n", 0o755)
    put(".gitattributes", "* filter=trap diff=trap\n")
    put("tracked.txt", "changed in the box\n")
    put("sub/.git/HEAD", "ref: refs/heads/main\n")
    put("sub/.git/config", f"[core]\n\tfsmonitor = {sprung}\n")
    put(".GIT/config", "a git directory on another system\n")
    put("with\nline feed", "a name of two lines\n")
    put("bidi-\u202etxt.exe", "a name that reads backwards\n")
    put("set-uid", "#!/bin/sh\nid\n", 0o4755)
    for name, target in (
        ("link-out", order["secret"]),
        ("link-root", "/"),
        (".sanduk/artifacts/leak.txt", order["secret"]),
        (".sanduk/artifacts/away", "/"),
    ):
        place = os.path.join(work, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(target, place)
    os.mkfifo(os.path.join(work, "pipe"))
    os.mkfifo(os.path.join(work, ".sanduk/artifacts/pipe.log"))
    put(".sanduk/artifacts/good.txt", "a picture of words\n")
    put(".sanduk/artifacts/page.html", "<script>alert(1)</script>\n")
    put(".sanduk/artifacts/program.exe", "MZ\n", 0o755)
    put(".sanduk/artifacts/large.log", "x" * (6 << 20))
