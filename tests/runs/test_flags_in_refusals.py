"""Whatever flag a refusal names, the command that was started takes it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import relay
import runs
from relay.arguments import relay_parser
from runs.management.commands.sanduk_run import Command

RELAY = Path(relay.__file__).parent
RUNS = Path(runs.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
RUN_FLAGS = frozenset(Command().create_parser("sanduk", "sanduk_run")._option_string_actions)
BY_HAND_FLAGS = frozenset(relay_parser()._option_string_actions)
# Modules whose texts only one of the two can show.
BY_HAND = {"__main__.py", "arguments.py"}
SHARED = sorted({path.name for path in RELAY.glob("*.py")} - BY_HAND)


def texts(tree: ast.AST) -> list[str]:
    """Every text in a piece of source but the documentation."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documentation
    ]


def flags_in(tree: ast.AST) -> set[str]:
    return {flag for text in texts(tree) for flag in FLAG.findall(text)}


def refusals(path: Path) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Refusal")
    ]


@pytest.mark.parametrize("name", SHARED)
def test_a_flag_that_the_relay_names_is_one_of_both_commands(name):
    named = flags_in(ast.parse((RELAY / name).read_text()))
    assert named <= RUN_FLAGS
    assert named <= BY_HAND_FLAGS


def test_the_relay_names_flags_at_all():
    named = set().union(*(flags_in(ast.parse((RELAY / name).read_text())) for name in SHARED))
    assert {"--max-body", "--max-calls", "--allow-model", "--allow-path", "--budget"} <= named


@pytest.mark.parametrize("name", ["plan", "rules", "keys", "order", "starting", "admission"])
def test_a_flag_that_a_run_refuses_with_is_one_of_run(name):
    named = {flag for call in refusals(RUNS / f"{name}.py") for flag in flags_in(call)}
    assert named <= RUN_FLAGS


def test_a_flag_that_the_relay_by_hand_refuses_with_is_its_own():
    assert flags_in(ast.parse((RELAY / "__main__.py").read_text())) <= BY_HAND_FLAGS
