"""Runs inside an agent's container: a model that records what it is asked, then the agent.

    python3 recorder.py ENTRYPOINT ARG...

It listens on 127.0.0.1:8080, keeps each request body in $RECORD, answers as $ANSWER says and ends
with the agent's exit code. $ANSWER is JSON: {"status": 403}, or {"tool": name, "input": object}
for one tool call first; an empty object is a final text at once. It is the name server of its
container too, knows no name, and keeps those it is asked in $RECORD/names. Standard library only.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RECORD = Path(os.environ.get("RECORD", "/record"))
ANSWER: dict[str, Any] = json.loads(os.environ.get("ANSWER", "{}"))
FINAL = "Finished."
Event = tuple[str, dict[str, Any]]


def messages(model: str, tool: str | None) -> Iterator[Event]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    started = {"id": "m", "type": "message", "role": "assistant", "model": model, "content": []}
    yield "message_start", {"message": started | {"stop_reason": None, "usage": usage}}
    if tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(ANSWER["input"])}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": FINAL}
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    reason = {"stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None}
    yield "message_delta", {"delta": reason, "usage": {"output_tokens": 5}}
    yield "message_stop", {}


def responses(model: str) -> Iterator[Event]:
    text = {"type": "output_text", "text": FINAL, "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    response = {"id": "r", "object": "response", "model": model, "output": []}
    yield "response.created", {"response": response | {"status": "in_progress"}}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    done = {"status": "completed", "output": [item], "usage": usage}
    yield "response.completed", {"response": response | done}


def chat(model: str) -> Iterator[Event]:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": model}
    said = {"index": 0, "delta": {"role": "assistant", "content": FINAL}, "finish_reason": None}
    yield "", chunk | {"choices": [said]}
    yield "", chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    yield "", chunk | {"choices": [], "usage": usage}


def gemini(model: str) -> Iterator[Event]:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    said = {"content": {"role": "model", "parts": [{"text": FINAL}]}, "index": 0}
    candidates = [said | {"finishReason": "STOP"}]
    yield "", {"candidates": candidates, "usageMetadata": usage, "modelVersion": model}


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    asked = 0

    def log_message(self, *_: object) -> None:
        """Nothing: standard error is the agent's."""

    def do_GET(self) -> None:
        """A look at what there is besides the model: nothing. $RECORD/probes keeps its path."""
        with (RECORD / "probes").open("a") as probes:
            probes.write(f"{self.command} {self.path}\n")
        self.send(404, "application/json", '{"error": {"message": "nothing here"}}')

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path.endswith("/api/show"):  # hermes asks whether this is another kind of server
            self.do_GET()
            return
        with Model.lock:
            Model.asked += 1
            number = Model.asked
            (RECORD / f"{number}.json").write_bytes(body)
        if "status" in ANSWER:
            error = {"type": "refused", "message": "the recorder refuses"}
            if "/models/" in self.path:  # the Gemini API repeats the status as a code
                error["code"] = ANSWER["status"]
            self.send(ANSWER["status"], "application/json", json.dumps({"error": error}))
            return
        model = json.loads(body).get("model", "")
        if "/models/" in self.path:
            events = gemini(self.path)
        elif "/messages" in self.path:
            events = messages(model, ANSWER.get("tool") if number == 1 else None)
        else:
            events = responses(model) if "/responses" in self.path else chat(model)
        lines = [
            (f"event: {name}\n" if name else "")
            + f"data: {json.dumps({'type': name} | data if name else data)}\n\n"
            for name, data in events
        ]
        self.send(200, "text/event-stream", "".join(lines))

    def send(self, status: int, kind: str, text: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


def answer_names(server: socket.socket) -> None:
    """Say of each name that there is none: NXDOMAIN, with the question repeated."""
    while True:
        question, address = server.recvfrom(512)
        labels, at = [], 12
        while size := question[at]:
            labels.append(question[at + 1 : at + 1 + size].decode("ascii", "replace"))
            at += 1 + size
        with (RECORD / "names").open("a") as names:
            names.write(".".join(labels) + "\n")
        header = question[:2] + b"\x81\x83\x00\x01" + bytes(6)
        server.sendto(header + question[12 : at + 5], address)


if __name__ == "__main__":
    resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    resolver.bind(("127.0.0.1", 53))
    threading.Thread(target=answer_names, args=(resolver,), daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", 8080), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.exit(subprocess.run(sys.argv[1:], check=False).returncode)
