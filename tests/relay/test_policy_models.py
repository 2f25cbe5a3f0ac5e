"""--allow-model: no field of any protocol names a model that was not allowed (R-1, R-2)."""

from __future__ import annotations

import json

import pytest

from relay.policy import InvalidPolicy, Policy
from relay.providers import get_provider
from tests.relay.asking import PATHS, ask

pytestmark = pytest.mark.anyio
CHEAP = {"allow_models": frozenset({"cheap"})}
ROUTES = [
    ("anthropic", "/v1/messages"),
    ("openai", "/v1/responses"),
    ("openai", "/v1/chat/completions"),
    ("openai-compat", "/v1/chat/completions"),
    ("openai-compat", "/v1/responses"),
    ("openai-compat", "/v1/messages"),
    ("openai-compat", "/v1/messages/count_tokens"),
    ("openrouter", "/api/v1/chat/completions"),
    ("openrouter", "/api/v1/responses"),
    ("openrouter", "/api/v1/messages"),
]


@pytest.mark.parametrize(("provider", "path"), ROUTES)
async def test_only_an_allowed_model_passes_on_every_route(provider, path):
    good = await ask(provider, {"model": "cheap", "messages": []}, path, **CHEAP)
    assert good.body == {"model": "cheap", "messages": []}
    bad = await ask(provider, {"model": "dear", "messages": []}, path, **CHEAP)
    assert (bad.status, bad.sent, bad.rule) == (403, [], "allow-model")
    assert (bad.record.refusal, bad.record.model_asked) in [
        ("allow-model", "dear"),
        ("allow-model", ""),  # count_tokens is no model call
    ]


async def test_a_refusal_names_the_flag_that_would_allow_it_and_what_is_allowed():
    told = await ask("anthropic", {"model": "dear"}, **CHEAP)
    assert "--allow-model dear" in told.message
    assert "cheap" in told.message


NAMING = [
    {"model": "dear"},
    {"models": ["cheap", "dear"], "route": "fallback"},
    {"models": "dear"},
    {"models": [{"id": "dear"}]},
    {"models": [{"slug": "dear"}]},
    {"fallbacks": ["dear"]},
    {"fallbacks": [{"model": "dear", "max_tokens": 5}]},
    {"fallback": "dear"},
    {"route": "fallback"},
    {"route": "sort", "models": []},
    {"preset": "cheap"},
    {"preset": {"slug": "dear"}},
    {"model": "@preset/cheap"},
    {"model": "cheap@preset/dear"},
    {"model": "cheap:floor"},
    {"model": "Cheap"},
    {"model": "cheap "},
    {"Model": "dear"},
    {"MODEL": "dear"},
    {"mo_del": "dear"},
    {"Models": ["dear"]},
    {"draft_model": "dear"},
    {"provider": {"fallback_models": ["dear"]}},
    {"plugins": [{"id": "auto-router", "allowed_models": ["dear"]}]},
    {"plugins": [{"id": "auto-router"}]},
    {"plugins": [{"id": "fusion", "analysis_models": ["cheap"]}]},
    {"plugins": [{"id": "web", "model": "dear"}]},
    {"plugins": [{"id": ["web"]}]},
    {"plugins": [{}]},
    {"plugins": {"id": "fusion"}},
    {"plugins": "fusion"},
    {"extra_body": {"model": "dear"}},
    {"extra_body": {"a": [{"b": {"models": ["dear"]}}]}},
    {"tools": [{"type": "advisor", "name": "advisor", "model": "dear"}]},
    {"tools": [{"type": "image_generation", "model": "dear"}]},
    {"tools": [{"type": "openrouter:image_generation", "parameters": {"model": "dear"}}]},
    {"tools": [{"type": "namespace", "tools": [{"type": "x", "model": "dear"}]}]},
    {"tools": {"type": "x", "model": "dear"}},
    {"input": [{"type": "additional_tools", "tools": [{"type": "x", "model": "dear"}]}]},
]


@pytest.mark.parametrize("extra", NAMING, ids=json.dumps)
@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-compat", "openrouter"])
async def test_no_other_field_lets_another_model_in(provider, extra):
    """R-1: a fallback, a router, a preset or a plugin is billed like a model named outright."""
    told = await ask(provider, {"model": "cheap", **extra}, **CHEAP)
    assert (told.status, told.sent, told.rule) == (403, [], "allow-model")


@pytest.mark.parametrize("model", [None, 7, True, ["cheap"], {"id": "cheap"}, ""])
async def test_a_request_that_names_no_model_takes_the_providers_choice_and_is_refused(model):
    told = await ask("openrouter", {"model": model, "messages": []}, **CHEAP)
    assert (told.status, told.sent) == (403, [])
    told = await ask("openrouter", {"messages": []}, **CHEAP)
    assert (told.status, told.sent) == (403, [])


HARMLESS = [
    {"models": ["cheap"], "route": "fallback"},
    {"fallbacks": [{"model": "cheap"}]},
    {"plugins": [{"id": "web", "max_results": 3}]},
    {"messages": [{"role": "user", "content": "x", "model": "dear"}]},
    {"metadata": {"model": "dear"}},
    {"tools": [{"type": "function", "function": {"parameters": {"properties": {"model": "d"}}}}]},
    {"tools": [{"name": "pick", "input_schema": {"properties": {"model": {"enum": ["dear"]}}}}]},
    {"tools": [{"type": "namespace", "tools": [{"name": "f", "parameters": {"model": "d"}}]}]},
    {"response_format": {"json_schema": {"schema": {"properties": {"model": {"const": "d"}}}}}},
    {"text": {"format": {"schema": {"model": "dear"}}}},
    {"input": [{"role": "user", "content": [{"type": "input_text", "text": "model"}]}]},
    {"input": ["dear"]},
    {"models": None, "route": None, "plugins": None, "preset": None, "fallbacks": []},
]


@pytest.mark.parametrize("extra", HARMLESS, ids=json.dumps)
async def test_what_only_looks_like_a_model_passes_unchanged(extra):
    body = {"model": "cheap", **extra}
    told = await ask("openrouter", body, **CHEAP)
    assert told.body == body


async def test_a_preset_can_be_allowed_by_name():
    allowed = frozenset({"cheap", "@preset/mine"})
    for body in ({"model": "@preset/mine"}, {"model": "cheap", "preset": "mine"}):
        assert (await ask("openrouter", body, allow_models=allowed)).body == body


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"dear","model":"cheap"}',
        b'{"model":"cheap","model":"dear"}',
        b'{"model":"cheap","mod\\u0065l":"cheap"}',
        b'{"model":"cheap","plugins":[{"id":"fusion","id":"web"}]}',
        b'{"model":"cheap","fallbacks":[{"model":"dear","model":"cheap"}]}',
        b'{"model":"cheap","tools":[{"model":"dear","model":"cheap"}]}',
        b'{"model":"cheap","input":[{"tools":[{"model":"dear"}],"tools":[]}]}',
        b'{"model":"cheap","tools":[],"tools":[{"model":"dear"}]}',
        b'{"model":"cheap","temperature":NaN}',
        b'{"model":"cheap","temperature":1e999}',
        b'{"model":"cheap","extra":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"model":"cheap","messages":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"model":"cheap","messages":"\xff"}',
        b'{"model":"cheap","extra":"' + b"x" * 600_000 + b'"}',
        b'["cheap"]',
        b"not json",
        b"",
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
async def test_a_body_that_can_be_read_in_two_ways_is_refused(body):
    """R-2, R-4: duplicates, NaN, depth, no object, no UTF-8: 400, and the provider sees nothing."""
    told = await ask("openrouter", body, **CHEAP)
    assert (told.status, told.sent, told.rule) == (400, [], "json")
    assert told.record.refusal == "json"


async def test_what_goes_out_is_encoded_from_what_was_judged():
    """R-2: not the bytes that came, but those that were read."""
    body = b' { "messages" : [ {"a": 1.50, "a": 2} ],\n "mod\\u0065l" : "cheap" } '
    told = await ask("openrouter", body, **CHEAP)
    assert told.sent == [b'{"messages":[ {"a": 1.50, "a": 2} ],"model":"cheap"}']


async def test_without_a_policy_the_bytes_pass_as_they_are():
    body = b' {"model":"a","model":"b", "x": NaN } '
    for provider in ("anthropic", "openai", "openrouter", "openai-compat"):
        assert (await ask(provider, body)).sent == [body]


@pytest.mark.parametrize(
    ("provider", "path", "has_type"),
    [
        ("anthropic", "", True),
        ("openai", "", False),
        ("openrouter", "", False),
        ("openrouter", "/api/v1/messages", True),
        ("openai-compat", "/v1/messages", True),
    ],
)
async def test_a_policys_refusal_has_the_callers_error_shape(provider, path, has_type):
    """R-18: each client gets the error its own library understands."""
    told = await ask(provider, {"model": "dear"}, path or PATHS[provider], **CHEAP)
    if has_type:
        assert told.answer["type"] == "error"
        assert told.answer["error"]["type"] == "permission_error"
    else:
        assert set(told.answer["error"]) == {"message", "type", "param", "code"}


async def test_a_model_in_the_path_is_judged_like_one_in_the_body():
    good = await ask("gemini", {"contents": []}, **CHEAP)
    assert good.body == {"contents": []}
    assert good.record.model_asked == "cheap"
    bad = await ask("gemini", {}, "/v1beta/models/dear:generateContent", **CHEAP)
    assert (bad.status, bad.sent, bad.record.refusal) == (403, [], "allow-model")
    both = await ask("gemini", {"model": "models/dear"}, **CHEAP)
    assert (both.status, both.sent) == (403, [])


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "ä", "x" * 300])
def test_a_name_that_no_model_has_is_refused(name):
    with pytest.raises(InvalidPolicy, match="--allow-model"):
        Policy(get_provider("anthropic"), allow_models=frozenset({name}))
