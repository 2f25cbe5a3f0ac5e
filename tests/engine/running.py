"""The real `sanduk` command in tests: each test has an installation of its own."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import recipes
from tests.engine.engine_fixtures import require_docker, require_rootful_podman, told
from tests.migrated import lay_out

SANDUK = Path(sys.executable).with_name("sanduk")
SCRIPTED = str(Path(__file__).parents[1] / "fake_agent" / "sanduk_scripted" / "scripted.json")
AGENTS = ("pi", "codex", "claude", "opencode", "gemini", "hermes")  # those that can be fetched
DONE = """echo '{"type": "result", "ok": true, "text": "done"}'; exit"""
READY = """echo '{"type": "text", "text": "ready"}'"""
WAIT = f"{READY}; sleep 300"
DEAF = f"""trap "" TERM; {READY}; while :; do sleep 0.2; done"""


@dataclass(frozen=True)
class Done:
    """How a command ended. `err` of a quiet run holds what went wrong and nothing else."""

    code: int
    out: str
    err: str
    took_s: float

    @property
    def line(self) -> str:
        """The one line a quiet command said on stderr."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self
        return lines[0]


@dataclass
class Going:
    """A command that still runs, its output in files."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    since: float = field(default_factory=time.monotonic)

    @property
    def pid(self) -> int:
        return self.process.pid

    def until(self, word: str, *, limit_s: float = 30) -> Going:
        """Wait until it has printed `word` on either stream."""
        eventually(lambda: word in self.out.read_text() + self.err.read_text(), limit_s)
        return self

    def signal(self, number: signal.Signals) -> Going:
        self.process.send_signal(number)
        return self

    def end(self, *, limit_s: float = 60) -> Done:
        since = time.monotonic()
        code = self.process.wait(limit_s)
        return Done(code, self.out.read_text(), self.err.read_text(), time.monotonic() - since)


def eventually(is_so: Callable[[], object], limit_s: float = 10) -> None:
    """Wait until something holds; fail when it does not within `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline, f"not within {limit_s} s"
        time.sleep(0.03)


@dataclass
class Installation:
    """A state directory, a place for work, and the engine that is used."""

    engine: str
    ground: Path
    environment: dict[str, str]
    as_user: tuple[str, ...] = ()  # a command that becomes another account
    cli: str = ""
    started: list[Going] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cli = self.cli or self.engine

    @property
    def home(self) -> Path:
        return Path(self.environment["SANDUK_HOME"])

    @property
    def work(self) -> Path:
        return self.ground / "work"

    # -- commands ---------------------------------------------------------------------------
    def start(self, *words: str, stdin: bytes | None = None, **env: str) -> Going:
        number = len(self.started)
        out, err = (self.ground / f"{name}-{number}" for name in ("out", "err"))
        given = self.ground / f"in-{number}"
        given.write_bytes(stdin or b"")
        with given.open("rb") as source, out.open("wb") as to_out, err.open("wb") as to_err:
            process = subprocess.Popen(
                [*self.as_user, str(SANDUK), *words], stdin=source, stdout=to_out, stderr=to_err,
                env={**self.environment, **env}, cwd=self.ground, start_new_session=True,
            )  # fmt: skip
        self.started.append(Going(process, out, err))
        return self.started[-1]

    def sanduk(
        self, *words: str, stdin: bytes | None = None, limit_s: float = 90, **env: str
    ) -> Done:
        return self.start(*words, stdin=stdin, **env).end(limit_s=limit_s)

    def words(self, script: str, *flags: str, agent: str = "scripted-offline") -> list[str]:
        """`run` of the scripted agent on the rehearsal model. `--provider` may be given again."""
        named = [*flags]
        named += [] if "--provider" in named else ["--provider", "rehearsal"]
        named += ["--skip-key-check"]  # no test asks a provider outside about a made-up key
        named += [] if "--workdir" in named else ["--workdir", str(self.work)]
        return [
            "run", "--runtime", self.engine, "--agent", agent, "--no-report-instruction",
            *named, "--", script,
        ]  # fmt: skip

    def run(self, script: str, *flags: str, agent: str = "scripted-offline", **env: str) -> Done:
        """A quiet run: what it says on stderr is trouble."""
        return self.sanduk(*self.words(script, "-q", *flags, agent=agent), **env)

    def begin(
        self,
        script: str,
        *flags: str,
        agent: str = "scripted-offline",
        word: str = "ready",
        **env: str,
    ) -> Going:
        """Start a run and come back when its script has said `ready`."""
        going = self.start(*self.words(script, *flags, agent=agent), **env)
        return going.until(word)

    def shadow(self, name: str, script: str) -> dict[str, str]:
        """Put a shell script before a command on PATH; `$REAL` in it is the real one."""
        folder = self.ground / "bin"
        folder.mkdir(exist_ok=True)
        file = folder / name
        file.write_text(f"#!/bin/sh\nREAL={shutil.which(name)}\n{script}\n")
        file.chmod(0o755)
        return {"PATH": f"{folder}:{self.environment['PATH']}"}

    # -- what is there ------------------------------------------------------------------------
    def rows(self) -> list[dict[str, Any]]:
        """The runs, oldest first, from the file itself: a command would reconcile them first."""
        with contextlib.closing(sqlite3.connect(self.home / "sanduk.sqlite3")) as database:
            database.row_factory = sqlite3.Row
            found = database.execute("SELECT * FROM runs_run ORDER BY id").fetchall()
            return [dict(row) for row in found]

    @property
    def row(self) -> dict[str, Any]:
        """The newest run."""
        return self.rows()[-1]

    def show(self, uid: str = "") -> dict[str, Any]:
        done = self.sanduk("show", uid or self.row["uid"], "--json")
        assert done.code == 0, done
        found: dict[str, Any] = json.loads(done.out)
        return found

    def events(self) -> list[str]:
        return [f"{e['kind']}: {e['text']}" for e in self.show()["trace"]]

    def engine_says(self, *words: str) -> str:
        done = told(self.cli, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def containers(self, role: str = "", uid: str = "", *, probes: bool = False) -> list[str]:
        """Ids of this installation's containers, from the engine; those of no run only if asked."""
        mark = self.home / "install-id"
        if not mark.exists():
            return []
        words = ["ps", "-aq", "--no-trunc", "--filter", f"label=sanduk.install={mark.read_text()}"]
        words += [] if probes else ["--filter", "label=sanduk.run"]
        words += ["--filter", f"label=sanduk.role={role}"] if role else []
        words += ["--filter", f"label=sanduk.run={uid}"] if uid else []
        return self.engine_says(*words).split()

    def networks(self) -> list[str]:
        mark = self.home / "install-id"
        if not mark.exists():
            return []
        label = f"label=sanduk.install={mark.read_text()}"
        return self.engine_says("network", "ls", "-q", "--filter", label).split()

    def boxes(self) -> list[Path]:
        """Private directories of this installation's runs."""
        own = self.runtime_place()
        places = (own, self.ground / "run" / "sanduk")
        found = [place / row["uid"] for place in places for row in self.rows()]
        return [box for box in found if box.exists()]

    def runtime_place(self) -> Path:
        """Where this installation's runs keep their sockets."""
        uid = os.geteuid()
        base = Path(self.environment["TMPDIR"]) / f"sanduk-{uid}"
        return base if uid else Path("/run/sanduk")

    def processes(self) -> list[str]:
        """Processes that carry this state directory in their environment, or a run's id."""
        uids = [row["uid"].encode() for row in self.rows()]
        mark = f"SANDUK_HOME={self.home}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command, environment = (
                    (folder / name).read_bytes() for name in ("cmdline", "environ")
                )
            except OSError:
                continue
            if mark in environment.split(b"\0") or any(uid in command for uid in uids):
                found.append(f"{folder.name}: {command.replace(bytes(1), b' ').decode()[:200]}")
        return found

    def undertaker(self) -> int:
        """The pid of the newest run's undertaker."""
        uid = self.row["uid"]
        (found,) = [line for line in self.processes() if "read word" in line and uid in line]
        return int(found.partition(":")[0])

    def left(self, *, kept: int = 0) -> list[object]:
        """Whatever of ours is still on this machine."""
        containers: list[object] = [*self.containers(probes=True)]
        if len(containers) == kept:
            containers = []
        own = self.runtime_place()
        scratch = [each for each in Path(self.environment["TMPDIR"]).iterdir() if each != own]
        return [*containers, *self.networks(), *self.boxes(), *self.processes(), *scratch]

    def nothing_left(self, *, kept: int = 0, within_s: float = 1) -> None:
        deadline = time.monotonic() + within_s
        while (left := self.left(kept=kept)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not left, left


def image_tags(*names: str, cli: str = "docker") -> list[str]:
    """What these recipes' images are called there: the id of the base image it has counts too."""
    tags = []
    for name in names:
        recipe = recipes.load(name)
        base = told(cli, "image", "inspect", "--format", "{{.Id}}", recipe.base)
        found = base.stdout.strip().removeprefix("sha256:") if base.returncode == 0 else None
        tags.append(recipes.image_tag(recipes.render(recipe), {}, found))
    return tags


@pytest.fixture(scope="session")
def agent_images(docker_ready: Path) -> None:
    """The agents' images on Docker, built through the command where they are missing."""
    for agent in AGENTS:
        build_missing(agent)


def build_missing(agent: str) -> None:
    """Build an agent's image on Docker through the command, unless it is there."""
    (tag,) = image_tags(agent)
    if told("docker", "image", "inspect", tag).returncode != 0:
        with installed("docker") as made:
            done = made.sanduk("build", "--agent", agent, limit_s=280)
            assert done.code == 0, done


def give_images(cli: str, *names: str) -> None:
    """Copy images of ours from Docker: building them again would take minutes."""
    for tag, called in zip(image_tags(*names), image_tags(*names, cli=cli), strict=True):
        if told(cli, "image", "inspect", called).returncode == 0:
            continue
        if told("docker", "image", "inspect", tag).returncode != 0:
            pytest.skip(f"Docker has no image {tag} to copy")
        with subprocess.Popen(["docker", "save", tag], stdout=subprocess.PIPE) as save:
            loaded = told(cli, "load", "--quiet", stdin=save.stdout)
        assert (save.returncode, loaded.returncode) == (0, 0), loaded.stderr
        if called != tag:  # that store has another base image, or none
            assert told(cli, "tag", tag, called).returncode == 0


def environment_of(ground: Path, home: Path) -> dict[str, str]:
    """What the command gets to see of this machine: no key, no setting of the developer's."""
    for name in ("tmp", "user"):
        (ground / name).mkdir()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "DOCKER_HOST", "LANG") or name.lower().endswith("_proxy")
    }
    return {
        **kept,
        "HOME": str(ground / "user"),
        "TMPDIR": str(ground / "tmp"),
        "SANDUK_HOME": str(home),
        "SANDUK_MIN_FREE_MB": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@contextlib.contextmanager
def installed(engine: str, *, like: Path | None = None) -> Iterator[Installation]:
    """An installation on a short path, and the end of all it left.

    `like` is a state directory that has already asked whether the engine is usable.
    """
    with tempfile.TemporaryDirectory(prefix="sk-", ignore_cleanup_errors=True) as folder:
        ground = Path(folder)
        ground.chmod(0o755)
        made = Installation(engine, ground, environment_of(ground, ground / "home"))
        if like is not None:
            made.home.mkdir(mode=0o700)
            shutil.copytree(like / "engines", made.home / "engines")
            lay_out(made.home)
        try:
            yield made
        finally:
            clear(made)


def clear(made: Installation) -> None:
    """Remove by label what a failed test left, and end what still runs."""
    for going in made.started:
        going.process.kill()
        going.process.wait()
    for line in made.processes() if (made.home / "sanduk.sqlite3").exists() else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(line.partition(":")[0]), signal.SIGKILL)
    for _ in range(2):  # podman removes an agent before the link it lives in
        if found := made.containers(probes=True):
            told(made.cli, "rm", "--force", "--volumes", *found)
    for network in made.networks():
        told(made.cli, "network", "rm", network)


@pytest.fixture(scope="session")
def docker_ready() -> Path:
    """Docker with the images of the scripted agent and the link, built once if need be.

    Returns a state directory that knows Docker to be usable: the others need not ask again.
    """
    require_docker()
    return _known("docker")


@pytest.fixture(scope="session")
def podman_ready(docker_ready: Path) -> Path:
    require_rootful_podman()
    give_images("podman", "link", SCRIPTED)
    return _known("podman")


def _known(engine: str) -> Path:
    with installed(engine) as made:
        done = made.sanduk(*made.words(DONE), limit_s=280)
        assert done.code == 0, done
        told_once = Path(tempfile.mkdtemp(prefix="sk-"))
        atexit.register(shutil.rmtree, told_once, ignore_errors=True)
        return Path(shutil.copytree(made.home / "engines", told_once / "engines")).parent


@pytest.fixture
def docker(docker_ready: Path) -> Iterator[Installation]:
    with installed("docker", like=docker_ready) as made:
        yield made


@pytest.fixture(params=["docker", pytest.param("podman", marks=pytest.mark.podman)])
def installation(request: pytest.FixtureRequest) -> Iterator[Installation]:
    """One on each engine that works here."""
    like = request.getfixturevalue(f"{request.param}_ready")
    with installed(request.param, like=like) as made:
        yield made


@pytest.fixture
def needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("it changes owners, accounts or mounts: it needs root")
