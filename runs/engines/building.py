"""Building an image with an engine's command: its words, and what is shown when it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from runs.engines import process
from runs.engines.arguments import label_arguments
from runs.engines.base import BuildSpec
from runs.engines.failures import build_failure

BUILD_S = 3600.0
BUILD_LINES = 12  # the last ones of a build that failed are shown


def build_arguments(spec: BuildSpec) -> list[str]:
    """The options of `build` that every engine understands, without the context."""
    words = ["--file", spec.containerfile, "--tag", spec.tag, *label_arguments(spec.labels)]
    for name, value in spec.build_args.items():
        words += ["--build-arg", f"{name}={value}"]
    words += ["--no-cache"] if spec.no_cache else []
    return words


async def run_build(
    command: Sequence[str],
    tag: str,
    on_line: Callable[[str], None],
    *,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a build to its end.

    Args:
        on_line: is given each line it prints, made printable.
        env: variables beside those of this process.

    Raises:
        BuildFailed: with the last lines.
        EngineError: it could not be started, or took more than an hour.
    """
    last: list[str] = []

    def note(line: str) -> None:
        last.append(line)
        del last[:-BUILD_LINES]
        on_line(line)

    code = await process.run_lines(command, note, timeout_s=BUILD_S, env=env)
    if code != 0:
        raise build_failure(tag, last)
