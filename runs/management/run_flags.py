"""Every flag of `sanduk run`, in the groups its help shows."""

from __future__ import annotations

import argparse

from django.core.management.base import CommandParser

from relay.flags import INSTEAD_OF_ALLOW_PATH, Replaced
from runs.management.numbers import cores, dollars, whole

REPLACED = {
    "--proxy-network": "a run's network is its own now; --mode sealed or key-safe says which kind",
    "--proxy-port": "the relay listens on a socket of the run's own, so there is no port to choose",
    "--proxy-allow-path": INSTEAD_OF_ALLOW_PATH,
}


def add_run_flags(parser: CommandParser) -> None:
    """All of them but those that every verb has."""
    for add in (
        _add_task,
        _add_image,
        _add_agent,
        _add_limits,
        _add_network,
        _add_policy,
        _add_output,
    ):
        add(parser)


def add_shell_flags(parser: CommandParser) -> None:
    """Those of `run` that mean something where a person works instead of the agent."""
    _add_place(parser.add_argument_group("the place"))
    _add_image(parser)
    _add_who(parser.add_argument_group("the agent and its model"))
    _add_size(parser.add_argument_group("limits"), timeout="12h")
    _add_network(parser)
    _add_policy(parser)


def add_attempt_flags(parser: CommandParser) -> None:
    """Those that mean something where a task and a directory of our own are given to the agent."""
    _add_lent(parser.add_argument_group("what is lent to it"))
    for add in (_add_image, _add_agent, _add_limits, _add_network, _add_policy):
        add(parser)


def add_session_flags(parser: CommandParser) -> None:
    """The same where a person sits before the agent."""
    _add_lent(parser.add_argument_group("what is lent to it"))
    _add_image(parser)
    _add_who(parser.add_argument_group("the agent and its model"))
    _add_size(parser.add_argument_group("limits"), timeout="12h")
    _add_network(parser)
    _add_policy(parser)


def _add_task(parser: CommandParser) -> None:
    group = parser.add_argument_group("the task")
    group.add_argument("task", nargs="?", help="what the agent should do")
    group.add_argument("--task-file", metavar="PATH", help="read the task from a file, - for stdin")
    _add_place(group)
    group.add_argument(
        "--no-report-instruction", action="store_true", help="do not ask for REPORT.md"
    )


def _add_place(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-w",
        "--workdir",
        default="work",
        metavar="PATH",
        help="the directory the agent works in, made if missing (./work)",
    )
    _add_lent(group)


def _add_lent(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--mount",
        action="append",
        default=[],
        metavar="HOST:DEST[:ro|rw]",
        help="lend another directory, read-only unless rw; repeatable",
    )
    group.add_argument(
        "--hide",
        action="append",
        default=[],
        metavar="PATTERN",
        help="cover files of the working directory by empty ones: a name (.env) wherever it "
        "lies, or a path with * and **; repeatable",
    )
    group.add_argument(
        "-e",
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a variable for the agent; NAME alone takes this shell's",
    )


def _add_image(parser: CommandParser) -> None:
    group = parser.add_argument_group("the image")
    group.add_argument(
        "-r",
        "--recipe",
        default="",
        metavar="NAME|PATH",
        help="the recipe to build from (the agent's own)",
    )
    group.add_argument(
        "--kit",
        action="append",
        default=[],
        metavar="NAME|PATH",
        help="add a kit to the recipe, whatever its hash is now; repeatable",
    )
    add_browser_flags(group, "--browser")
    group.add_argument("-i", "--image", default="", metavar="TAG", help="use this image as it is")
    group.add_argument(
        "--containerfile",
        default="",
        metavar="PATH",
        help="build from this file and its directory",
    )
    group.add_argument("-b", "--rebuild", action="store_true", help="build even if it is there")


def add_browser_flags(group: argparse._ActionsContainer, *names: str) -> None:
    """`names` want a browser in the image, --no-browser wants none; without both it is None."""
    group.add_argument(
        *names,
        dest="browser",
        action="store_const",
        const=True,
        help="a Chromium in the image: the kit browser",
    )
    group.add_argument(
        "--no-browser",
        dest="browser",
        action="store_const",
        const=False,
        help="none, whatever SANDUK_BROWSER or a repository's rules say",
    )


def _add_agent(parser: CommandParser) -> None:
    group = parser.add_argument_group("the agent and its model")
    _add_who(group)
    group.add_argument("--effort", choices=("low", "medium", "high", "xhigh", "max"))
    group.add_argument("--max-turns", type=whole(), metavar="N")
    group.add_argument("--allowed-tools", default="", metavar="LIST")
    group.add_argument(
        "--permission-mode",
        choices=("acceptEdits", "auto", "bypassPermissions", "manual", "dontAsk", "plan"),
    )
    group.add_argument(
        "--bare",
        action="store_true",
        help="no hooks, plugins or instruction files of the workspace",
    )


def _add_who(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--agent",
        default="",
        metavar="NAME",
        help="one of `sanduk list agents`, or module:Class (codex, or the recipe's)",
    )
    group.add_argument(
        "--provider",
        default="",
        metavar="NAME",
        help="whose model: sanduk list providers (openai, or the first the agent can speak to)",
    )
    group.add_argument("--model", default="", metavar="ID")
    group.add_argument(
        "--agent-key-env",
        default="",
        metavar="NAME",
        help="the variable that holds the agent's key in the container (the agent's usual one)",
    )
    group.add_argument(
        "--agent-base-url-env",
        default="",
        metavar="NAME",
        help="the variable that holds the model's address there (the agent's usual one)",
    )


def _add_limits(parser: CommandParser) -> None:
    group = parser.add_argument_group("limits")
    _add_size(group, timeout="15m")
    group.add_argument(
        "--idle-timeout",
        default="10m",
        metavar="DURATION",
        help="end it after this long without output or model traffic; off (10m)",
    )


def _add_size(group: argparse._ArgumentGroup, *, timeout: str) -> None:
    group.add_argument(
        "--timeout",
        default=timeout,
        metavar="DURATION",
        help=f"end it after this long: 90, 15m, 2h, 7d ({timeout})",
    )
    group.add_argument("--cpus", type=cores, default=4, metavar="N")
    group.add_argument("--memory", default="4g", metavar="SIZE", help="memory, without swap (4g)")


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
        default="",
        metavar="SCHEME://HOST:PORT",
        help="where the relay sends calls instead",
    )
    group.add_argument(
        "--insecure-upstream", action="store_true", help="allow plain http to another machine"
    )
    group.add_argument("--base-url", default="", metavar="URL", help="open mode: the agent's API")
    group.add_argument("--network", default="", metavar="NAME", help="open mode: engine network")
    group.add_argument("--oci-runtime", default="", metavar="NAME", help="such as runsc (gVisor)")
    for flag, instead in REPLACED.items():
        group.add_argument(flag, action=Replaced, nargs="?", const=instead, help=argparse.SUPPRESS)


def _add_policy(parser: CommandParser) -> None:
    group = parser.add_argument_group("what the relay allows (sealed and key-safe runs)")
    add = group.add_argument
    add("--allow-model", action="append", default=[], metavar="ID", help="only these models")
    add("--max-tokens-cap", type=whole(), metavar="N", help="the most output tokens of one call")
    add(
        "--max-calls",
        type=whole(),
        metavar="N",
        help="how many calls may go out; model lists and token counts are free",
    )
    add("--max-body", type=whole(), metavar="MB", help="the largest request (64)")
    add(
        "--allow-path",
        action="append",
        default=[],
        metavar="PATH[=PROTOCOL]",
        help="one more path of the provider's API: GET and POST, or with its protocol model calls",
    )
    add("--budget", type=dollars, metavar="USD", help="end it when so much is spent")
    add("--token-budget", type=whole(), metavar="N", help="the same in tokens, in and out")
    add("--budget-strict", action="store_true", help="never cross it: allow less output instead")
    add(
        "--unpriced",
        choices=("serial", "refuse"),
        help="a model without a price: one call at a time, where the provider reports what each "
        "cost, or none",
    )
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST[:PORT]",
        help="let a sealed run reach this host (443); exact names, no wildcards",
    )
    add(
        "--egress",
        choices=("refuse", "warn"),
        default="refuse",
        help="warn: let every host pass and record it, to find what --allow-host needs",
    )
    add("--log-bodies", action="store_true", help="keep every request body, outside of all mounts")
    add(
        "--log-dir",
        default="",
        metavar="PATH",
        help="keep them there, one directory a run (in the run's own directory)",
    )
    add(
        "--upstream-key-env",
        default="",
        metavar="NAME",
        help="the variable with the key for --upstream",
    )
    add(
        "--upstream-idle-timeout",
        default="",
        metavar="DURATION",
        help="give an answer up after this long without a byte (5m)",
    )
    add("--skip-key-check", action="store_true", help="do not ask the provider about the key first")


def _add_output(parser: CommandParser) -> None:
    group = parser.add_argument_group("what comes out")
    group.add_argument("-o", "--report", default="", metavar="PATH", help="copy the report there")
    group.add_argument("--stats-file", default="", metavar="PATH", help="write the figures as JSON")
    group.add_argument("--keep", action="store_true", help="keep the container when it has ended")
    group.add_argument("--detach", action="store_true", help="print the run's id and return")
    group.add_argument(
        "--dry-run", action="store_true", help="say what would be started; do nothing"
    )
