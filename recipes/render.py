"""From a resolved recipe to a build context: a Containerfile and the files it copies."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from msgspec import Struct

from recipes.files import FileContent
from recipes.pins import lacking, refuse_unbuildable
from recipes.resolve import Recipe
from recipes.schema import Architecture, RecipeError
from recipes.sections import (
    SHARE,
    Instructions,
    exec_form,
    fetched_skill,
    held_skill,
    instructions,
    runs_as_agent,
)

AGENT_UID = "1000"
_SCRIPTS = Path(__file__).parent / "steps"
_INSTRUCTIONS = "instructions.md"
_PLACE_SKILLS = "place-skills.sh"
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class BuildContext(Struct, frozen=True):
    """Everything a build of an image reads, in memory."""

    recipe: str  # the recipe's name
    containerfile: str
    files: Mapping[str, FileContent]  # by path relative to the context
    lacking: Mapping[Architecture, str] = {}  # what there is no download for, as a sentence

    def write(self, directory: str | os.PathLike[str]) -> None:
        """Write the context into an existing, empty directory. File modes do not follow umask."""
        root = Path(directory)
        everything = {"Containerfile": FileContent(self.containerfile.encode(), 0o644)}
        for path, file in (everything | dict(self.files)).items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.mode)


def architecture(machine: str) -> Architecture | None:
    """A machine, as a kernel or an engine calls it, in Debian's words; None for one that recipes
    have no name for."""
    return cast("Architecture | None", _MACHINES.get(machine))


def host_architecture() -> Architecture | None:
    """This machine's. An engine's may be another: it is asked before it builds."""
    return architecture(os.uname().machine)


def render(
    recipe: Recipe,
    *,
    arch: Architecture | None = None,
    instructions_file: str | None = None,
    skills_dir: str | None = None,
) -> BuildContext:
    """The build context of a recipe's image.

    Args:
        arch: what the engine builds for, when that is known. It only decides whether downloads
            exist for it: the context is the same for every architecture.
        instructions_file: where the agent reads its user's instructions, relative to its home.
        skills_dir: where the agent reads its user's skills, relative to its home.

    Raises:
        RecipeError: it is not to be built, see `recipes.pins`; or it has instructions or skills
            and the agent reads none.
    """
    refuse_unbuildable(recipe)
    missing = lacking(recipe)
    if arch in missing:
        raise RecipeError(missing[arch])
    context = _Context(recipe)
    context.say(f"# The image of the recipe {recipe.name}, rendered by sanduk.")
    context.say(f"FROM {recipe.base}")
    tools = [tool for kit in recipe.kits for tool in kit.tools]
    for each in (*recipe.sections, *tools):
        if not runs_as_agent(each):
            context.add(instructions(each))
    _agent_user(context, instructions_file)
    if any(kit.skills for kit in recipe.kits):
        _skills(context, skills_dir)
    env = {"HOME": recipe.home}
    for kit in recipe.kits:
        env |= kit.env
    context.say(f"USER {recipe.user}", _env(env | dict(recipe.env)))
    _as_agent(context)
    context.say("WORKDIR /work", _labels(recipe), f"ENTRYPOINT {exec_form(recipe.entrypoint)}")
    return BuildContext(recipe.name, "\n".join(context.lines) + "\n", context.files, missing)


class _Context:
    """A Containerfile that grows, and the files its lines need."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.lines: list[str] = []
        self.files: dict[str, FileContent] = {}

    def say(self, *lines: str) -> None:
        self.lines += lines

    def add(self, part: Instructions) -> None:
        for path, file in part.files.items():
            if self.files.setdefault(path, file) is not file:
                raise RecipeError(
                    f"{self.recipe.path}: two sections would be kept as {path}; rename one of them"
                )
        self.lines += part.lines

    def script(self, name: str) -> None:
        """Copy one of our own scripts, which later lines run."""
        self.files[name] = FileContent((_SCRIPTS / name).read_bytes(), 0o755)
        self.say(f"COPY {exec_form([name, f'{SHARE}/{name}'])}")


def _agent_user(context: _Context, instructions_file: str | None) -> None:
    """Make the user, its home and its instructions in one layer."""
    recipe = context.recipe
    for name in ("agent-user.sh", "open-home.sh"):
        context.script(name)
    words = [shlex.quote(recipe.user), shlex.quote(recipe.home), '"$AGENT_UID"', '"$AGENT_GID"']
    if recipe.instructions:
        if instructions_file is None:
            raise RecipeError(
                f"{recipe.place('instructions')}: {recipe.agent} reads no instructions file"
            )
        text = "\n".join(recipe.instructions)
        context.files[_INSTRUCTIONS] = FileContent(text.encode(), 0o444)
        target = f"{SHARE}/{_INSTRUCTIONS}"
        context.say(f"COPY {exec_form([_INSTRUCTIONS, target])}")
        words += [target, shlex.quote(instructions_file)]
    context.say(
        f"ARG AGENT_UID={AGENT_UID}",
        f"ARG AGENT_GID={AGENT_UID}",
        f"RUN sh {SHARE}/agent-user.sh {' '.join(words)}",
        'LABEL sanduk.agent-uid="$AGENT_UID"',
    )


def _skills(context: _Context, skills_dir: str | None) -> None:
    """Every kit's skills below SHARE, and from there, read-only, where the agent looks for them."""
    recipe = context.recipe
    for kit in recipe.kits:
        if kit.skills and skills_dir is None and recipe.agent not in (kit.agents or ()):
            raise RecipeError(
                f"{kit.called}: kit {kit.name} has skills, and where {recipe.agent} reads skills "
                f"is not known; a kit whose agents name {recipe.agent} may place them itself"
            )
        for skill in kit.skills:
            if skill.download is None:
                context.add(held_skill(skill))
            else:
                context.add(fetched_skill(kit.name, skill, skill.download))
    if skills_dir is None:
        return  # the kit's own setup takes them from SHARE
    context.script(_PLACE_SKILLS)
    words = [f"{SHARE}/skills", recipe.home, skills_dir, recipe.user]
    context.say(f"RUN sh {SHARE}/{_PLACE_SKILLS} {shlex.join(words)}")


def _as_agent(context: _Context) -> None:
    """What is done as the agent's user: each kit's tools and setup, then the recipe's sections."""
    recipe = context.recipe
    made = _Context(recipe)
    made.files = context.files
    for kit in recipe.kits:
        for tool in kit.tools:
            if runs_as_agent(tool):
                made.add(instructions(tool))
        for words in (kit.agents or {}).get(recipe.agent, ()):
            made.say(f"RUN {exec_form(words)}")
    for section in recipe.sections:
        if runs_as_agent(section):
            made.add(instructions(section))
    if made.lines:
        context.say(f"USER {recipe.user}:0", *made.lines, "USER root")
        context.say(
            f"RUN sh {SHARE}/open-home.sh {shlex.quote(recipe.home)}", f"USER {recipe.user}"
        )


def _env(values: Mapping[str, str]) -> str:
    # `$` stays for the builder to expand: that is how a recipe extends PATH.
    quoted = [f'{name}="{_escape(value)}"' for name, value in values.items()]
    return "ENV " + " \\\n    ".join(quoted)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _labels(recipe: Recipe) -> str:
    kits = ",".join(f"{kit.name}@{kit.sha256}" for kit in recipe.kits)
    labels = {"sanduk.recipe": recipe.name, "sanduk.kits": kits, "sanduk.home": recipe.home}
    return "LABEL " + " ".join(f'{name}="{value}"' for name, value in labels.items())
