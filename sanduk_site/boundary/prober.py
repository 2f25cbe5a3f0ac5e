"""What stands in an agent's place while a box is probed: its program gets the relay's address."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relay import Provider
from runs.agents.base import Agent, Launch, Reader, Request, Result, Trace


class Prober(Agent):
    """Only ever started in a shell, with the image of a real agent."""

    name = "prober"
    recipe = "pi"
    protocols = ("openai-chat",)
    takes_stdin = True
    calls_model = False

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        return Launch(
            (),
            {"RELAY_URL": root + provider.prefix if root else "", "RELAY_TOKEN": credential},
            task_on_stdin=True,
        )

    def reader(self) -> Reader:
        return _Nothing()


class _Nothing(Reader):
    """A shell's output is read by whoever opened it."""

    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        return ()

    def result(self) -> Result | None:
        return None
