"""The contract between sanduk and an agent's command line.

A handler says how one agent is started and how its output is read. It starts nothing itself and
knows nothing of containers: it turns a request into argv and environment, and records into trace
lines and one result. docs/agents.md shows how to write one.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from relay import Protocol, Provider, get_provider, provider_names

REPORT_NAME = "REPORT.md"
ARGV_ELEMENT_BYTES = 131_071  # Linux: MAX_ARG_STRLEN, 32 pages, less the closing NUL
SEED_BYTES = 100_000  # in one argument, a flag's name before it
TraceKind = Literal["text", "tool", "problem", "note"]
_VARIABLES = ("key_env", "base_url_env")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class AgentRefusal(Exception):
    """The request cannot work with this agent; the text says why and what would."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked of the agent. None and empty mean: not asked for."""

    model: str | None = None
    effort: str | None = None
    max_turns: int | None = None
    allowed_tools: str | None = None
    permission_mode: str | None = None
    bare: bool = False
    key_env: str | None = None  # the variable that holds the key, instead of the agent's usual one
    base_url_env: str | None = None  # the same of the model's address


@dataclass(frozen=True, slots=True)
class Launch:
    """How the agent's process is started inside its container.

    `argv` follows the image's entrypoint. `env` may hold the run token or, in open mode, the key:
    it enters the container by a file and never stands in an argv. With `task_on_stdin` the task is
    the whole standard input; otherwise it is the last element of `argv`. `home_files` are texts
    by their path in the agent's home; one that the image has there already stays.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    task_on_stdin: bool = False
    before_task: str = ""  # goes before the task on standard input
    home_files: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Sitting:
    """What a person who sits before the agent themselves asked for.

    Args:
        workdir: where in the container it works; it asks no question about it.
        seed: the first message, as if the person had typed it; "" for none.
        asks: it asks before it does what it would ask for by itself, instead of never.
    """

    workdir: str
    seed: str = ""
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Trace:
    """One line of the live trace. The text is the agent's own: hostile, possibly long."""

    kind: TraceKind
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """What the agent says it used. None means it did not say.

    `input_tokens` is everything that went in, cache reads and writes included.
    """

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    turns: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What the agent's terminal record says. Evidence, not truth: supervise cross-checks it.

    `needs_input` is a structured sign that the agent's last act was to ask for an answer or a
    permission; it may stand beside `ok`, since an agent that asks usually ends without an error.
    """

    ok: bool
    text: str = ""
    error: str = ""
    tally: Tally = field(default_factory=Tally)
    needs_input: bool = False
    rate_limited: bool = False
    resets_at: float | None = None  # epoch seconds, when the provider said


class Reader(ABC):
    """Reads one agent's output. A fresh one for every run.

    Records are hostile: any field may be missing, null or of another type, and no method may
    raise because of what it was given.
    """

    @abstractmethod
    def record(self, record: dict[str, Any]) -> Iterable[Trace]:
        """One JSON object from a line of standard output."""

    def line(self, text: str) -> Iterable[Trace]:
        """One line of standard output that is no JSON object."""
        return ()

    def raw(self, data: bytes) -> None:  # noqa: B027 - most read lines alone
        """A piece of standard output as it came, wherever it is cut; keys are taken out of it."""

    @abstractmethod
    def result(self) -> Result | None:
        """The result so far, or None when no terminal record was seen."""


class Agent(ABC):
    """One agent's command line. Subclass it, and offer it by the entry point `sanduk.agents`."""

    name: ClassVar[str]
    recipe: ClassVar[str]  # the shipped recipe its image is built from
    protocols: ClassVar[tuple[Protocol, ...]]  # the ones it speaks, best first
    honours: ClassVar[frozenset[str]] = frozenset()  # names of Request fields besides `model`
    efforts: ClassVar[tuple[str, ...]] = ()  # the values of `effort` it really takes
    takes_stdin: ClassVar[bool] = False  # the task is its standard input, of any length
    needs_model: ClassVar[bool] = False
    calls_model: ClassVar[bool] = True
    sits: ClassVar[bool] = False  # a person can sit before it: `sitting` says how
    is_command: ClassVar[bool] = False  # argv is all that runs, in any image; its status counts
    skills_dir: ClassVar[str | None] = None  # relative to the image's home
    instructions_file: ClassVar[str | None] = None
    repository_tools: ClassVar[str] = ""  # the `allowed_tools` that work on a repository needs
    for_tests: ClassVar[bool] = False  # found by its name, and offered nowhere
    from_documents: ClassVar[bool] = False  # written from the agent's documents, never run with it

    def check(self, request: Request, provider: Provider) -> None:
        """Raise AgentRefusal when the request cannot be honoured. Called before anything starts."""
        if self.calls_model:
            self.protocol(provider)
        for name in (
            "effort",
            "max_turns",
            "allowed_tools",
            "permission_mode",
            "bare",
            *_VARIABLES,
        ):
            value = getattr(request, name)
            asked = value is not None and value is not False and value != ""
            if asked and name not in self.honours:
                raise AgentRefusal(f"{self.name} has no equivalent of {_flag(name)}; leave it out")
        if request.effort and request.effort not in self.efforts:
            raise AgentRefusal(
                f"{self.name} does not know --effort {request.effort!r}; "
                f"it takes {', '.join(self.efforts)}"
            )
        if request.max_turns is not None and request.max_turns < 1:
            raise AgentRefusal("--max-turns must be at least 1")
        if self.needs_model and not (request.model or provider.default_model):
            raise AgentRefusal(
                f"{self.name} needs --model with provider {provider.name}, which has no default"
            )

        self._check_variables(request)

    def _check_variables(self, request: Request) -> None:
        for name in _VARIABLES:
            variable = getattr(request, name)
            if variable and not _VARIABLE.fullmatch(variable):
                raise AgentRefusal(f"{_flag(name)} {variable!r} is no name of a variable")
        if request.key_env and request.key_env == request.base_url_env:
            raise AgentRefusal(
                f"--agent-key-env and --agent-base-url-env both say {request.key_env}; "
                "one variable holds one of the two"
            )

    def check_task(self, task: str) -> None:
        """Raise AgentRefusal when the complete text of the task cannot be handed over."""
        if not task.strip():
            raise AgentRefusal("the task is empty; say what the agent should do")
        if self.takes_stdin:
            return
        if "\0" in task:
            raise AgentRefusal(
                f"{self.name} takes the task as an argument, which holds no NUL byte"
            )
        size = len(task.encode("utf-8", "surrogateescape"))
        argument = len(self.task_argument(task).encode("utf-8", "surrogateescape"))
        if argument > ARGV_ELEMENT_BYTES:
            most = ARGV_ELEMENT_BYTES - (argument - size)
            raise AgentRefusal(
                f"{self.name} takes the task as an argument, at most {most:,} bytes; "
                f"this one has {size:,}. Put the long part into a file of the working directory"
            )

    def task_argument(self, task: str) -> str:
        """The argument that carries the task. Override it where that is more than the task."""
        return task

    def protocol(self, provider: Provider) -> Protocol:
        """The wire protocol this agent and the provider share, the agent's preference first."""
        for protocol in self.protocols:
            if protocol in provider.protocols:
                return protocol
        fitting = [
            name
            for name in provider_names()
            if set(get_provider(name).protocols) & set(self.protocols)
        ]
        raise AgentRefusal(
            f"{self.name} speaks {', '.join(self.protocols)}; provider {provider.name} serves "
            f"{', '.join(provider.protocols)}; try --provider {' or '.join(fitting)}"
        )

    @abstractmethod
    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        """How to start it. `check` and `check_task` have passed.

        Args:
            task: the complete text of the task, the report instruction included.
            root: `scheme://host:port` of the relay, or of the provider in open mode; no path.
            credential: the run token, or the key in open mode; empty when the provider has none.
        """

    def sitting(
        self, request: Request, provider: Provider, *, at: Sitting, root: str, credential: str
    ) -> Launch:
        """How its own interface is started on a terminal, straight at its prompt.

        Only where `sits` is true; `check` and `check_seed` have passed. `root` and `credential`
        are those of `launch`.
        """
        raise AgentRefusal(f"{self.name} has no interface of its own that sanduk can start")

    def check_seed(self, seed: str) -> None:
        """Raise AgentRefusal when nobody can sit before it, or not with this first message."""
        if not self.sits:
            raise AgentRefusal(f"{self.name} has no interface of its own that sanduk can start")
        size = len(seed.encode("utf-8", "surrogateescape"))
        if size > SEED_BYTES:
            raise AgentRefusal(
                f"a first message takes at most {SEED_BYTES:,} bytes; this one has {size:,}"
            )

    @abstractmethod
    def reader(self) -> Reader:
        """A fresh reader."""


def _flag(name: str) -> str:
    """The flag that asks for a field of a request."""
    return ("--agent-" if name in _VARIABLES else "--") + name.replace("_", "-")
