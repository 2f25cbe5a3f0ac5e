"""Google's protocol: its errors, its counts, and the scripted model that speaks it."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relay
from relay.budget import Budget
from relay.meter import Meter
from relay.protocols import dialect, gemini
from relay.records import Usage
from relay.rehearsal import create_rehearsal_app
from tests.relay.stand import KEY, TOKEN, Stand, plain, saying, standing

TASK = "Summarise every file here."
DIGEST = "ab" * 32
SHELL = {
    "name": "run_shell_command",
    "parametersJsonSchema": {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "description": {"type": "string"},
            "is_background": {"type": "boolean"},
        },
        "required": ["command", "is_background"],
    },
}
OTHER = {"name": "read_file", "parametersJsonSchema": {"type": "object", "properties": {}}}
USAGE = Usage(input_tokens=400, cache_read_tokens=250, output_tokens=44, reasoning_tokens=4)
COUNTS = {
    "promptTokenCount": 900,
    "cachedContentTokenCount": 200,
    "toolUsePromptTokenCount": 30,
    "candidatesTokenCount": 70,
    "thoughtsTokenCount": 7,
    "totalTokenCount": 1007,
}


def event(finish: str = "", **more) -> dict:
    candidate = {"content": {"role": "model", "parts": [{"text": "usage of words"}]}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini-3.8-flash", **more}


STREAM = [
    event(usageMetadata={"promptTokenCount": 900, "totalTokenCount": 900}),
    event(usageMetadata={**COUNTS, "candidatesTokenCount": 3, "thoughtsTokenCount": 7}),
    event("STOP", usageMetadata=COUNTS),
]


# -- the protocol --------------------------------------------------------------------------------
def test_input_holds_the_cached_tokens_and_output_the_thinking():
    assert gemini.usage(COUNTS) == Usage(
        input_tokens=930, cache_read_tokens=200, output_tokens=77, reasoning_tokens=7
    )


@pytest.mark.parametrize("counts", [{}, {"promptTokenCount": "9"}, {"promptTokenCount": -1}])
def test_counts_that_are_none_are_not_reported(counts):
    assert gemini.usage(counts) == Usage()


def test_thinking_alone_is_output():
    assert gemini.usage({"thoughtsTokenCount": 5}).output_tokens == 5


def test_a_refusal_has_googles_shape():
    refused = dialect("gemini").refusal(402, "budget", "nothing is left")["error"]
    assert (refused["code"], refused["status"]) == (402, "FAILED_PRECONDITION")
    assert refused["message"] == "nothing is left"
    assert refused["details"][0]["reason"] == "budget"
    assert gemini.refusal(418, "x", "y")["error"]["status"] == "INVALID_ARGUMENT"
    assert gemini.refusal(502, "x", "y")["error"]["status"] == "UNAVAILABLE"


def test_only_the_last_event_has_told_everything():
    readings = [gemini.read(json.dumps(each).encode()) for each in STREAM]
    assert [reading.is_final for reading in readings] == [False, False, True]
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": COUNTS}
    assert gemini.read(json.dumps(blocked).encode()).is_final


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@given(data=st.data())
def test_a_stream_cut_at_any_byte_is_read_as_running_totals(newline, data):
    wire = "".join(f"data: {json.dumps(each)}{newline}{newline}" for each in STREAM).encode()
    cut = data.draw(st.integers(0, len(wire)))
    meter = Meter("gemini", b"text/event-stream", b"")
    meter.feed(wire[:cut])
    meter.feed(wire[cut:])
    meter.finish()
    assert meter.usage == gemini.usage(COUNTS)
    assert meter.raw == COUNTS
    assert meter.model == "gemini-3.8-flash"


@pytest.mark.parametrize("whole", [event("STOP", usageMetadata=COUNTS), STREAM])
def test_one_document_and_an_array_of_events_are_read(whole):
    meter = Meter("gemini", b"application/json; charset=UTF-8", b"")
    meter.feed(json.dumps(whole, indent=2).encode())
    meter.finish()
    assert meter.raw == COUNTS
    assert meter.model == "gemini-3.8-flash"


def test_the_counts_of_a_document_too_large_to_parse_are_found_at_its_end():
    meter = Meter("gemini", b"application/json", b"")
    long = {**event("STOP"), "padding": "x" * (17 * 1024 * 1024), "usageMetadata": COUNTS}
    meter.feed(json.dumps(long).encode())
    meter.finish()
    assert meter.raw == COUNTS


@pytest.mark.parametrize(
    "body",
    [b"[]", b"null", b"[1]", b'{"usageMetadata":[]}', b'{"candidates":[1]}', b'{"candidates":{}}'],
)
def test_an_answer_of_another_shape_reports_nothing(body):
    meter = Meter("gemini", b"application/json", b"")
    meter.feed(body)
    meter.finish()
    assert meter.usage is None


# -- the scripted model --------------------------------------------------------------------------
def asking(task=TASK, *tools, results=(), **more):
    contents = [{"role": "user", "parts": [{"text": "<session_context>"}, {"text": task}]}]
    for result in results:
        call = {"functionCall": {"name": "run_shell_command", "args": {}}}
        answer = {"name": "run_shell_command", "response": {"output": result}}
        contents += [
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [{"functionResponse": answer}]},
        ]
    offered = [{"functionDeclarations": list(tools)}] if tools else []
    return {"contents": contents, "tools": offered, **more}


async def ask(body, operation="generateContent", method="POST", path="/v1beta/models/m"):
    transport = httpx.ASGITransport(create_rehearsal_app())
    async with httpx.AsyncClient(transport=transport, base_url="http://model") as client:
        url = f"{path}:{operation}" if operation else path
        return await client.request(method, url, json=body)


async def turn(body, operation="generateContent"):
    """The text and the function calls of an answer, streamed or not, and its last counts."""
    answer = await ask(body, operation)
    assert answer.status_code == 200
    if operation.endswith("alt=sse"):
        assert answer.headers["content-type"] == "text/event-stream"
        lines = [line for line in answer.text.split("\r\n\r\n") if line]
        documents = [json.loads(line.removeprefix("data: ")) for line in lines]
    else:
        documents = answer.json() if isinstance(answer.json(), list) else [answer.json()]
    assert [d["candidates"][0].get("finishReason") for d in documents][-1] == "STOP"
    assert all(document["modelVersion"] == "m" for document in documents)
    parts = [part for d in documents for part in d["candidates"][0]["content"]["parts"]]
    text = "".join(part.get("text", "") for part in parts)
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return text, calls, documents[-1]["usageMetadata"]


OPERATIONS = ["generateContent", "streamGenerateContent?alt=sse", "streamGenerateContent"]


@pytest.mark.anyio
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_first_turn_calls_the_shell_and_the_second_quotes_what_it_gave(operation):
    text, calls, counts = await turn(asking(TASK, OTHER, SHELL), operation)
    assert text
    assert [call["name"] for call in calls] == ["run_shell_command"]
    assert "REPORT.md" in calls[0]["args"]["command"]
    assert calls[0]["args"]["is_background"] is False
    assert gemini.usage(counts) == USAGE
    text, calls, _ = await turn(asking(TASK, SHELL, results=[f"sha256 {DIGEST}"]), operation)
    assert calls == []
    assert DIGEST in text


@pytest.mark.anyio
async def test_types_that_google_shouts_are_understood():
    schema = {
        "type": "OBJECT",
        "properties": {"command": {"type": "STRING"}, "wait": {"type": "INTEGER"}},
        "required": ["command", "wait"],
    }
    _, calls, _ = await turn(asking(TASK, {"name": "shell", "parameters": schema}))
    assert calls[0]["args"]["wait"] == 1
    assert isinstance(calls[0]["args"]["command"], str)


@pytest.mark.anyio
async def test_a_question_that_wants_json_gets_json_of_that_shape():
    schema = {
        "type": "OBJECT",
        "properties": {"reasoning": {"type": "STRING"}, "score": {"type": "INTEGER"}},
    }
    settings = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    text, _, _ = await turn(asking(generationConfig=settings))
    assert json.loads(text) == {"reasoning": "rehearsal", "score": 1}


@pytest.mark.anyio
async def test_a_task_may_steer_it():
    answer = await ask(asking("rehearsal: status 429", SHELL))
    assert answer.status_code == 429
    assert answer.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    _, calls, _ = await turn(asking("rehearsal: command echo hi", SHELL))
    assert calls[0]["args"]["command"] == "echo hi"


@pytest.mark.anyio
async def test_it_lists_itself_and_counts_tokens():
    listed = await ask(None, operation="", method="GET", path="/v1beta/models")
    assert listed.json()["models"][0]["name"] == "models/rehearsal"
    counted = await ask(asking(), "countTokens")
    assert counted.json()["totalTokens"] > 0
    unknown = await ask(asking(), "embedContent")
    assert unknown.status_code == 404


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [
        [],
        {"contents": {}},
        {"contents": [1, {"parts": 1}, {"role": "user", "parts": [1, {"text": 1}]}]},
        {"contents": [{"role": "user", "parts": [{"functionResponse": {"response": 1}}]}]},
        {"tools": [{"functionDeclarations": {}}, {"functionDeclarations": [1, {"name": 1}]}]},
        {"generationConfig": {"responseMimeType": "application/json", "responseSchema": 1}},
    ],
)
async def test_no_body_brings_it_down(body):
    assert (await ask(body)).status_code in (200, 400)


# -- through the relay ---------------------------------------------------------------------------
GENERATE = "/v1beta/models/gemini-3.8-flash:generateContent"
STREAM_PATH = "/v1beta/models/gemini-3.8-flash:streamGenerateContent"
GOOD = saying(plain(json.dumps(event("STOP", usageMetadata=COUNTS)).encode()))


async def post(stand: Stand, path=GENERATE, body=None, **headers):
    sent = {"x-goog-api-key": TOKEN, "x-api-key": "", "authorization": "", **headers}
    return await stand.post(path, json=asking() if body is None else body, headers=sent)


@pytest.mark.anyio
async def test_the_key_takes_the_place_of_the_token_and_usage_is_read():
    async with standing(GOOD, "gemini") as stand:
        assert (await post(stand)).status_code == 200
        seen = stand.provider.seen[0]
        assert seen.target == GENERATE
        assert seen.values("x-goog-api-key") == [KEY]
        record = await stand.record()
        assert record.protocol == "gemini"
        assert record.model_asked == "gemini-3.8-flash"
        assert record.usage == gemini.usage(COUNTS)
        assert record.completed


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{STREAM_PATH}?alt=sse", 200),
        (STREAM_PATH, 200),
        (f"{GENERATE}?alt=sse", 403),
        (f"{STREAM_PATH}?key=stolen", 403),
        ("/v1beta/models/gemini-3.8-flash:countTokens", 200),
        ("/v1beta/models/gemini-3.8-flash:batchGenerateContent", 403),
        ("/v1beta/models/a/b:generateContent", 403),
        ("/v1beta/models/..:generateContent", 403),
        ("/v1beta/models/%2e%2e:generateContent", 400),
        ("/v1beta/files", 403),
    ],
)
async def test_which_of_googles_paths_pass(path, status):
    async with standing(GOOD, "gemini") as stand:
        answer = await post(stand, path)
        assert answer.status_code == status
        if status != 200:
            assert answer.json()["error"]["code"] == status
            assert stand.provider.seen == []


@pytest.mark.anyio
async def test_a_missing_token_is_told_in_googles_shape():
    async with standing(GOOD, "gemini") as stand:
        answer = await post(stand, **{"x-goog-api-key": "wrong"})
        assert answer.json()["error"]["status"] == "UNAUTHENTICATED"


@pytest.mark.anyio
async def test_the_model_in_the_path_is_judged():
    async with standing(GOOD, "gemini", allow_models=frozenset({"gemini-3.8-flash"})) as stand:
        assert (await post(stand)).status_code == 200
        refused = await post(stand, GENERATE.replace("3.8-flash", "3.1-pro"))
        assert refused.status_code == 403
        assert "--allow-model gemini-3.1-pro" in refused.json()["error"]["message"]
        assert len(stand.provider.seen) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        (None, {"maxOutputTokens": 50}),
        ({}, {"maxOutputTokens": 50}),
        ({"temperature": 1}, {"temperature": 1, "maxOutputTokens": 50}),
        ({"maxOutputTokens": 10}, {"maxOutputTokens": 10}),
        ({"maxOutputTokens": 5000}, {"maxOutputTokens": 50}),
        ({"max_output_tokens": 5000}, {"max_output_tokens": 50}),
        ({"maxOutputTokens": -1}, {"maxOutputTokens": 50}),
        ({"maxOutputTokens": True}, {"maxOutputTokens": 50}),
        ({"maxOutputTokens": 9, "candidateCount": 8}, {"maxOutputTokens": 9, "candidateCount": 1}),
    ],
)
async def test_every_bound_on_output_is_capped(settings, sent):
    body = asking() if settings is None else asking(generationConfig=settings)
    async with standing(GOOD, "gemini", max_tokens_cap=50) as stand:
        assert (await post(stand, body=body)).status_code == 200
        assert json.loads(stand.provider.seen[0].body)["generationConfig"] == sent


@pytest.mark.anyio
async def test_a_budget_is_charged_from_its_counts():
    async with standing(GOOD, "gemini", budget=Budget(tokens=1500)) as stand:
        body = asking(generationConfig={"maxOutputTokens": 100})
        assert (await post(stand, body=body)).status_code == 200
        await stand.record()
        assert stand.ledger.tokens == 930 + 77
        assert (await post(stand, body=body)).status_code == 200
        spent = await post(stand, body=body)
        assert spent.status_code == 402
        assert spent.json()["error"]["status"] == "FAILED_PRECONDITION"


@contextlib.asynccontextmanager
async def rehearsed():
    """The relay in front of the scripted model."""
    with tempfile.TemporaryDirectory() as directory:
        model, path = Path(directory) / "model.sock", Path(directory) / "relay.sock"
        records: list[relay.CallRecord] = []
        policy = relay.Policy(relay.get_provider("rehearsal"), relay.Endpoint.at_socket(str(model)))
        ledger = relay.Ledger(on_call=records.append)
        app = relay.create_app(policy, None, TOKEN, ledger)
        async with (
            relay.serving(create_rehearsal_app(), relay.bind_unix(model)),
            relay.serving(app, relay.bind_unix(path)),
        ):
            transport = httpx.AsyncHTTPTransport(uds=str(path))
            headers = {"x-goog-api-key": TOKEN}
            async with httpx.AsyncClient(
                transport=transport, base_url="http://relay", headers=headers
            ) as client:
                yield client, records


@pytest.mark.anyio
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_relay_reads_the_scripted_models_usage(operation):
    async with rehearsed() as (client, records):
        answer = await client.post(f"/v1beta/models/rehearsal:{operation}", json=asking())
        assert answer.status_code == 200
        assert (await client.get("/v1beta/models")).status_code == 200
    assert records[0].usage == USAGE
    assert records[0].model_answered == "rehearsal"
    assert records[0].completed
