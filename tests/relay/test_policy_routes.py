"""--allow-path, a model in the path, --max-calls."""

from __future__ import annotations

import asyncio

import pytest

from relay.admission import Gate, Refusal
from relay.budget import Budget
from relay.policy import InvalidPolicy, Policy, extra_route
from relay.providers import get_provider
from relay.records import Ledger
from tests.relay.asking import ask
from tests.relay.stand import OK, TOKEN, plain, saying, sse, standing

pytestmark = pytest.mark.anyio
OPENAI = get_provider("openai")


async def test_an_added_path_passes_beside_the_routes_that_were_there():
    """R-16: one path more, and none less."""
    extra = (extra_route("/v1/embeddings", OPENAI),)
    async with standing(OK, "openai", extra_routes=extra) as stand:
        for path in ("/v1/embeddings", "/v1/responses", "/v1/chat/completions"):
            assert (await stand.post(path, json={})).status_code == 200
        async with stand.client() as client:
            bearer = {"authorization": f"Bearer {TOKEN}"}
            assert (await client.get("/v1/embeddings", headers=bearer)).status_code == 200
            assert (await client.get("/v1/models", headers=bearer)).status_code == 200
        assert (await stand.post("/v1/files", json={})).status_code == 403
        assert stand.records[0].protocol is None


async def test_a_path_that_was_not_added_is_refused_naming_the_flag():
    told = await ask("openai", {}, "/v1/embeddings")
    assert (told.status, told.sent) == (403, [])
    assert "--allow-path" in told.message


async def test_an_added_path_with_its_protocol_is_judged_and_metered():
    extra = (extra_route("/v2/chat=openai-chat", OPENAI),)
    assert extra[0].methods == {"POST"}
    policy = {"extra_routes": extra, "allow_models": frozenset({"m"}), "max_tokens_cap": 9}
    told = await ask("openai", {"model": "m", "stream": True}, "/v2/chat", **policy)
    assert told.body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 9,
    }
    assert told.record.protocol == "openai-chat"
    assert (await ask("openai", {"model": "x"}, "/v2/chat", **policy)).status == 403


async def test_an_added_path_without_a_protocol_names_no_other_model_either():
    extra = (extra_route("/v1/embeddings", OPENAI),)
    policy = {"extra_routes": extra, "allow_models": frozenset({"m"})}
    told = await ask("openai", {"model": "dear", "input": ["x"]}, "/v1/embeddings", **policy)
    assert (told.status, told.sent) == (403, [])
    told = await ask("openai", b"model=dear", "/v1/embeddings", **policy)
    assert (told.status, told.sent) == (400, [])
    told = await ask("openai", {"model": "m", "input": ["x"]}, "/v1/embeddings", **policy)
    assert told.body == {"model": "m", "input": ["x"]}


@pytest.mark.parametrize(
    "text",
    ["", "v1/x", "/v1/../x", "/v1//x", "/v1/%41", "/v1/x?y=1", "/v1/*", "/v1/x=talk", "/{model}x"],
)
def test_an_added_path_that_is_not_canonical_or_speaks_nothing_known_is_refused(text):
    with pytest.raises(InvalidPolicy, match="--allow-path"):
        extra_route(text, OPENAI)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "--allow-path x: 'x' is no canonical path: it begins with /"),
        ("/v1/foo?x=1", "--allow-path /v1/foo?x=1: give the path alone; no query"),
        ("/v1/foo#a=1", "--allow-path /v1/foo#a=1: give the path alone"),
        ("/v1/embeddings=", "there is no protocol ''; there are anthropic-messages, openai-chat"),
        ("/v1/x=talk", "there is no protocol 'talk'; there are anthropic-messages"),
    ],
)
def test_what_is_wrong_with_an_added_path_is_said_in_its_own_words(text, words):
    with pytest.raises(InvalidPolicy) as caught:
        extra_route(text, OPENAI)
    assert words in str(caught.value)
    assert "your own" not in str(caught.value)


def test_an_added_path_without_a_protocol_takes_get_and_post():
    assert extra_route("/v1/files", OPENAI).methods == {"GET", "POST"}


async def test_calls_on_an_added_path_count_and_free_ones_of_the_provider_do_not():
    extra = (extra_route("/v1/embeddings", OPENAI), extra_route("/v2/chat=openai-chat", OPENAI))
    async with standing(OK, "openai", extra_routes=extra, max_calls=3) as stand:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        async with stand.client(headers=bearer) as client:
            paths = [
                *("/v1/models", "/v1/embeddings", "/v1/models", "/v1/models", "/v1/embeddings")
            ]
            assert {(await client.get(path)).status_code for path in paths} == {200}
            assert (await client.post("/v2/chat", json={"model": "m"})).status_code == 200
            told = await client.get("/v1/embeddings")
            assert (told.status_code, told.json()["error"]["code"]) == (403, "max-calls")
            assert (await client.get("/v1/models")).status_code == 200


def test_a_route_cannot_be_replaced():
    """R-16."""
    for text in ("/v1/models", "/v1/responses=openai-chat"):
        with pytest.raises(InvalidPolicy, match="a route already"):
            Policy(OPENAI, extra_routes=(extra_route(text, OPENAI),))
    twice = (extra_route("/v1/x", OPENAI), extra_route("/v1/x=openai-chat", OPENAI))
    with pytest.raises(InvalidPolicy, match="a route already"):
        Policy(OPENAI, extra_routes=twice)


def test_under_a_budget_an_added_path_names_its_protocol():
    """Else its calls would cost what nobody counts."""
    budget = Budget(usd=1)
    with pytest.raises(InvalidPolicy, match="openai-chat"):
        Policy(OPENAI, extra_routes=(extra_route("/v1/embeddings", OPENAI),), budget=budget)
    Policy(OPENAI, extra_routes=(extra_route("/v1/x=openai-chat", OPENAI),), budget=budget)


def admitted(target: str, provider: str = "gemini"):
    scope = {"method": "POST", "raw_target": target.encode()}
    headers = [(b"host", b"relay"), (b"x-goog-api-key", TOKEN.encode())]
    return Gate(get_provider(provider), TOKEN).admit(scope, headers)


@pytest.mark.parametrize("name", ["gemini-3-pro-preview", "gemini-2.5-flash", "a", "m_1.x-2"])
def test_a_models_name_may_stand_in_the_path(name):
    result = admitted(f"/v1beta/models/{name}:generateContent")
    assert (result.model, result.route.protocol) == (name, "gemini")
    assert result.target.decode() == f"/v1beta/models/{name}:generateContent"
    streamed = admitted(f"/v1beta/models/{name}:streamGenerateContent?alt=sse")
    assert streamed.model == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "...", "a/b", "a:b", "a%2fb", "a;b", "a@b", "a b", "-a", "a-", ".a", "é"),
        *("a" * 129, "a?x", "a#b", "a\\b", "{model}", "a//b", "../../v1/files"),
    ],
)  # fmt: skip
def test_what_could_be_more_than_a_models_name_does_not_pass(name):
    with pytest.raises(Refusal) as caught:
        admitted(f"/v1beta/models/{name}:generateContent")
    assert caught.value.status in (400, 403)


@pytest.mark.parametrize(
    "target",
    [
        "/v1beta/models/m:generateContent/x",
        "/v1beta/models/m:deleteEverything",
        "/v1beta/models/m",
        "/v1beta/tunedModels/m:generateContent",
        "/v1beta/models/m:generateContent?key=abc",
        "/v1beta/models/m:generateContent?$alt=sse",
    ],
)
def test_only_the_operations_of_a_route_pass(target):
    with pytest.raises(Refusal) as caught:
        admitted(target)
    assert caught.value.status in (400, 403, 405)


async def test_no_more_calls_go_out_than_allowed_and_refused_ones_do_not_count():
    message = {"type": "message", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}
    reply = saying(plain(sse(message), "content-type: text/event-stream"))
    allowed = {"max_calls": 2, "allow_models": frozenset({"m"})}
    async with standing(reply, **allowed) as stand:
        assert (await stand.post(json={"model": "other"})).status_code == 403
        assert (await stand.post("/v1/messages/count_tokens", json={})).status_code == 200
        answers = await asyncio.gather(*[stand.post(json={"model": "m"}) for _ in range(5)])
        assert sorted(answer.status_code for answer in answers) == [200, 200, 403, 403, 403]
        refused = next(answer for answer in answers if answer.status_code == 403)
        assert "--max-calls" in refused.json()["error"]["message"]
        assert [r.refusal for r in stand.records].count("max-calls") == 3
        assert len(stand.provider.seen) == 3
        assert not stand.ledger.exhausted


def test_a_ledger_starts_with_nothing_spent():
    ledger = Ledger()
    assert (ledger.spent_usd, ledger.tokens, ledger.clamped, ledger.exhausted) == (0, 0, 0, False)
