"""The suite: three boxes and a neighbour, and what is judged from this side."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from runs import images, keys
from runs.agents import get_agent
from runs.console import Console
from runs.engines import get_engine
from runs.engines.base import LABEL_INSTALL, Engine, EngineError, EngineFacts, ImageFacts
from runs.installation import install_id
from runs.models import Run
from runs.order import Order
from runs.plan import Plan, make_plan
from runs.refusal import Refusal
from runs.visible import visible
from sanduk_site.boundary import boxes, content, ground, probes
from sanduk_site.boundary.boxes import KEY_VARIABLE, Box, Found, NoAnswer
from sanduk_site.boundary.probes import Finding

USUAL_AGENTS = ("pi", "claude", "codex", "opencode", "gemini", "hermes")
IN_MAIN = (
    "host_secrets", "repository", "push", "exfiltration", "names", "engine_socket", "privileges",
    "seccomp", "devices", "limits", "clone", "agent", "key", "base_url", "allowed_call",
    "streaming", "gateway", "neighbour", "browser", "browser_reach",
)  # fmt: skip
IN_DOOR = ("door_refuses", "door_allows")
OF_HOSTILE = ("destroyed", "record", "patch", "artifact")
OWN_KERNELS = ("runsc", "kata", "krun")
GONE_S = 15.0
LISTENER = """
import json, os, socket, sys, threading
word, table = sys.argv[1], "/proc/net/fib_trie"
lines = open(table).read().splitlines() if os.path.exists(table) else []
there = sorted({a.split("|--")[1].strip() for a, b in zip(lines, lines[1:])
                if "|--" in a and "/32 host LOCAL" in b} | {"127.0.0.1"})
quiet = socket.socket(socket.AF_UNIX)
quiet.bind("\\0" + word)
quiet.listen()
heard = socket.socket()
heard.bind(("0.0.0.0", 0))
heard.listen()
def serve():
    while True:
        other, _ = heard.accept()
        other.recv(4096)
        other.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + word.encode())
        other.close()
threading.Thread(target=serve, daemon=True).start()
print("\\n" + word + json.dumps({"addresses": there, "port": heard.getsockname()[1]}), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True, slots=True)
class Tested:
    """What was probed: an engine, and an agent's image on it."""

    engine: Engine
    name: str  # as it was asked for: an engine of somebody's own is not found by its name
    facts: EngineFacts
    agent: str
    image: ImageFacts
    oci_runtime: str = ""

    @property
    def has_own_kernel(self) -> bool:
        name = self.oci_runtime.rpartition("/")[2]
        return any(name.startswith(each) for each in OWN_KERNELS)


@dataclass
class Suite:
    """Args:
    tested: see there.
    tell: is given each finding as it is made.
    progress: is given a line for each box.
    only: the probes to try; all of them when empty.
    """

    tested: Tested
    tell: Callable[[Finding], None]
    progress: Callable[[str], None]
    only: frozenset[str] = frozenset()
    findings: list[Finding] = field(default_factory=list)
    certificate: dict[str, Any] = field(default_factory=dict)
    unmade: list[str] = field(default_factory=list)  # why boxes did not come to be

    def run(self) -> list[Finding]:
        """Try everything, in the order of `probes.PROBES` as far as boxes allow."""
        owner = (1000, 1000) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
        with ground.laid(owner) as here:
            for tried, box in (
                ((*IN_MAIN, "browser_gone"), self._main),
                (IN_DOOR, self._door),
                (OF_HOSTILE, self._hostile),
            ):
                if not self.only or self.only & set(tried):
                    box(here)
        order = {probe.name: number for number, probe in enumerate(probes.PROBES)}
        self.findings.sort(key=lambda finding: order[finding.name])
        return self.findings

    def _add(self, finding: Finding) -> None:
        if not self.only or finding.name in self.only:
            self.findings.append(finding)
            self.tell(finding)

    def _wants(self, name: str) -> bool:
        wanted = {"browser"} if "browser_gone" in self.only else set()
        return not self.only or name in self.only | wanted

    def _judge(self, name: str, found: Found, more: list[str] | None = None) -> None:
        """What the box says got through, and what was seen from here."""
        said = found.get(name, {"untried": "the box did not say"})
        reached = [visible(str(each), limit=200) for each in said.get("reached", ())]
        untried = visible(said.get("untried", ""), limit=300)
        self._add(probes.judged(name, [*reached, *(more or ())], untried))

    # -- the box where most is tried ------------------------------------------------------------
    def _main(self, here: ground.Ground) -> None:
        self.progress("a sealed box, with a neighbour beside it")
        with self._neighbour(here) as neighbour:
            order = {
                **here.order(settings.SANDUK_HOME),
                "probes": [name for name in IN_MAIN if self._wants(name)],
                "neighbour": neighbour,
                "agent": list(self.tested.image.entrypoint),
                "own_kernel": self.tested.has_own_kernel,
            }
            found, why = self._asked(here, order, ())
        self.certificate = _newest(here.work).certificate or {}
        if not found:
            for name in (*IN_MAIN, "browser_gone"):
                self._add(probes.not_tried(name, why))
            return
        seen = {
            "exfiltration": [f"{each} arrived on this host" for each in here.visitors[:3]],
            "key": _keys_in(str(found.get("key", {}).get("seen", "")), here.key),
            "allowed_call": _asked_wrongly(here),
        }
        if found["box"].get("whole") is not True:
            doubt = "there are too many files in this image to look at all"
            for name in ("host_secrets", "repository", "engine_socket"):
                found[name] = {**found.get(name, {}), "untried": doubt}
        for name in IN_MAIN:
            self._judge(name, found, seen.get(name))
        untried = found.get("browser", {}).get("untried", "")
        left = _processes(f"boundary-browser-{here.nonce}") if not untried else []
        self._add(probes.judged("browser_gone", left, untried))

    def _asked(
        self,
        here: ground.Ground,
        order: dict[str, Any],
        flags: tuple[str, ...],
        addresses: Sequence[str] = (),
    ) -> tuple[Found, str]:
        """Try an order's probes in a box of their own; nothing, and why, when there was no box."""
        box = self._open(here, here.work, flags, addresses)
        try:
            box.tell(boxes.probing(order))
            return boxes.answer(box, here.nonce), ""
        except NoAnswer as exc:
            return {}, self._no_box(exc)
        except BaseException:
            box.end(hurry=True)
            raise
        finally:
            box.end()

    def _no_box(self, exc: NoAnswer) -> str:
        self.unmade.append(f"no box came to be: {visible(str(exc), limit=300)}")
        return self.unmade[-1]

    def _open(
        self,
        here: ground.Ground,
        work: Path,
        flags: tuple[str, ...] = (),
        addresses: Sequence[str] = (),
    ) -> Box:
        """A box in which nothing runs yet; the egress door may reach `addresses` of this host."""
        admitted = ",".join(f"{each}:{here.port}" for each in addresses if ":" not in each)
        model = ["--provider", "rehearsal"]
        if not addresses:  # the door never leads to where the model is, and that is this host
            model = ["--provider", "openai-compat", "--upstream-key-env", KEY_VARIABLE]
            model += ["--upstream", f"http://127.0.0.1:{here.model_port}", "--skip-key-check"]
        runtime = ("--oci-runtime", self.tested.oci_runtime) if self.tested.oci_runtime else ()
        return boxes.opened(
            work, ("--mode", "sealed", *model, *runtime, *flags), engine=self.tested.name,
            image=self.tested.image.tag or self.tested.image.id,
            env={KEY_VARIABLE: here.key, "SANDUK_EGRESS_ADMIT": admitted},
        )  # fmt: skip

    @contextlib.contextmanager
    def _neighbour(self, here: ground.Ground) -> Iterator[dict[str, Any] | None]:
        """A second box, with something that answers in it; None when there could be none."""
        work = here.place / "neighbour"
        work.mkdir()
        if os.geteuid() == 0:
            os.chown(work, *here.owner)
        word = f"neighbour-{here.nonce}"
        box = self._open(here, work)
        try:
            script = f"cat >/tmp/l.py <<'END-OF-IT'\n{LISTENER}\nEND-OF-IT\n"
            box.tell(f"{script}exec python3 -I /tmp/l.py {word}\n")
            try:
                there = json.loads(box.line_after(word))
            except (NoAnswer, ValueError):
                there = None
            yield {**there, "word": word} if isinstance(there, dict) else None
        finally:
            box.end()

    # -- the box with a door --------------------------------------------------------------------
    def _door(self, here: ground.Ground) -> None:
        self.progress("a sealed box with an egress door")
        named = ground.own_name()
        if named is None:
            why = "/etc/hosts gives this host no name, and the door opens for a name alone"
            for name in IN_DOOR:
                self._add(probes.not_tried(name, why))
            return
        host, addresses = named
        allowed = f"{host}:{here.port}"
        refused = (f"{host}:{here.model_port}", f"127.0.0.1:{here.port}", "192.0.2.1:443")
        order = {
            **here.order(settings.SANDUK_HOME),
            "probes": IN_DOOR,
            "allowed": [allowed],
            "refused": [*refused, "169.254.169.254:80"],
        }
        found, why = self._asked(here, order, ("--allow-host", allowed), addresses)
        for name in IN_DOOR:
            if found:
                self._judge(name, found)
            else:
                self._add(probes.not_tried(name, why))

    # -- the hostile box ------------------------------------------------------------------------
    def _hostile(self, here: ground.Ground) -> None:
        self.progress("a box that breaks what it can, and is ended")
        order = {**here.order(settings.SANDUK_HOME), "probes": ["hostile"]}
        box = self._open(here, here.work)
        found: Found = {}
        why = ""
        try:
            box.tell(boxes.probing(order))
            found = boxes.answer(box, here.nonce)
        except NoAnswer as exc:
            why = self._no_box(exc)
        finally:
            box.end(hurry=True)
        run = _newest(here.work)
        if not found or found["hostile"].get("untried"):
            if found:
                why = visible(str(found["hostile"]["untried"]), limit=300)
                self.unmade.append(f"the hostile box could not do its work: {why}")
            for name in OF_HOSTILE:
                self._add(probes.not_tried(name, why))
            return
        self._judge("destroyed", {"destroyed": found["hostile"]}, self._left(here, run))
        self._add(probes.judged("record", _unrecorded(here, run)))
        if (here.repository / ".git").exists():
            ground.take_back(here)
            self._add(probes.judged("patch", content.patch(here)))
        else:
            self._add(probes.not_tried("patch", "the repository it would land in is destroyed"))
        self._add(probes.judged("artifact", content.artifact(here)))

    def _left(self, here: ground.Ground, run: Run) -> list[str]:
        """What is not as it was: on the host, on the engine, among the processes."""
        reached = []
        if ground.state_of(here.repository) != here.repository_before:
            reached.append("the host's repository is not as it was")
        if here.secret.read_text() != f"secret {here.nonce}\n":
            reached.append("a file of the host's is not as it was")
        labels = {LABEL_INSTALL: install_id(), "sanduk.run": run.uid}
        end = time.monotonic() + GONE_S
        while True:
            try:
                containers = asyncio.run(self.tested.engine.containers(labels))
            except EngineError as exc:
                return [*reached, f"whether its containers are gone cannot be asked: {exc}"]
            processes = _processes(here.mark)
            if not (containers or processes) or time.monotonic() > end:
                break
            time.sleep(0.2)
        reached += [f"the container {each.id[:12]} is still there" for each in containers]
        return [*reached, *processes]


def _newest(work: Path) -> Run:
    run: Run = Run.objects.filter(workspace=os.path.realpath(work)).latest("pk")
    return run


def _unrecorded(here: ground.Ground, run: Run) -> list[str]:
    reached = [f"a box wrote into {place}" for place in here.marks(settings.SANDUK_HOME)]
    if run.state != Run.State.ENDED:
        reached.append(f"the run is recorded as {run.state}, not as ended")
    if not (run.certificate or {}).get("checks"):
        reached.append("the run is recorded without a seal certificate")
    return reached


def _keys_in(seen: str, key: str) -> list[str]:
    reached = ["the provider's key is in the box"] if key in seen else []
    others = sum(1 for each in keys.held_keys() if each in seen)
    return [*reached, *([f"{others} other key(s) of this host are in the box"] if others else [])]


def _asked_wrongly(here: ground.Ground) -> list[str]:
    if not here.asked_with:
        return ["no call arrived at the model"]
    wrong = [each for each in here.asked_with if each != f"Bearer {here.key}"]
    return ["a call arrived at the model without the host's key"] if wrong else []


def _processes(word: str) -> list[str]:
    """Processes of this host that carry a word on their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word.encode() in (folder / "cmdline").read_bytes():
                found.append(f"process {folder.name} of the box is still there")
    return found


async def _image(engine: Engine, plan: Plan, console: Console) -> ImageFacts:
    """The agent's. The link's is made as well: a box waits for its answer, not for a build."""
    await engine.ready()
    if plan.link_image is not None:
        await images.ensure(engine, plan.link_image, console)
    return await images.ensure(engine, plan.image, console)


def chosen(engine_name: str, agent: str, oci_runtime: str, console: Console) -> Tested:
    """What to test: the engine, and the image of an agent, built when there is none yet.

    Args:
        engine_name: a name or `module:Class`; "" for the one that runs use.
        agent: whose image; "" for the first that is built already.

    Raises Refusal or EngineError.
    """
    name = engine_name or settings.SANDUK_RUNTIME or get_engine(None).name
    engine = get_engine(name)
    facts = asyncio.run(engine.ready())
    if oci_runtime and facts.oci_runtimes and oci_runtime not in facts.oci_runtimes:
        known = ", ".join(facts.oci_runtimes)
        raise Refusal(f"--oci-runtime {oci_runtime}: {name} knows {known}; see docs/engines.md")
    picked = agent or _built(engine) or USUAL_AGENTS[0]
    order = Order(
        task="-", agent=picked, provider="rehearsal", runtime=name, workdir=str(Path("/tmp/none")),  # noqa: S108
    )  # fmt: skip
    image = asyncio.run(_image(engine, make_plan(order), console))
    return Tested(engine, name, facts, picked, image, oci_runtime)


def _built(engine: Engine) -> str:
    """The first usual agent whose image is there; "" when none is."""

    async def look() -> str:
        from runs.plan import from_recipe

        for each in USUAL_AGENTS:
            _, image = from_recipe(get_agent(each).recipe)
            if await engine.image(await images.tag_on(engine, image)) is not None:
                return each
        return ""

    return asyncio.run(look())
