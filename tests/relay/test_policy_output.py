"""--max-tokens-cap: whatever a request says, its answer has no more tokens (R-3)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.judging import Body, ThinkingTooLarge
from relay.policy import InvalidPolicy, Policy
from relay.protocols import DIALECTS
from relay.providers import get_provider
from tests.relay.asking import PATHS, ask

pytestmark = pytest.mark.anyio
CAP = {"max_tokens_cap": 2000}
OWN = [
    ("anthropic", "/v1/messages", "max_tokens"),
    ("openai", "/v1/responses", "max_output_tokens"),
    ("openai", "/v1/chat/completions", "max_completion_tokens"),
    ("openai-compat", "/v1/chat/completions", "max_completion_tokens"),
    ("openrouter", "/api/v1/chat/completions", "max_completion_tokens"),
    ("openrouter", "/api/v1/responses", "max_output_tokens"),
    ("openrouter", "/api/v1/messages", "max_tokens"),
]


@pytest.mark.parametrize(("provider", "path", "own"), OWN)
async def test_a_limit_is_lowered_added_or_left_alone(provider, path, own):
    lowered = await ask(provider, {"model": "m", own: 64_000}, path, **CAP)
    assert lowered.body == {"model": "m", own: 2000}
    assert lowered.record.clamped
    added = await ask(provider, {"model": "m"}, path, **CAP)
    assert added.body == {"model": "m", own: 2000}
    assert added.record.clamped
    kept = await ask(provider, {"model": "m", own: 1999}, path, **CAP)
    assert kept.body == {"model": "m", own: 1999}
    assert not kept.record.clamped


NO_LIMIT = [-1, 0, True, False, 1999.0, 1e300, "5", "unlimited", [5], {"n": 5}, 10**40]


@pytest.mark.parametrize("value", NO_LIMIT, ids=repr)
@pytest.mark.parametrize(("provider", "path", "own"), OWN)
async def test_a_value_that_is_no_limit_becomes_the_cap(provider, path, own, value):
    """R-3: -1 is no bound at all to llama.cpp, and true is 1 or an error."""
    told = await ask(provider, {own: value}, path, **CAP)
    assert told.body == {own: 2000}
    assert told.record.clamped


@pytest.mark.parametrize(("provider", "path", "own"), OWN)
async def test_a_null_limit_is_none(provider, path, own):
    told = await ask(provider, {own: None}, path, **CAP)
    assert told.body == {own: 2000}


OTHER = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens_to_sample",
    "max_new_tokens",
    "n_predict",
    "num_predict",
    "maxOutputTokens",
    "Max_Tokens",
    "MAX_TOKENS",
    "maxTokens",
    "max_toKens",
]


@pytest.mark.parametrize("field", OTHER)
@pytest.mark.parametrize(("provider", "path", "own"), OWN[:4])
async def test_no_other_spelling_gets_round_the_cap(provider, path, own, field):
    """R-3: a legacy max_tokens beside the new one, llama.cpp's n_predict, a server without case."""
    for value in (50_000, -1, True):
        told = await ask(provider, {own: 5, field: value}, path, **CAP)
        assert told.body[field] == 2000
    nested = await ask(provider, {own: 5, "options": {"x": [{field: 50_000}]}}, path, **CAP)
    assert nested.body["options"] == {"x": [{field: 2000}]}


async def test_the_older_chat_spelling_is_enough_where_it_is_used():
    """Providers refuse a request that has both."""
    told = await ask("openai", {"max_tokens": 9000}, "/v1/chat/completions", **CAP)
    assert told.body == {"max_tokens": 2000}


async def test_a_limit_only_one_server_knows_is_not_enough():
    told = await ask("openai-compat", {"n_predict": 100}, **CAP)
    assert told.body == {"n_predict": 100, "max_completion_tokens": 2000}


@pytest.mark.parametrize("field", ["n", "best_of", "n_cmpl", "num_return_sequences", "N"])
@pytest.mark.parametrize("value", [50, -1, 0, True, "9", 2.0])
async def test_several_answers_are_one(field, value):
    """R-3: n multiplies whatever the cap allows."""
    told = await ask("openai-compat", {"max_tokens": 5, field: value}, **CAP)
    assert told.body == {"max_tokens": 5, field: 1}
    assert told.record.clamped


async def test_one_answer_is_no_change():
    told = await ask("openai-compat", {"max_tokens": 5, "n": 1, "best_of": None}, **CAP)
    assert told.body == {"max_tokens": 5, "n": 1, "best_of": None}
    assert not told.record.clamped


async def test_a_fallbacks_own_limit_is_lowered_too():
    told = await ask("anthropic", {"max_tokens": 5, "fallbacks": [{"max_tokens": 9000}]}, **CAP)
    assert told.body["fallbacks"] == [{"max_tokens": 2000}]


async def test_tools_in_a_conversation_are_limited_and_its_text_is_not_touched():
    text = [{"type": "message", "content": [{"text": "max_tokens", "n": 5}]}]
    tool = {"type": "additional_tools", "tools": [{"type": "x", "max_tokens": 9000}]}
    told = await ask("openai", {"max_output_tokens": 5, "input": [*text, tool]}, **CAP)
    assert told.body["input"] == [*text, {**tool, "tools": [{"type": "x", "max_tokens": 2000}]}]


async def test_schemas_and_messages_are_not_touched():
    body = {
        "max_completion_tokens": 5,
        "messages": [{"role": "user", "content": "x", "max_tokens": 9000, "n": 4}],
        "tools": [{"type": "function", "function": {"parameters": {"properties": {"n": {}}}}}],
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"n": 9}}},
        "metadata": {"n": "7"},
    }
    assert (await ask("openai-compat", body, **CAP)).body == body


@pytest.mark.parametrize(
    ("budget", "cap", "becomes"), [(32_000, 2100, 1050), (32_000, 1500, 1024), (1500, 1600, 1500)]
)
async def test_a_thinking_budget_stays_where_anthropic_takes_it(budget, cap, becomes):
    """R-3: below max_tokens and not below 1024, or the provider answers 400."""
    thinking = {"type": "enabled", "budget_tokens": budget}
    body = {"max_tokens": 64_000, "thinking": thinking}
    told = await ask("anthropic", body, max_tokens_cap=cap)
    assert told.body == {"max_tokens": cap, "thinking": {**thinking, "budget_tokens": becomes}}
    body = {"max_tokens": 64_000, "reasoning": {"max_tokens": budget, "effort": "low"}}
    told = await ask("openrouter", body, max_tokens_cap=cap)
    assert told.body["reasoning"] == {"effort": "low", "max_tokens": becomes}


async def test_a_cap_without_room_for_thinking_is_said_and_not_sent():
    thinking = {"type": "enabled", "budget_tokens": 32_000}
    told = await ask("anthropic", {"thinking": thinking}, max_tokens_cap=1024)
    assert (told.status, told.sent, told.rule) == (403, [], "max-tokens-cap")
    assert "1024" in told.message
    assert "--max-tokens-cap" in told.message


async def test_adaptive_and_absent_thinking_is_left_alone():
    thinking = {"type": "adaptive", "display": "updates"}
    told = await ask("anthropic", {"max_tokens": 9, "thinking": thinking}, max_tokens_cap=100)
    assert told.body == {"max_tokens": 9, "thinking": thinking}


@pytest.mark.parametrize("outer", ["generationConfig", "generation_config"])
async def test_googles_limits_are_inside_its_generation_config(outer):
    inner = {"temperature": 1, "maxOutputTokens": 9000, "candidateCount": 4}
    told = await ask("gemini", {"contents": [], outer: inner}, **CAP)
    assert told.body[outer] == {"temperature": 1, "maxOutputTokens": 2000, "candidateCount": 1}
    inner = {"thinkingConfig": {"thinkingBudget": 9000}}
    told = await ask("gemini", {"contents": [], outer: inner}, **CAP)
    assert told.body[outer]["thinkingConfig"] == {"thinkingBudget": 1000}
    assert 2000 in told.body[outer].values()
    for budget in (-1, 0):
        inner = {"thinkingConfig": {"thinkingBudget": budget}}
        told = await ask("gemini", {"contents": [], outer: inner}, **CAP)
        assert told.body[outer]["thinkingConfig"] == {"thinkingBudget": budget}


async def test_google_gets_a_generation_config_where_there_is_none():
    told = await ask("gemini", {"contents": []}, **CAP)
    assert told.body == {"contents": [], "generationConfig": {"maxOutputTokens": 2000}}


async def test_a_call_that_is_no_model_call_gets_no_limit_added():
    told = await ask("anthropic", {"model": "m"}, "/v1/messages/count_tokens", **CAP)
    assert told.body == {"model": "m"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"max_tokens":5,"max_tokens":9000}',
        b'{"max_tokens":9000,"max_tokens":5}',
        b'{"max_tokens":5,"options":{"n":1,"n":50}}',
        b'{"max_tokens":NaN}',
        b'{"max_tokens":1e999}',
        b"[]",
    ],
)
@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-compat", "openrouter"])
async def test_a_body_with_two_readings_is_refused(provider, body):
    """R-2."""
    told = await ask(provider, body, **CAP)
    assert (told.status, told.sent, told.rule) == (400, [], "json")


@pytest.mark.parametrize("value", [0, -1, True, 2.5, "5"])
@pytest.mark.parametrize("field", ["max_tokens_cap", "max_calls", "max_body_bytes"])
def test_a_limit_of_the_policy_is_a_whole_number_above_0(field, value):
    with pytest.raises(InvalidPolicy, match="above 0"):
        Policy(get_provider("anthropic"), **{field: value})


FIELDS = st.sampled_from([*OTHER, "n", "best_of", "candidateCount", "temperature", "options"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-10, 10**7)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
)
SETTINGS = st.dictionaries(
    FIELDS,
    SCALARS | st.dictionaries(FIELDS, SCALARS, max_size=3) | st.lists(SCALARS, max_size=2),
    max_size=5,
)


@settings(deadline=None)
@given(fields=SETTINGS, limit=st.integers(1, 100_000), protocol=st.sampled_from([*DIALECTS]))
def test_no_body_asks_for_more_than_the_limit_once_it_is_set(fields, limit, protocol):
    """Whatever is in a body: afterwards its bound is known, not above the limit, and stays so."""
    body = Body(json.dumps(fields).encode())
    body.limit_output(DIALECTS[protocol], limit)
    again = Body(body.encoded())
    bound = again.output_bound(DIALECTS[protocol])
    assert bound is not None
    assert 1 <= bound <= limit
    assert not again.limit_output(DIALECTS[protocol], limit)


def test_thinking_that_does_not_fit_is_an_error_of_its_own():
    body = Body(b'{"thinking":{"budget_tokens":5000}}')
    with pytest.raises(ThinkingTooLarge, match="1024"):
        body.limit_output(None, 1000)


STREAMED = {"model": "m", "stream": True}


@pytest.mark.parametrize("policy", [{}, {"max_tokens_cap": 10**6}], ids=["none", "cap"])
@pytest.mark.parametrize("provider", ["openai", "openai-compat"])
async def test_streamed_chat_completions_are_asked_for_their_usage(provider, policy):
    path = "/v1/chat/completions"
    body = {**STREAMED, "max_tokens": 5}
    for options in ({}, {"stream_options": None}, {"stream_options": {"include_usage": False}}):
        told = await ask(provider, {**body, **options}, path, **policy)
        assert told.body == {**body, "stream_options": {"include_usage": True}}
        assert not told.record.clamped
    more = {"include_obfuscation": False}
    told = await ask(provider, {**body, "stream_options": more}, path, **policy)
    assert told.body["stream_options"] == {**more, "include_usage": True}


@pytest.mark.parametrize("policy", [{}, {"max_tokens_cap": 10**6}], ids=["none", "cap"])
@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("anthropic", "/v1/messages"),
        ("openai", "/v1/responses"),
        ("openai-compat", "/v1/messages"),
        ("openai-compat", "/v1/responses"),
        *[("openrouter", f"/api/v1/{name}") for name in ("chat/completions", "responses")],
    ],
)
async def test_no_other_call_gets_the_usage_option(provider, path, policy):
    """Responses refuses it, OpenRouter tells its usage unasked."""
    told = await ask(provider, STREAMED, path, **policy)
    assert "stream_options" not in told.body


@pytest.mark.parametrize(
    "body",
    [
        b'{"stream": false}',
        b'{"stream": "true"}',
        b'{"stream" : true, "stream_options" : {"include_usage" : true}}',
        b'{"stream" : true, "stream_options" : []}',
        b'{"stream" : true, "stream" : true}',
        b'{"stream" : true, "x" : NaN}',
        b"[]",
        b"stream",
    ],
)
async def test_a_body_that_needs_or_allows_no_usage_option_passes_as_it_is(body):
    assert (await ask("openai", body, PATHS["openai-compat"])).sent == [body]
