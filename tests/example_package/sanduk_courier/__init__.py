"""courier for sanduk: how it is started, and how its output is read."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from relay import Provider
from runs.agents.base import Agent, Launch, Reader, Request, Result, Tally, Trace
from runs.agents.evidence import count, sentence, shown, text_of

HERE = Path(__file__).resolve().parent
RECIPE = HERE / "courier.json"
KIT = HERE / "kits" / "plain-words"


class Courier(Agent):
    name = "courier"
    recipe = "courier"
    protocols = ("openai-chat",)
    honours = frozenset({"key_env", "base_url_env"})
    takes_stdin = True
    needs_model = True
    skills_dir = ".courier/skills"

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        model = request.model or provider.default_model
        env = {
            request.key_env or "COURIER_KEY": credential,
            request.base_url_env or "COURIER_URL": f"{root}{provider.prefix}",
        }
        return Launch(("--model", model), env, task_on_stdin=True)

    def reader(self) -> "CourierReader":
        return CourierReader()


class CourierReader(Reader):
    def __init__(self) -> None:
        self._result: Result | None = None

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        match record.get("kind"):
            case "says":
                return [Trace("text", text_of(record.get("text")))]
            case "does":
                return [Trace("tool", text_of(record.get("what")), shown(record.get("with")))]
            case "trouble":
                return [Trace("problem", sentence(record.get("error")))]
            case "end":
                self._result = self._ended(record)
        return []

    def _ended(self, record: dict[str, Any]) -> Result:
        ok = record.get("ok") is True
        used = Tally(count(record.get("in")), output_tokens=count(record.get("out")))
        error = "" if ok else sentence(record.get("error")) or "courier says that it failed"
        return Result(ok, text_of(record.get("text")), error, used)

    def result(self) -> Result | None:
        return self._result
