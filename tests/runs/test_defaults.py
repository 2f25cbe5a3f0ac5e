"""Whose word counts: a flag's, then a layer's below it."""

from __future__ import annotations

import pytest

from runs.defaults import Usual, completed, of_environment

NOTHING = {"agent": "", "provider": "", "model": "", "recipe": ""}
ALL = Usual("claude", "anthropic", "opus")


@pytest.mark.parametrize(
    ("asked", "usual", "told"),
    [
        ({}, ALL, ("claude", "anthropic", "opus")),
        ({"agent": "claude"}, ALL, ("claude", "anthropic", "opus")),
        # another agent is not given a model, or a provider, that was meant for the usual one
        ({"agent": "codex"}, ALL, ("codex", "", "")),
        ({"recipe": "mine"}, ALL, ("", "", "")),
        ({"provider": "openrouter"}, ALL, ("claude", "openrouter", "")),
        ({"provider": "anthropic"}, ALL, ("claude", "anthropic", "opus")),
        ({"model": "haiku"}, ALL, ("claude", "anthropic", "haiku")),
        ({"agent": "codex", "model": "o1"}, ALL, ("codex", "", "o1")),
        # a provider without an agent is for all of them
        ({"agent": "pi"}, Usual(provider="rehearsal"), ("pi", "rehearsal", "")),
        ({"recipe": "mine"}, Usual(provider="rehearsal"), ("", "rehearsal", "")),
        ({}, Usual(model="o1"), ("", "", "o1")),
        ({"agent": "claude"}, Usual(model="o1"), ("claude", "", "")),
        ({}, Usual(), ("", "", "")),
    ],
)
def test_what_is_asked_goes_before_what_is_usual(asked, usual, told):
    done = completed({**NOTHING, **asked}, usual)

    assert (done["agent"], done["provider"], done["model"]) == told
    assert done["recipe"] == asked.get("recipe", "")


def test_the_environment_is_a_layer(settings):
    settings.SANDUK_AGENT, settings.SANDUK_PROVIDER, settings.SANDUK_MODEL = "pi", "rehearsal", "m"

    assert of_environment() == Usual("pi", "rehearsal", "m")
