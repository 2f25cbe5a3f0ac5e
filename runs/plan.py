"""From an order to a plan: everything that can be refused without starting anything."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from django.conf import settings

import recipes
from recipes.catalog import is_path
from recipes.image_names import EXAMPLES, is_image_name
from relay import EgressRules, InvalidUpstream, Policy, Provider, with_upstream
from runs import (
    admission,
    browser,
    hiding,
    keys,
    launching,
    mounts,
    providers,
    rules,
    unknown_agents,
    work_roots,
    workspace,
)
from runs.agents import get_agent
from runs.agents.base import Agent, AgentRefusal, Launch, Request
from runs.engines import get_engine
from runs.engines.base import Engine, EngineError, Mount
from runs.order import MODES, Order
from runs.paths import expanded
from runs.refusal import HostRefusal, Refusal
from runs.report import with_instruction
from runs.workspace import Workspace

DEFAULT_AGENT = "codex"
DEFAULT_PROVIDER = "openai"
LINK_RECIPE = "link"


@dataclass(frozen=True, slots=True)
class Image:
    """Args:
    tag: what to run.
    context: what to build it from when it is not there; None for a tag given by a person.
    home: the agent's home in it, as far as it is known before the engine is asked.
    containerfile: a Containerfile of the person's own, built in its own directory.
    base: the image it is built from, when a recipe says so.
    kits: name and hash of each kit that nothing pins.
    recipe_file: where its recipe is, when it was given by a path.
    doubts: what is odd about its recipe and kits, in sentences.
    """

    tag: str
    context: recipes.BuildContext | None = None
    home: str = ""
    containerfile: Path | None = None
    base: str = ""
    kits: tuple[str, ...] = ()
    recipe_file: str = ""
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ground:
    """What our own code gives a run, and no order can name.

    Args:
        directory: where it works, made for this run alone: it may lie in the state directory, no
            file of a person is in it, and a REPORT.md in it is a file like any other.
        skills: a directory of ours with one directory a skill, which the agent finds among its
            user's own.
        image: what to run instead of what the order and the agent would give.
    """

    directory: Path
    skills: Path | None = None
    image: Image | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """One run, decided in every detail that needs no engine and no key."""

    order: Order
    agent: Agent
    request: Request
    provider: Provider | None
    engine: Engine
    image: Image
    link_image: Image | None
    workspace: Workspace
    mounts: tuple[Mount, ...]
    hidden: hiding.Hidden  # what of the workspace the agent sees empty
    task: str
    policy: Policy | None
    egress: EgressRules | None
    ground: Ground | None = None

    @property
    def checks_calls(self) -> bool:
        return self.order.relayed and self.agent.calls_model and not self.order.shell

    def launch(self, credential: str) -> Launch:
        """How the agent is started, given the run token (or, in open mode, the key)."""
        return launching.launch(self, credential)


def make_plan(order: Order, *, ground: Ground | None = None) -> Plan:
    """Check an order as a whole. Raises Refusal with the first thing that is wrong.

    Args:
        ground: what our own code gives the run; the order's directory means nothing then.
    """
    _check_text(order)
    _check_mode(order)
    engine = _engine(order)
    try:
        agent, image = _agent_and_image(order)
        image = ground.image if ground and ground.image else image
        provider = _provider(order, agent)
        request = Request(
            model=order.model or None,
            effort=order.effort or None,
            max_turns=order.max_turns,
            allowed_tools=order.allowed_tools or None,
            permission_mode=order.permission_mode or None,
            bare=order.bare,
            key_env=order.agent_key_env or None,
            base_url_env=order.agent_base_url_env or None,
        )
        if provider is not None or not order.shell:
            agent.check(request, provider or launching.nobody())
        task = with_instruction(order.task) if order.report_instruction else order.task
        if order.shell == "agent":
            agent.check_seed(order.seed)
        agent.check_task(task)
    except AgentRefusal as exc:
        raise Refusal(str(exc)) from None
    except recipes.RecipeError as exc:
        raise Refusal(str(exc)) from None
    _check_resources(order)
    _check_environment(order)
    state = settings.SANDUK_HOME
    lent = mounts.parse_all(order.mounts, home=image.home or "/home", state=state)
    policy = rules.policy(order, provider) if order.relayed and provider else None
    egress = rules.egress(order, provider) if order.relayed and provider else None
    # last, as whose it is is the matter of this host and not of the order
    if order.within_roots:
        work_roots.check(order.workdir)
    if ground is None:
        place = workspace.check(order.workdir, state=state)
    else:
        place = workspace.of_ours(ground.directory)
    patterns = [hiding.check_pattern(each) for each in (*settings.SANDUK_HIDE, *order.hide)]
    rules.check_log_directory(order, [str(place.path), *(mount.source for mount in lent)])
    return Plan(
        order=order,
        agent=agent,
        request=request,
        provider=provider,
        engine=engine,
        image=image,
        link_image=from_recipe(LINK_RECIPE)[1] if order.relayed else None,
        workspace=place,
        mounts=lent,
        hidden=hiding.found(place.path, patterns),
        task=task,
        policy=policy,
        egress=egress,
        ground=ground,
    )


def from_recipe(spec: str, kits: Sequence[str] = ()) -> tuple[recipes.Recipe, Image]:
    """A recipe, with more kits if there are some, and the image it describes.

    Raises:
        recipes.RecipeError: see `recipes.load` and `recipes.render`.
        AgentRefusal: it needs to know where its agent reads instructions or skills, and there is
            no such agent.
    """
    recipe = recipes.load(spec, kits=kits)
    instructions_file = skills_dir = None
    if recipe.instructions or any(kit.skills for kit in recipe.kits):
        agent = get_agent(recipe.agent)
        instructions_file, skills_dir = agent.instructions_file, agent.skills_dir
    context = recipes.render(recipe, instructions_file=instructions_file, skills_dir=skills_dir)
    ours = settings.SANDUK_HOME / "repos"  # kits of our own making are kept by their hash
    loose = [kit for kit in recipe.kits if not kit.pinned and ours not in Path(kit.path).parents]
    image = Image(
        recipes.image_tag(context, {}),
        context,
        recipe.home,
        base=recipe.base,
        kits=tuple(f"{kit.name}@{kit.sha256}" for kit in loose),
        recipe_file=str(Path(spec).expanduser().absolute()) if is_path(spec) else "",
        doubts=tuple(unknown_agents.in_recipe(recipe)),
    )
    return recipe, image


def from_containerfile(name: str, tag: str = "") -> Image:
    """The image of a person's own Containerfile. Raises Refusal when it cannot be built."""
    file = expanded(name, what="--containerfile").resolve()
    if file.is_dir():
        raise Refusal(f"--containerfile {name}: this is a directory; name the file in it")
    if not file.is_file():
        why = "this is no regular file" if file.exists() else "there is no such file"
        raise Refusal(f"--containerfile {name}: {why}")
    if tag and not is_image_name(tag, digest=False):
        raise Refusal(f"--image {tag}: no image can be called so; take a name like team/tool:1")
    place = f"{settings.SANDUK_HOME}\0{file}"
    own = f"sanduk-custom:{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"
    return Image(tag or own, containerfile=file)


def _check_text(order: Order) -> None:
    if not order.task.strip():
        raise Refusal("the task is empty")
    if "\0" in order.task:
        raise Refusal("the task holds a NUL byte; is it a text?")
    if any(ord(c) < 0x20 or c == "\x7f" for c in order.model):
        raise Refusal("--model holds a line break or another control character")
    try:
        # what was typed in another encoding arrives as lone surrogates, which no column takes
        msgspec.json.encode(order)
    except UnicodeEncodeError:
        raise Refusal("the task or a flag's value is not UTF-8 text") from None


def _check_mode(order: Order) -> None:
    if order.mode not in MODES:
        raise Refusal(f"--mode {order.mode}: there are {', '.join(MODES)}")
    if order.mode != "open" or order.no_network:
        for flag, value in (("--base-url", order.base_url), ("--network", order.network)):
            if value:
                raise Refusal(
                    f"{flag} means nothing in {order.mode_name} mode; it goes with --mode open"
                )
    if order.mode == "open" and order.upstream:
        raise Refusal("--upstream is where the relay sends calls; in open mode use --base-url")
    if order.insecure_upstream and not (order.upstream or order.base_url):
        raise Refusal("--insecure-upstream means nothing without --upstream or --base-url")
    if order.no_network and order.upstream:
        raise Refusal("--upstream means nothing with --no-network: there is no relay")
    rules.check_mode(order)


def _engine(order: Order) -> Engine:
    try:
        engine = get_engine(order.runtime or settings.SANDUK_RUNTIME or None)
    except EngineError as exc:
        kind = Refusal if order.runtime else HostRefusal
        raise kind(str(exc)) from None
    if order.relayed and not engine.shares_sockets:
        raise Refusal(
            f"engine {engine.name} cannot share a socket with this host, so {order.mode} runs "
            "do not work with it yet; use --mode open, or docker or podman on Linux"
        )
    return engine


def _agent_and_image(order: Order) -> tuple[Agent, Image]:
    if order.recipe and (order.image or order.containerfile):
        raise Refusal("--recipe and --image or --containerfile exclude each other")
    if order.kits and (order.image or order.containerfile):
        raise Refusal("--kit and --image or --containerfile exclude each other")
    for flag, named in (("--containerfile", order.containerfile), ("--image", order.image)):
        if named:
            browser.refuse_in(flag, wanted=order.browser)
    if order.rebuild and order.image and not order.containerfile:
        raise Refusal("--rebuild means nothing with --image, which is used as it is")
    if order.recipe:
        recipe, image = _built(order.recipe, order)
        rules.check_kits(order, recipe)
        named = order.agent or recipe.agent
        if named != recipe.agent and not get_agent(named).is_command:
            raise Refusal(
                f"recipe {recipe.name} is for agent {recipe.agent}, not {order.agent}; "
                "leave --agent out"
            )
        return get_agent(named), image
    agent = get_agent(order.agent or DEFAULT_AGENT)
    if order.containerfile:
        return agent, from_containerfile(order.containerfile, order.image)
    if order.image:
        if not is_image_name(order.image):
            raise Refusal(f"--image {order.image}: this is no name of an image, like {EXAMPLES}")
        return agent, Image(order.image)
    recipe, image = _built(agent.recipe, order)
    rules.check_kits(order, recipe)
    return agent, image


def _built(spec: str, order: Order) -> tuple[recipes.Recipe, Image]:
    return from_recipe(spec, browser.kits(spec, order.kits, wanted=order.browser))


def _provider(order: Order, agent: Agent) -> Provider | None:
    if order.no_network:
        if agent.calls_model and order.shell in ("", "agent"):
            raise Refusal(
                f"{agent.name} cannot work without its model, and --no-network leaves it none; "
                "use --mode sealed"
            )
        return None
    if not order.provider:
        return _at_address(order, _default_provider(agent))
    known = providers.known()
    if order.provider not in known:
        raise Refusal(f"there is no provider {order.provider!r}; there are {', '.join(known)}")
    provider = known[order.provider]
    if order.mode == "open" and provider.name == "rehearsal":
        raise Refusal("the rehearsal model lives in the relay; use --mode sealed or key-safe")
    if order.upstream and provider.name == "rehearsal":
        raise Refusal("--upstream means nothing with the rehearsal model, which has no address")
    return _at_address(order, provider)


def _at_address(order: Order, provider: Provider) -> Provider:
    for flag, address in (("--upstream", order.upstream), ("--base-url", order.base_url)):
        if not address:
            continue
        try:
            return with_upstream(
                provider,
                address,
                insecure=order.insecure_upstream,
                key_env=order.upstream_key_env or None,
            )
        except InvalidUpstream as exc:
            raise Refusal(f"{flag}: {exc}") from None
    return provider


def _default_provider(agent: Agent) -> Provider:
    """The usual one, else the first with an address of its own that the agent can speak to."""
    known = providers.known()
    for provider in (known[DEFAULT_PROVIDER], *known.values()):
        if provider.key_env and set(agent.protocols) & set(provider.protocols):
            return provider
    raise Refusal(f"no provider of sanduk's speaks to {agent.name}; name one with --provider")


def _check_resources(order: Order) -> None:
    if not 0.01 <= order.cpus <= 1024:
        raise Refusal("--cpus takes a number from 0.01 to 1024")
    admission.size_bytes(order.memory)
    if order.max_turns is not None and order.max_turns < 1:
        raise Refusal("--max-turns must be at least 1")


# variables an agent's process needs as they are
_NEEDED = frozenset({"PATH", "HOME", "USER", "SHELL", "PWD", "LANG", "TERM", "TMPDIR", "ENV"})


def _check_environment(order: Order) -> None:
    for flag, name in (
        ("--agent-key-env", order.agent_key_env),
        ("--agent-base-url-env", order.agent_base_url_env),
    ):
        if name in _NEEDED or name.startswith("LD_"):
            raise Refusal(f"{flag} {name} would take a variable away that every program needs")
    for name in (*order.env, *order.env_names):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise Refusal(f"--env {name!r} is no variable name")
    if order.mode == "open" and not order.no_network:
        return
    secret_names = {each.key_env for each in providers.known().values()}
    secret_names = (secret_names | {order.upstream_key_env}) - {""}
    for name in order.env_names:
        if name in secret_names:
            raise Refusal(
                f"--env {name} would put a real key in a {order.mode_name} container; "
                "the relay holds it instead"
            )
    held = keys.held_keys()
    passed = {name: os.environ.get(name, "") for name in order.env_names}
    for name, value in (*order.env.items(), *passed.items()):
        if any(key in value for key in held):
            raise Refusal(f"--env {name} holds a provider's key; the relay holds it instead")
