"""From a resolved recipe to a build context: a Containerfile and the files it copies."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from msgspec import Struct

from recipes.files import FileContent
from recipes.pins import refuse_unbuildable
from recipes.resolve import Recipe
from recipes.schema import Architecture, RecipeError
from recipes.sections import SHARE, exec_form, instructions, runs_as_agent

AGENT_UID = "1000"
_SCRIPTS = Path(__file__).parent / "steps"
_INSTRUCTIONS = "instructions.md"
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class BuildContext(Struct, frozen=True):
    """Everything a build of an image reads, in memory."""

    recipe: str  # the recipe's name
    containerfile: str
    files: Mapping[str, FileContent]  # by path relative to the context

    def write(self, directory: str | os.PathLike[str]) -> None:
        """Write the context into an existing, empty directory. File modes do not follow umask."""
        root = Path(directory)
        everything = {"Containerfile": FileContent(self.containerfile.encode(), 0o644)}
        for path, file in (everything | dict(self.files)).items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
            target.chmod(file.mode)


def host_architecture() -> Architecture | None:
    """This machine's architecture in Debian's words; None when recipes have no name for it."""
    return cast("Architecture | None", _MACHINES.get(os.uname().machine))


def render(
    recipe: Recipe,
    *,
    arch: Architecture | None = None,
    instructions_file: str | None = None,
) -> BuildContext:
    """The build context of a recipe's image.

    Args:
        arch: what the engine builds for; this machine's when None. It only decides whether
            downloads exist for it: the context is the same for every architecture.
        instructions_file: where the agent reads its user's instructions, relative to its home.

    Raises:
        RecipeError: it is not to be built, see `recipes.pins`.
    """
    refuse_unbuildable(recipe, arch or host_architecture())
    as_root = [instructions(each) for each in recipe.sections if not runs_as_agent(each)]
    as_agent = [instructions(each) for each in recipe.sections if runs_as_agent(each)]
    files: dict[str, FileContent] = {}
    for part in (*as_root, *as_agent):
        for path, file in part.files.items():
            if files.setdefault(path, file) is not file:
                raise RecipeError(
                    f"{recipe.path}: two sections would be kept as {path}; rename one of them"
                )
    lines = [f"# The image of the recipe {recipe.name}, rendered by sanduk.", f"FROM {recipe.base}"]
    lines += [line for part in as_root for line in part.lines]
    lines += _agent_user(recipe, instructions_file, files)
    lines += [f"USER {recipe.user}", _env({"HOME": recipe.home} | dict(recipe.env))]
    if as_agent:
        lines.append(f"USER {recipe.user}:0")
        lines += [line for part in as_agent for line in part.lines]
        lines += [
            "USER root",
            f"RUN sh {SHARE}/open-home.sh {shlex.quote(recipe.home)}",
            f"USER {recipe.user}",
        ]
    lines += ["WORKDIR /work", _labels(recipe), f"ENTRYPOINT {exec_form(recipe.entrypoint)}"]
    return BuildContext(recipe.name, "\n".join(lines) + "\n", files)


def _agent_user(
    recipe: Recipe, instructions_file: str | None, files: dict[str, FileContent]
) -> list[str]:
    """Make the user, its home and its instructions in one layer; adds the files it needs."""
    lines = []
    for name in ("agent-user.sh", "open-home.sh"):
        files[name] = FileContent((_SCRIPTS / name).read_bytes(), 0o755)
        lines.append(f"COPY {exec_form([name, f'{SHARE}/{name}'])}")
    words = [shlex.quote(recipe.user), shlex.quote(recipe.home), '"$AGENT_UID"', '"$AGENT_GID"']
    if recipe.instructions:
        if instructions_file is None:
            raise RecipeError(
                f"{recipe.path}: $.instructions: {recipe.agent} reads no instructions file"
            )
        text = "\n".join(recipe.instructions)
        files[_INSTRUCTIONS] = FileContent(text.encode(), 0o444)
        target = f"{SHARE}/{_INSTRUCTIONS}"
        lines.append(f"COPY {exec_form([_INSTRUCTIONS, target])}")
        words += [target, shlex.quote(instructions_file)]
    lines += [
        f"ARG AGENT_UID={AGENT_UID}",
        f"ARG AGENT_GID={AGENT_UID}",
        f"RUN sh {SHARE}/agent-user.sh {' '.join(words)}",
        'LABEL sanduk.agent-uid="$AGENT_UID"',
    ]
    return lines


def _env(values: Mapping[str, str]) -> str:
    # `$` stays for the builder to expand: that is how a recipe extends PATH.
    quoted = [f'{name}="{_escape(value)}"' for name, value in values.items()]
    return "ENV " + " \\\n    ".join(quoted)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _labels(recipe: Recipe) -> str:
    labels = {"sanduk.recipe": recipe.name, "sanduk.kits": "", "sanduk.home": recipe.home}
    return "LABEL " + " ".join(f'{name}="{value}"' for name, value in labels.items())
