"""`sanduk run`: one agent in one disposable container, from here to its report."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import duration, keys, narration
from runs.console import Terminal
from runs.lifecycle import execute, exit_code, start_here
from runs.management.detach import detach
from runs.management.terminal import SandukCommand, add_engine_flags, add_json_flag
from runs.models import Run
from runs.order import Order
from runs.outputs import Output
from runs.paths import expanded
from runs.plan import Plan, make_plan
from runs.refusal import Refusal

REPLACED = {
    "--proxy-network": "a run's network is its own now; --mode sealed or key-safe says which kind",
    "--proxy-port": "the relay listens on a socket of the run's own, so there is no port to choose",
    "--proxy-allow-path": "the relay's routes come with the provider",
}
TASK_FILE_MAX = 16 * 2**20


class _Text(argparse.Action):
    """A flag's value: an empty one would silently be as if the flag were not there."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if not values:
            parser.error(f"{option} needs a value, and an empty one means nothing")
        setattr(namespace, self.dest, values)


class _Replaced(argparse.Action):
    """A flag of the first program that has become something else."""

    def __call__(self, parser: Any, *_: Any) -> None:
        name = self.option_strings[0]
        parser.error(f"{name} is gone: {REPLACED[name]}")


class Command(SandukCommand):
    help = "Run an agent in a container of its own and wait for its report."
    examples = (
        'run --agent pi --provider rehearsal "look at every file here"',
        'run --agent claude --provider anthropic -w ~/code/app "find the flaky test"',
        "run --task-file task.md --mount ~/data:/data --timeout 2h -o report.md",
        'run --dry-run "what would be started?"',
    )

    def add_arguments(self, parser: CommandParser) -> None:
        _add_task(parser)
        _add_image(parser)
        _add_agent(parser)
        _add_limits(parser)
        _add_network(parser)
        _add_output(parser)
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        plan = make_plan(order_from(options))
        if options["dry_run"]:
            return self._describe(plan, as_json=options["json"])
        if plan.provider is not None:
            keys.provider_key(plan.provider)  # a missing one is told before anything is made
        outputs = _outputs(options)
        if options["detach"]:
            return detach(plan, self)
        run = start_here(plan)
        console = Terminal(quiet=options["quiet"], trace_to_stderr=options["json"])
        console.progress(narration.opening(run, plan))
        run = execute(run, plan, console)
        # it is over: a late Ctrl-C may not cost the last lines or change the exit code
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return self._finish(run, options, outputs, console)

    def _describe(self, plan: Plan, *, as_json: bool) -> int:
        described = narration.dry_run(plan)
        if as_json:
            self.print_json(described)
        else:
            for name, value in described.items():
                shown = " ".join(value) if isinstance(value, list) else value
                self.print(f"{name + ':':<12} {shown}")
        return 0

    def _finish(
        self, run: Run, options: dict[str, Any], outputs: dict[str, Output], console: Terminal
    ) -> int:
        for line in narration.closing(run):
            console.warn(line)
        code = exit_code(run)
        copy = outputs.get("report")
        copied = ""
        if copy is not None and run.report_state in (Run.Report.SAVED, Run.Report.CUT):
            copied = _written(copy, run.report.encode(), console)
            code = code or (0 if copied else 1)
        elif copy is not None:
            console.warn(f"nothing was written to {copy.text}: this run left no report")
        if (figures := outputs.get("stats_file")) is not None:
            written = _written(figures, narration.stats(run, copied), console)
            code = code or (0 if written else 1)
        if options["json"]:
            self.print_json(narration.as_json(run))
        elif not options["quiet"]:
            self.print(narration.last_word(run))
        return code


def _written(output: Output, content: bytes, console: Terminal) -> str:
    """The path that was written, or "" after saying why not."""
    try:
        output.write(content)
    except OSError as exc:
        console.warn(f"{output.flag} {output.text} was not written: {exc.strerror or exc}")
        return ""
    return str(output.path)


def order_from(options: dict[str, Any]) -> Order:
    """The order that the flags amount to. Raises Refusal for what contradicts itself."""
    env, names = _environment(options["env"])
    return Order(
        task=_task(options),
        workdir=str(expanded(options["workdir"], what="--workdir").absolute()),
        agent=options["agent"],
        recipe=options["recipe"],
        image=options["image"],
        containerfile=options["containerfile"],
        rebuild=options["rebuild"],
        runtime=options["runtime"],
        oci_runtime=options["oci_runtime"],
        mode=_mode(options),
        no_network=options["no_network"],
        provider=options["provider"],
        upstream=options["upstream"],
        insecure_upstream=options["insecure_upstream"],
        base_url=options["base_url"],
        network=options["network"],
        model=options["model"],
        effort=options["effort"] or "",
        max_turns=options["max_turns"],
        allowed_tools=options["allowed_tools"],
        permission_mode=options["permission_mode"] or "",
        bare=options["bare"],
        report_instruction=not options["no_report_instruction"],
        mounts=tuple(options["mount"]),
        env=env,
        env_names=names,
        cpus=options["cpus"],
        memory=options["memory"],
        timeout_s=duration.seconds(options["timeout"], what="--timeout"),
        idle_timeout_s=_idle(options["idle_timeout"]),
        keep=options["keep"],
    )


def _mode(options: dict[str, Any]) -> str:
    asked = options["mode"]
    if options["proxy"]:
        if asked not in (None, "sealed"):
            raise Refusal(f"--proxy means --mode sealed, which contradicts --mode {asked}")
        asked = "sealed"
    if options["no_network"] and asked:
        raise Refusal(f"--no-network has no relay, which contradicts --mode {asked}")
    return asked or settings.SANDUK_DEFAULT_MODE


def _idle(text: str) -> int | None:
    return None if text == "off" else duration.seconds(text, what="--idle-timeout")


def _environment(texts: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    env: dict[str, str] = {}
    names: list[str] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if equals:
            env[name] = value
        elif name in os.environ:
            names.append(name)
        else:
            raise Refusal(f"--env {name}: this shell has no such variable; give it as {name}=VALUE")
    return env, tuple(names)


def _task(options: dict[str, Any]) -> str:
    given, file = options["task"], options["task_file"]
    if given is not None and file:
        raise Refusal("give the task as a word or with --task-file, not both")
    if given is None and not file:
        raise Refusal('give a task: sanduk run "what to do", or --task-file PATH')
    if given is not None:
        return str(given)
    try:
        data = sys.stdin.buffer.read(TASK_FILE_MAX + 1) if file == "-" else _read(file)
        text = data.decode()
    except OSError as exc:
        raise Refusal(f"--task-file {file} cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise Refusal(f"--task-file {file} is not UTF-8 text") from None
    if len(data) > TASK_FILE_MAX:
        raise Refusal(f"--task-file {file} is larger than {TASK_FILE_MAX // 2**20} MiB")
    return text


def _read(name: str) -> bytes:
    with expanded(name, what="--task-file").open("rb") as file:
        return file.read(TASK_FILE_MAX + 1)


def _outputs(options: dict[str, Any]) -> dict[str, Output]:
    """Find out before the run, not after it, that a result has nowhere to go."""
    flags = {"report": "--report", "stats_file": "--stats-file"}
    for name, flag in (*flags.items(), ("json", "--json")):
        if options["detach"] and options[name]:
            raise Refusal(f"{flag} means nothing with --detach, which returns before the run ends")
    found = {name: Output(flag, options[name]) for name, flag in flags.items() if options[name]}
    if len({output.path for output in found.values()}) < len(found):
        raise Refusal("--report and --stats-file name the same file")
    return found


def _add_task(parser: CommandParser) -> None:
    group = parser.add_argument_group("the task")
    group.add_argument("task", nargs="?", help="what the agent should do")
    group.add_argument(
        "--task-file", action=_Text, metavar="PATH", help="read the task from a file, - for stdin"
    )
    group.add_argument(
        "-w",
        "--workdir",
        action=_Text,
        default="work",
        metavar="PATH",
        help="the directory the agent works in, made if missing (./work)",
    )
    group.add_argument(
        "--mount",
        action="append",
        default=[],
        metavar="HOST:DEST[:ro|rw]",
        help="lend another directory, read-only unless rw; repeatable",
    )
    group.add_argument(
        "-e",
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a variable for the agent; NAME alone takes this shell's",
    )
    group.add_argument(
        "--no-report-instruction", action="store_true", help="do not ask for REPORT.md"
    )


def _add_image(parser: CommandParser) -> None:
    group = parser.add_argument_group("the image")
    group.add_argument(
        "-r",
        "--recipe",
        action=_Text,
        default="",
        metavar="NAME|PATH",
        help="the recipe to build from (the agent's own)",
    )
    group.add_argument(
        "-i", "--image", action=_Text, default="", metavar="TAG", help="use this image as it is"
    )
    group.add_argument(
        "--containerfile",
        action=_Text,
        default="",
        metavar="PATH",
        help="build from this file and its directory",
    )
    group.add_argument("-b", "--rebuild", action="store_true", help="build even if it is there")


def _add_agent(parser: CommandParser) -> None:
    group = parser.add_argument_group("the agent and its model")
    group.add_argument(
        "--agent",
        action=_Text,
        default="",
        metavar="NAME",
        help="claude, codex, pi, or module:Class (codex, or the recipe's)",
    )
    group.add_argument(
        "--provider",
        action=_Text,
        default="",
        metavar="NAME",
        help="whose model: sanduk list providers (openai, or the first the agent can speak to)",
    )
    group.add_argument("--model", action=_Text, default="", metavar="ID")
    group.add_argument("--effort", choices=("low", "medium", "high", "xhigh", "max"))
    group.add_argument("--max-turns", type=int, metavar="N")
    group.add_argument("--allowed-tools", action=_Text, default="", metavar="LIST")
    group.add_argument(
        "--permission-mode",
        choices=("acceptEdits", "auto", "bypassPermissions", "manual", "dontAsk", "plan"),
    )
    group.add_argument(
        "--bare",
        action="store_true",
        help="no hooks, plugins or instruction files of the workspace",
    )


def _add_limits(parser: CommandParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument(
        "--timeout",
        default="15m",
        metavar="DURATION",
        help="end it after this long: 90, 15m, 2h, 7d (15m)",
    )
    group.add_argument(
        "--idle-timeout",
        default="10m",
        metavar="DURATION",
        help="end it after this long without output or model traffic; off (10m)",
    )
    group.add_argument("--cpus", type=float, default=4, metavar="N")
    group.add_argument(
        "--memory", action=_Text, default="4g", metavar="SIZE", help="memory, without swap (4g)"
    )


def _add_network(parser: CommandParser) -> None:
    group = parser.add_argument_group("network and keys")
    group.add_argument(
        "--mode",
        choices=("open", "key-safe", "sealed"),
        help="sealed: no network but the relay (default); key-safe: network, the key stays "
        "outside; open: network, and the key inside",
    )
    group.add_argument("--proxy", action="store_true", help=argparse.SUPPRESS)
    group.add_argument("--no-network", action="store_true", help="loopback only, no relay, no key")
    group.add_argument(
        "--upstream",
        action=_Text,
        default="",
        metavar="SCHEME://HOST:PORT",
        help="where the relay sends calls instead",
    )
    group.add_argument(
        "--insecure-upstream", action="store_true", help="allow plain http to another machine"
    )
    group.add_argument(
        "--base-url", action=_Text, default="", metavar="URL", help="open mode: the agent's API"
    )
    group.add_argument(
        "--network", action=_Text, default="", metavar="NAME", help="open mode: engine network"
    )
    group.add_argument(
        "--oci-runtime", action=_Text, default="", metavar="NAME", help="such as runsc (gVisor)"
    )
    for flag in REPLACED:
        group.add_argument(flag, action=_Replaced, nargs="?", help=argparse.SUPPRESS)


def _add_output(parser: CommandParser) -> None:
    group = parser.add_argument_group("what comes out")
    group.add_argument(
        "-o", "--report", action=_Text, default="", metavar="PATH", help="copy the report there"
    )
    group.add_argument(
        "--stats-file", action=_Text, default="", metavar="PATH", help="write the figures as JSON"
    )
    group.add_argument("--keep", action="store_true", help="keep the container when it has ended")
    group.add_argument("--detach", action="store_true", help="print the run's id and return")
    group.add_argument(
        "--dry-run", action="store_true", help="say what would be started; do nothing"
    )
