"""Everything that must be there before the agent starts: images, relay, link, seal, files.

Nothing here starts the agent; it ends with the container created and the seal judged.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import relay
from relay import Ledger, Provider
from runs import box, hiding, images, keys, link, own_host, rules, seal
from runs.console import Console
from runs.engines.base import (
    LABEL_ROLE,
    ContainerSpec,
    EngineError,
    EngineUnavailable,
    ImageFacts,
    Mount,
)
from runs.holdings import Holdings
from runs.locality import require_usable
from runs.mounts import BOX, WORK
from runs.plan import Image, Plan
from runs.refusal import Refusal

T = TypeVar("T")
U = TypeVar("U")
AFTER_DEADLINE_S = 120  # the container's own limit lies this far behind ours
LINK_LIMIT_S = AFTER_DEADLINE_S + 60  # and the link's behind that


class Starting:
    """Args:
    holdings: takes everything this makes.
    ledger: counts what the relay sees.
    step: notes one line of progress, in the run's rows too.
    on_attempt: is handed every use of the egress door.
    """

    def __init__(
        self,
        plan: Plan,
        holdings: Holdings,
        ledger: Ledger,
        console: Console,
        step: Callable[[str], None],
        on_attempt: Callable[[relay.EgressAttempt], None],
    ) -> None:
        self.plan = plan
        self.certificate: seal.Certificate | None = None
        self.link: link.Link | None = None
        self._holdings = holdings
        self._ledger = ledger
        self._console = console
        self._step = step
        self._on_attempt = on_attempt
        self._on_sealed: Callable[[], None] = lambda: None
        self._link_container = ""
        self._link_tag = ""
        self._untried: tuple[str, ...] = ()  # what of this host the probe is not asked to reach
        self.image_tag = plan.image.tag  # until the engine has told which one it really is
        self._token = secrets.token_urlsafe(24)

    async def container(self) -> str:
        """The created container of the agent. Raises Refusal, EngineError or seal.ProbeFailed."""
        try:
            return await self._prepared()
        except EngineUnavailable:
            raise
        except EngineError:
            await self.plan.engine.ready()  # an engine that is down says better how to help it
            raise

    async def _prepared(self) -> str:
        plan = self.plan
        credential = _key(plan)
        needed = [each.tag for each in (plan.image, plan.link_image) if each is not None]
        for kit in plan.image.kits:
            self._step(f"kit {kit}, which nothing pins")
        for doubt in plan.image.doubts:
            self._step(doubt)
        async with images.kept(needed):
            # a bad key ends it at once, in the middle of a build too
            made, _ = await _both(self._made(credential), self._check_key(credential))
            return made

    async def _made(self, credential: str) -> str:
        order, plan = self.plan.order, self.plan
        await require_usable(plan.engine, relayed=order.relayed)
        if not order.relayed:
            facts = await self._image(plan.image)
            network = "none" if order.no_network else order.network or "default"
            return await self._create(facts, credential, network)
        # what takes time is begun early: /proc is read beside the images, and the relay is
        # imported and served while the engine makes the link
        listening = self._bind(self._holdings.box.relay_socket)
        door = self._bind(self._holdings.box.egress_socket) if plan.egress else None
        facts, asked = await _both(self._images(), asyncio.to_thread(self._questions))
        serving = self._relay(listening, credential, door)
        made, _ = await _both(self._create_link(asked), serving)
        # the agent's container may be made, but not started, before the seal is judged
        network = f"container:{made}"
        created, _ = await _both(self._create(facts, self._token, network), self._seal(made))
        return created

    async def _check_key(self, key: str) -> None:
        """Ask the provider about the key, beside everything else that is made ready.

        Raises Refusal: a bad key costs an agent minutes of retries inside.
        """
        provider = self.plan.provider
        if provider is None or not key or self.plan.order.skip_key_check:
            return
        try:
            found = await relay.check_key(provider, relay.Credential(key, provider.key_env))
        except relay.InvalidProxy as exc:
            raise Refusal(str(exc)) from None
        if not found.passes:
            raise Refusal(f"{found.text}; --skip-key-check starts all the same")
        if found.text:
            self._step(found.text)

    async def _create(self, facts: ImageFacts, credential: str, network: str) -> str:
        self.image_tag = facts.tag or self.image_tag
        launch = self.plan.launch(credential)
        task_on_stdin = launch.task_on_stdin and not self.plan.order.shell
        stdin = f"{launch.before_task}{self.plan.task}" if task_on_stdin else None
        files = self._files(facts, launch.env, stdin, launch.home_files)
        place = self.plan.workspace.path
        for pattern in self.plan.hidden.idle:
            if pattern in self.plan.order.hide:  # SANDUK_HIDE is for every run, whatever it has
                self._step(f"--hide {pattern}: nothing matches")
        if seen := await asyncio.to_thread(hiding.usual_secrets, place, self.plan.hidden.paths):
            self._step(hiding.warning(seen))
        return await self._holdings.create(self._spec(facts, launch.argv, files, network))

    # -- images and relay ---------------------------------------------------------------------
    async def _image(self, image: Image) -> ImageFacts:
        rebuild = self.plan.order.rebuild
        return await images.ensure(self.plan.engine, image, self._console, rebuild=rebuild)

    async def _images(self) -> ImageFacts:
        """The agent's image and the link's, at the same time."""
        if self.plan.link_image is None:
            return await self._image(self.plan.image)
        link_image = images.ensure(self.plan.engine, self.plan.link_image, self._console)
        facts, link_facts = await _both(self._image(self.plan.image), link_image)
        self._link_tag = link_facts.tag
        return facts

    def _bind(self, path: Path) -> socket.socket:
        """A socket for the link: it must be there before the link is made, which mounts it."""
        listening = relay.bind_unix(path)
        link.hand_over(path)
        return listening

    async def _relay(self, listening: socket.socket, key: str, door: socket.socket | None) -> None:
        """Serve the relay, the rehearsal model's socket behind it, and the egress door."""
        provider, policy = self.plan.provider, self.plan.policy
        if provider is None or policy is None:
            raise Refusal("a relayed run needs a provider")
        stack = AsyncExitStack()
        self._holdings.take("the relay", stack.aclose)
        if (upstream := await self._upstream(provider, stack)) is not None:
            policy = replace(policy, upstream=upstream)
        credential = relay.Credential(key, provider.key_env) if key else None
        bodies = self._body_log()
        app = relay.create_app(policy, credential, self._token, self._ledger)

        def count_from_here() -> None:
            self._ledger.sequence, app.bodies = 0, bodies

        self._on_sealed = count_from_here
        await stack.enter_async_context(relay.serving(app, listening))
        if door is not None and self.plan.egress is not None:
            serving = relay.serving_egress(self.plan.egress, door, self._on_attempt)
            await stack.enter_async_context(serving)

    def _body_log(self) -> relay.BodyLog | None:
        """Keep what is sent to the provider, when that was asked for. Raises Refusal."""
        order = self.plan.order
        if not order.log_bodies:
            return None
        directory = rules.body_directory(order, self._holdings.box.path.name)
        try:
            log = relay.BodyLog(directory, on_stop=lambda why: self._step(f"body log: {why}"))
        except OSError as exc:
            raise Refusal(f"bodies cannot be kept in {directory}: {exc.strerror}") from None

        async def close() -> None:
            await asyncio.to_thread(log.close)

        self._holdings.take("the body log", close)
        self._step(f"request bodies are kept in {directory}")
        return log

    async def _upstream(self, provider: Provider, stack: AsyncExitStack) -> relay.Endpoint | None:
        if provider.name != "rehearsal":
            return None
        path = self._holdings.box.rehearsal_socket
        model = relay.create_rehearsal_app()
        await stack.enter_async_context(relay.serving(model, relay.bind_unix(path)))
        return relay.Endpoint.at_socket(str(path))

    # -- link and seal ------------------------------------------------------------------------
    def _questions(self) -> str:
        order = self.plan.order
        limit_s = order.timeout_s + LINK_LIMIT_S
        host = own_host.look()
        self._untried = host.untried
        door = self.plan.egress is not None
        return link.questions(order.mode, host=host, limit_s=limit_s, door=door)

    async def _create_link(self, questions: str) -> str:
        order, plan, holdings = self.plan.order, self.plan, self._holdings
        network = "none"
        if order.mode == "key-safe":
            network = await holdings.network(f"sanduk-{holdings.box.path.name}", internal=False)
        self._link_container = await holdings.create(
            link.spec(
                image=self._link_tag,
                questions=questions,
                network=network,
                box=holdings.box,
                labels=holdings.labels,
                door=plan.egress is not None,
            )
        )
        return self._link_container

    async def _seal(self, container: str) -> None:
        """Start the link, hear its probe, judge it. Raises Refusal when the seal has a hole."""
        plan = self.plan
        self.link = await link.start(plan.engine, container)
        self._holdings.take("the link's client", self.link.let_go)
        lent = [str(plan.workspace.path), *(mount.source for mount in plan.mounts)]
        sockets, all_seen = await asyncio.to_thread(seal.lent_sockets, lent)
        judged = seal.judge(await link.answer(self.link), mode=plan.order.mode)
        judged = seal.with_untried(judged, self._untried)
        judged = seal.with_sockets(judged, sockets, all_seen=all_seen)
        if (door := plan.egress) is not None:
            hosts = sorted(f"{host}:{port}" for host, port in door.hosts)
            judged = seal.with_door(judged, hosts, warn_only=door.mode == "warn")
        self.certificate = judged
        self._step(self.certificate.headline)
        if self.certificate.holes:
            raise Refusal(f"the seal has a hole: {'; '.join(self.certificate.holes)}")
        # the probe's calls are behind us: the agent's are numbered from 1, and kept
        self._on_sealed()

    # -- the agent's container ------------------------------------------------------------------
    def _files(
        self,
        facts: ImageFacts,
        env: Mapping[str, str],
        stdin: str | None,
        home_files: Mapping[str, str],
    ) -> tuple[Mount, ...]:
        order, place = self.plan.order, self.plan.workspace
        private = self._holdings.box
        passed = {name: os.environ[name] for name in order.env_names if name in os.environ}
        files = private.agent_files(
            uid=place.uid,
            gid=place.gid,
            home=_home(facts, self.plan.image),
            env={
                **env,
                **self._proxies(),
                **self._skills_place(),
                **self._colours(),
                **order.env,
                **passed,
            },
            stdin=stdin,
            home_files=home_files,
            entry=box.SHELL if order.shell else box.ENTRY,
        )
        files = (*files, *private.covers(str(place.path), self.plan.hidden.paths))
        if (ground := self.plan.ground) is not None and ground.skills is not None:
            files = (*files, Mount(str(ground.skills), f"{BOX}/skills"))
        has_network = order.mode != "sealed" and not order.no_network
        return files if has_network else (*files, *private.network_files())

    def _skills_place(self) -> dict[str, str]:
        """Where the entry copies skills to: the agent's own directory, in which it may write."""
        ground, place = self.plan.ground, self.plan.agent.skills_dir
        return {"SANDUK_SKILLS": place} if ground and ground.skills and place else {}

    def _colours(self) -> dict[str, str]:
        """What the person's terminal can show; by its own name an image seldom knows it."""
        if self.plan.order.shell not in ("tty", "agent"):
            return {}
        true = os.environ.get("COLORTERM") in ("truecolor", "24bit")
        if not (true or os.environ.get("TERM", "").endswith("256color")):
            return {}
        return {"TERM": "xterm-256color", **({"COLORTERM": "truecolor"} if true else {})}

    def _proxies(self) -> dict[str, str]:
        """What points ordinary programs at the egress door; the relay is no proxy's business."""
        if self.plan.egress is None:
            return {}
        door = f"http://127.0.0.1:{link.EGRESS_PORT}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        found = dict.fromkeys(names, door) | {name.lower(): door for name in names}
        return found | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}

    def _spec(
        self, facts: ImageFacts, argv: tuple[str, ...], files: tuple[Mount, ...], network: str
    ) -> ContainerSpec:
        order, place = self.plan.order, self.plan.workspace
        is_command = self.plan.agent.is_command
        words = argv if is_command else (*facts.entrypoint, *argv)
        plain = order.shell in ("tty", "pipe")
        command = () if plain else words
        if not (facts.entrypoint or plain or is_command):
            raise Refusal(
                f"image {self.plan.image.tag} has no entrypoint; it must be the agent's command"
            )
        workspace = Mount(str(place.path), WORK, read_only=False)
        return ContainerSpec(
            # another build may take a tag of a person's own meanwhile, never an id
            image=facts.id if self.plan.image.containerfile else self.image_tag,
            entrypoint=f"{BOX}/entry",
            argv=(str(order.timeout_s + AFTER_DEADLINE_S), *command),
            labels={**self._holdings.labels, LABEL_ROLE: "shell" if order.shell else "agent"},
            user=f"{place.uid}:{place.gid}",
            extra_groups=_groups(facts, place.uid),
            env={"HOME": _home(facts, self.plan.image)},
            mounts=(workspace, *files, *self.plan.mounts),
            workdir=WORK,
            network=network,
            memory=order.memory,
            cpus=order.cpus,
            oci_runtime=order.oci_runtime or None,
            share_userns_of=self._link_container or None,
            interactive=bool(order.shell),
            tty=order.shell in ("tty", "agent"),
        )


def _key(plan: Plan) -> str:
    """The provider's key: this installation's, or the one that a person lends. Raises Refusal."""
    if plan.provider is None:
        return ""
    if plan.order.key_of:
        return keys.persons_key(plan.provider, plan.order.key_of)
    return keys.provider_key(plan.provider)


def _groups(facts: ImageFacts, uid: int) -> tuple[int, ...]:
    """Group 0 only where it is needed: it counts in mounted directories as well.

    Images give their home to it, so that a uid which is not the image's own can write there.
    """
    return () if facts.labels.get("sanduk.agent-uid") == str(uid) else (0,)


def _home(facts: ImageFacts, image: Image) -> str:
    known = facts.labels.get("sanduk.home") or image.home or facts.env.get("HOME")
    return known or "/tmp/home"  # noqa: S108 - a path in the container


async def _both(first: Awaitable[T], second: Awaitable[U]) -> tuple[T, U]:
    """Both at once; when one fails the other is cancelled, and its failure is the one raised."""
    one, two = asyncio.ensure_future(first), asyncio.ensure_future(second)
    try:
        return await asyncio.gather(one, two)
    finally:
        one.cancel()
        two.cancel()
        await asyncio.gather(one, two, return_exceptions=True)
