"""`sanduk run`: one agent in one disposable container, from here to its report."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from runs import defaults, duration, keys, mounts, narration, overlap, preview
from runs.console import Terminal
from runs.lifecycle import exit_code, run_here
from runs.management.detach import detach
from runs.management.run_flags import add_run_flags
from runs.management.terminal import SandukCommand, add_engine_flags, add_json_flag
from runs.models import Run
from runs.order import Order
from runs.outputs import Output
from runs.paths import expanded
from runs.plan import Plan, make_plan
from runs.refusal import Refusal

TASK_FILE_MAX = 16 * 2**20
NOT_SET = "this shell has no such variable"


class Command(SandukCommand):
    help = "Run an agent in a container of its own and wait for its report."
    examples = (
        'run --agent pi --provider rehearsal "look at every file here"',
        'run --agent claude --provider anthropic -w ~/code/app "find the flaky test"',
        "run --task-file task.md --mount ~/data:/data --timeout 2h -o report.md",
        'run --dry-run "what would be started?"',
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_run_flags(parser)
        add_engine_flags(parser)
        add_json_flag(parser)

    def act(self, **options: Any) -> int:
        _check_detached(options)
        plan = make_plan(order_from(options))
        if options["dry_run"]:
            return self._describe(plan, as_json=options["json"])
        if plan.provider is not None:
            keys.provider_key(plan.provider)  # a missing one is told before anything is made
        outputs = _outputs(options)
        for output in outputs.values():
            overlap.refuse_output(f"{output.flag} {output.text}", output.path)
        if options["detach"]:
            return detach(plan, self, as_json=options["json"])
        console = Terminal(quiet=options["quiet"], trace_to_stderr=options["json"])
        run = run_here(plan, console)
        # it is over: a late Ctrl-C may not cost the last lines or change the exit code
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return self._finish(run, options, outputs, console)

    def _describe(self, plan: Plan, *, as_json: bool) -> int:
        for doubt in plan.image.doubts:
            self.say(doubt)
        if as_json:
            self.print_json(preview.as_json(plan))
        else:
            for name, value in preview.lines(plan):
                self.print(f"{name + ':':<12} {value}")
        return 0

    def _finish(
        self, run: Run, options: dict[str, Any], outputs: dict[str, Output], console: Terminal
    ) -> int:
        for line in narration.closing(run, followed=not options["quiet"]):
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
    """The order that the flags amount to, the environment's defaults under them.

    Raises Refusal for what contradicts itself.
    """
    options = defaults.completed(options, defaults.of_environment())
    env, names = _environment(options["env"])
    worked_out: dict[str, Any] = {
        "task": task_of(options),
        "workdir": str(expanded(options["workdir"], what="--workdir").absolute()),
        "mode": _mode(options),
        "effort": options["effort"] or "",
        "permission_mode": options["permission_mode"] or "",
        "report_instruction": not options["no_report_instruction"],
        "kits": tuple(options["kit"]),
        "mounts": tuple(mounts.absolute(text) for text in options["mount"]),
        "env": env,
        "env_names": names,
        "allow_models": tuple(options["allow_model"]),
        "allow_paths": tuple(options["allow_path"]),
        "max_body_mb": options["max_body"],
        "budget_usd": options["budget"],
        "unpriced": options["unpriced"] or "",
        "allow_hosts": tuple(options["allow_host"]),
        "log_dir": _absolute(options["log_dir"], "--log-dir"),
        "upstream_idle_timeout_s": _patience(options["upstream_idle_timeout"]),
        "timeout_s": duration.seconds(options["timeout"], what="--timeout"),
        "idle_timeout_s": _idle(options["idle_timeout"]),
        "key_of": 0,  # people lend theirs to assistants alone
        "within_roots": False,  # whoever has a terminal here names any directory
        "shell": options.get("shell", ""),
        "seed": options.get("seed", ""),
        "asks": options.get("asks", False),
    }
    # every other field of an order has a flag of its own name
    plain = {name: options[name] for name in Order.__struct_fields__ if name not in worked_out}
    return Order(**plain, **worked_out)


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


def _absolute(text: str, what: str) -> str:
    return str(expanded(text, what=what).absolute()) if text else ""


def _patience(text: str) -> int | None:
    return duration.seconds(text, what="--upstream-idle-timeout") if text else None


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
            raise Refusal(f"--env {name}: {NOT_SET}; give it as {name}=VALUE")
    return env, tuple(names)


def task_of(options: dict[str, Any]) -> str:
    """The task that was given as a word, or in a file. Raises Refusal."""
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


_OUTPUTS = {"report": "--report", "stats_file": "--stats-file"}


def _check_detached(options: dict[str, Any]) -> None:
    for name, flag in _OUTPUTS.items():
        if options["detach"] and options[name]:
            raise Refusal(f"{flag} means nothing with --detach, which returns before the run ends")


def _outputs(options: dict[str, Any]) -> dict[str, Output]:
    """Find out before the run, not after it, that a result has nowhere to go."""
    found = {name: Output(flag, options[name]) for name, flag in _OUTPUTS.items() if options[name]}
    if len({output.path for output in found.values()}) < len(found):
        raise Refusal("--report and --stats-file name the same file")
    return found
