"""The host's files and its repository."""

from __future__ import annotations

import os
import subprocess

from .box import Box, said


def host_secrets(box: Box) -> list[str]:
    reached = [f"{path} is there" for path in box.order["private"] if os.path.lexists(path)]
    reached += [f"the host's file was found as {path}" for path in box.canaries]
    for root in ("/proc/1/root", f"/proc/{os.getppid()}/root"):
        if any(os.path.exists(root + path) for path in box.order["private"]):
            reached.append(f"the host's files are below {root}")
    ssh = os.path.expanduser("~/.ssh")
    if os.path.isdir(ssh) and os.listdir(ssh):
        reached.append(f"{ssh} holds {', '.join(sorted(os.listdir(ssh))[:3])}")
    names = [line.partition(":")[0] for line in open("/etc/passwd")]
    if box.order["account"] in names:
        reached.append(f"/etc/passwd names the host's account {box.order['account']}")
    return reached


def repository(box: Box) -> list[str]:
    where = box.order["repository"]
    reached = [f"by path: {path}" for path in (where, where + "/.git") if os.path.lexists(path)]
    for line in open("/proc/self/mountinfo"):
        root, target = line.split()[3:5]
        if root != "/" and (f"{root}/" in f"{where}/" or root.startswith(where)):
            reached.append(f"by mount: {root} at {target}")
    reached += [f"by inode: {path}" for path in box.inodes]
    return reached


def push(box: Box) -> list[str]:
    work = box.order["work"]
    settings = "/tmp/boundary.gitconfig"
    with open(settings, "w") as file:
        file.write("[safe]\n\tdirectory = *\n[protocol]\n\tallow = always\n")
    env = dict(os.environ, GIT_CONFIG_GLOBAL=settings, GIT_TERMINAL_PROMPT="0")
    where = box.order["repository"]
    places = [where, "file://" + where]
    places += [f"http://{address}:{box.order['port']}/host.git" for address in box.order["hosts"]]
    reached = []
    for place in places:
        try:
            done = said("git", "-C", work, "push", place, "HEAD:refs/heads/pushed", env=env)
        except subprocess.TimeoutExpired:
            continue
        if done.returncode == 0:
            reached.append(f"git push to {place}")
    return reached


def clone(box: Box) -> list[str]:
    work = box.order["work"]

    def git(*words: str) -> list[str]:
        done = said("git", "-c", "safe.directory=*", "-C", work, *words)
        return done.stdout.split("\n") if done.returncode == 0 else []

    reached = [f"it has the remote {name}" for name in git("remote") if name]
    refs = [name for name in git("for-each-ref", "--format=%(refname)") if name]
    if refs != ["refs/heads/" + box.order["branch"]]:
        reached.append(f"it holds the references {', '.join(refs[:4]) or 'none'}")
    for name in git("config", "--local", "--name-only", "--list"):
        if name.startswith(("remote.", "include", "credential.", "filter.", "url.", "alias.")):
            reached.append(f"its configuration sets {name}")
    hooks = os.path.join(work, ".git", "hooks")
    reached += [
        f"it has the hook {name}"
        for name in (os.listdir(hooks) if os.path.isdir(hooks) else ())
        if not name.endswith(".sample")
    ]
    if os.path.exists(os.path.join(work, ".git/objects/info/alternates")):
        reached.append("it borrows objects from elsewhere")
    return reached
