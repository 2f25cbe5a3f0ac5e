"""Reading `assistant.toml`: how an assistant arrives."""

from __future__ import annotations

import datetime as dt
import difflib
import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError

from assistants import schedules
from assistants.args import mount_from, path_from, settled
from assistants.config import Config
from assistants.keys import (
    BY_NAME,
    DESTINATIONS,
    KEYS,
    NAME,
    PROXY,
    SCHEDULE_KEYS,
    SCHEDULE_NAMES,
    SCHEDULES,
    Key,
    WrongValue,
    is_duration,
)
from assistants.models.assistant import NAME as NAME_RULE
from assistants.schedules import Timing
from recipes.catalog import is_path
from runs import tree
from runs.refusal import Refusal
from runs.toml_lines import line_of
from runs.visible import visible

FILE = "assistant.toml"
MAX_BYTES = 256 * 1024
SCHEDULES_MAX = 24
_EVERY_S = 1800
_HOLDING = ("approvals", "exclude_author")
_CLEARLY_S = 60  # a plain number below may have been meant as minutes
_TWICE = re.compile(r"Cannot overwrite a value \(at line (\d+), column \d+\)")


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a directory's `assistant.toml` says.

    Args:
        destinations: None when it says nothing about them: those given on the host stay.
        notes: what a person should know about it, a line each.
    """

    name: str
    directory: Path
    config: Config
    timings: tuple[Timing, ...]
    destinations: tuple[str, ...] | None
    sha256: str
    notes: tuple[str, ...]
    text: str

    def wrong(self, key: str, why: str) -> Refusal:
        """What is wrong with one of its keys, at its line if the file has it."""
        return _wrong(self.directory, self.text, key, why)

    @property
    def written_args(self) -> tuple[str, ...]:
        """Its `args` as the file has them, with the flags that are read as keys."""
        return tuple(tomllib.loads(self.text + "\n").get("args", ()))

    def given(self, key: str) -> int | None:
        """The line where it gives this key; None when it does not."""
        return line_of(self.text, key)


def digest_of(directory: Path) -> str:
    """The hash of the file as it is now. Raises Refusal when it cannot be read."""
    return hashlib.sha256(_content(directory)).hexdigest()


def read(directory: Path, *, now: dt.datetime) -> Arrival:
    """What is in `directory`, an absolute path.

    Args:
        now: what its intervals are counted from.

    Raises:
        Refusal: the file is not there, is no TOML, or one of its keys is wrong. Its line is named.
    """
    content = _content(directory)
    try:
        text = content.decode()
        document = tomllib.loads(text + "\n")  # else a fault in the last line has no place
    except UnicodeDecodeError:
        raise Refusal(f"{directory / FILE} is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise _no_toml(directory, text, str(exc)) from None
    return _Reader(directory, text, document, now).arrival(hashlib.sha256(content).hexdigest())


def _no_toml(directory: Path, text: str, why: str) -> Refusal:
    if found := _TWICE.search(why):
        line = int(found[1])
        key = text.splitlines()[line - 1].partition("=")[0].strip()
        return Refusal(f"{directory / FILE} line {line}: {visible(key, limit=80)}: it is set twice")
    return Refusal(f"{directory / FILE}: {why}")


def _content(directory: Path) -> bytes:
    try:
        with tree.opened(str(directory)) as root:
            found = tree.read_file(root, FILE, limit=MAX_BYTES)
    except FileNotFoundError:
        raise Refusal(
            f"{directory / FILE} is not there; sanduk assistant new writes a first one"
        ) from None
    except tree.NotARegularFile:
        raise Refusal(f"{directory / FILE} is no regular file") from None
    except OSError as exc:
        raise Refusal(f"{directory / FILE} cannot be read: {exc.strerror}") from None
    if found.cut:
        raise Refusal(f"{directory / FILE} is larger than {MAX_BYTES // 1024} KiB")
    return found.data


class _Reader:
    """One document on its way to an Arrival."""

    def __init__(self, directory: Path, text: str, document: dict[str, Any], now: dt.datetime):
        self.directory = directory
        self.text = text
        self.document = document
        self.now = now
        self.notes: list[str] = []

    def arrival(self, sha256: str) -> Arrival:
        self._refuse_unknown(self.document, [*BY_NAME, SCHEDULES, PROXY])
        values = {
            key.name: self._value(key, self.document)
            for key in KEYS
            if key.name not in SCHEDULE_NAMES
        }
        config = self._config(values)
        return Arrival(
            name=self._name(values[NAME]),
            directory=self.directory,
            config=config,
            timings=self._timings(),
            destinations=values[DESTINATIONS],
            sha256=sha256,
            notes=(*self.notes, *_meaning(config)),
            text=self.text,
        )

    def _name(self, given: str | None) -> str:
        name = given or self.directory.name
        try:
            NAME_RULE(name)
        except ValidationError:
            pass
        else:
            return name
        if given:
            raise self._wrong(NAME, f"{given!r} is no name: {NAME_RULE.message}")
        raise Refusal(
            f"{self.directory / FILE} gives no name, and the directory's, {name!r}, cannot be one: "
            f'{NAME_RULE.message}; add name = "…"'
        )

    def _config(self, values: dict[str, Any]) -> Config:
        fields = {key.field: values[key.name] for key in KEYS if key.field and key.name in values}
        fields["mode"] = self._mode(fields["mode"])
        fields["mounts"] = tuple(self._mount(text) for text in fields["mounts"])
        for name in ("brief", "gate"):
            self._refuse_outside(name, fields[name])
        for name in _HOLDING:
            if name in self.document and not fields["hold"]:
                raise self._wrong(name, "it needs approval = true")
        if "gate_timeout" in self.document and not fields["gate"]:
            raise self._wrong("gate_timeout", "it means nothing without gate")
        try:
            more, args, notes = settled(fields["args"], set(self.document), self.directory)
        except Refusal as exc:
            raise self._wrong("args", str(exc)) from None
        self.notes += notes
        fields = {**fields, **more, "args": args}
        budget, daily = fields["budget_usd"], fields["daily_budget_usd"]
        if budget and daily and budget > daily:
            raise self._wrong("budget", f"{budget:g} is more than daily_budget = {daily:g}")
        self._settle_recipe(fields)
        return Config(**fields)

    def _settle_recipe(self, fields: dict[str, Any]) -> None:
        if is_path(fields["recipe"]):
            fields["recipe"] = path_from(self.directory, fields["recipe"], what="recipe")

    def _mode(self, mode: str) -> str:
        if PROXY not in self.document:
            return mode
        proxy = self.document[PROXY]
        if not isinstance(proxy, bool):
            raise self._wrong(PROXY, "it takes true or false, without quotes; better use mode")
        meant = "sealed" if proxy else "open"
        if "mode" in self.document and mode != meant:
            raise self._wrong(
                PROXY, f'it means mode = "{meant}", which contradicts mode = "{mode}"'
            )
        self.notes.append(f'proxy is an old key: it is read as mode = "{meant}"')
        return meant

    def _mount(self, text: str) -> str:
        try:
            return mount_from(self.directory, text)
        except Refusal as exc:
            raise self._wrong("mounts", str(exc).removeprefix("--mount ")) from None

    def _refuse_outside(self, name: str, value: str) -> None:
        """What its agent can write to may neither instruct it nor run on the host."""
        if not value:
            return
        home = self.directory.resolve()
        path = (home / value).resolve()
        if Path(value).is_absolute() or not path.is_relative_to(home) or path == home:
            raise self._wrong(name, f"{value!r} must be a file in {self.directory}")
        if path.is_relative_to((home / "workspace").resolve()):
            raise self._wrong(
                name, f"{value!r} is in its workspace, where its agent could change it"
            )

    def _timings(self) -> tuple[Timing, ...]:
        tables = self.document.get(SCHEDULES)
        if tables is None:
            return (self._timing(self.document),)
        at_top = [name for name in ("every", "cron") if name in self.document]
        if at_top:
            raise self._wrong(at_top[0], "give it in each of [[schedules]], or give none of those")
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            raise self._wrong(SCHEDULES, "write each schedule under a heading [[schedules]]")
        if not 0 < len(tables) <= SCHEDULES_MAX:
            raise self._wrong(SCHEDULES, f"an assistant has 1 to {SCHEDULES_MAX} schedules")
        for number, each in enumerate(tables):
            self._refuse_unknown(each, SCHEDULE_NAMES, number)
        usual = {name: self.document[name] for name in SCHEDULE_NAMES if name in self.document}
        timings: list[Timing] = []
        for number, each in enumerate(tables):
            timing = self._timing({**usual, **each}, number)
            same = next((at for at, one in enumerate(timings, 1) if one.same_as(timing)), None)
            if same is not None:
                key = "every" if timing.every_s else "cron"
                raise self._wrong(key, f"schedule {number + 1} says what {same} says", number)
            timings.append(timing)
        return tuple(timings)

    def _timing(self, values: dict[str, Any], number: int | None = None) -> Timing:
        fields = {key.field: self._value(key, values, number) for key in SCHEDULE_KEYS}
        missed, within_s = fields.pop("missed")
        if fields["every_s"] and fields["cron"]:
            raise self._wrong("cron", "every and cron exclude each other", number)
        if not fields["every_s"] and not fields["cron"]:
            if number is not None:
                raise self._wrong(SCHEDULES, f"number {number + 1} has neither every nor cron")
            fields["every_s"] = _EVERY_S
        timing = Timing(
            anchor_at=self.now.replace(microsecond=0),
            missed=missed,
            missed_within_s=within_s,
            **fields,
        )
        try:
            schedules.check(timing)
        except Refusal as exc:
            name = next((each for each in SCHEDULE_NAMES if str(exc).startswith(each)), "every")
            raise self._wrong(name, str(exc).removeprefix(f"{name} "), number) from None
        return timing

    def _value(self, key: Key, values: dict[str, Any], number: int | None = None) -> Any:
        if key.name not in values:
            return key.absent
        given = values[key.name]
        if is_duration(key) and str(given).isdecimal() and 0 < int(given) < _CLEARLY_S:
            self.notes.append(
                f'{key.name} = {given} is {given} seconds; write "{given}s" or "{given}m"'
            )
        try:
            return key.kind.read(given)
        except WrongValue as exc:
            raise self._wrong(key.name, str(exc), number) from None

    def _refuse_unknown(self, table: dict[str, Any], known: Any, number: int | None = None) -> None:
        for name in table:
            if name in known:
                continue
            close = difflib.get_close_matches(name, known, 1)
            if close:
                hint = f"did you mean {close[0]}?"
            elif number is not None:
                hint = f"a schedule has {', '.join(known)}"
            else:
                hint = f"there are {', '.join(known)}"
            raise self._wrong(name, f"there is no such key; {hint}", number)

    def _wrong(self, key: str, why: str, number: int | None = None) -> Refusal:
        return _wrong(self.directory, self.text, key, why, number)


def _wrong(directory: Path, text: str, key: str, why: str, number: int | None = None) -> Refusal:
    line = None
    if number is not None:
        line = line_of(text, key, table=SCHEDULES, number=number)
    line = line or line_of(text, key)
    place = f" line {line}" if line else ""
    return Refusal(f"{directory / FILE}{place}: {key}: {why}")


def _meaning(config: Config) -> list[str]:
    """What the settings let happen without anybody looking."""
    notes = []
    if not config.hold:
        notes.append(
            "what it says is delivered without approval; approval = true holds it for a person"
        )
    if not config.memory_review:
        notes.append(
            "it goes on from unreviewed memory: what it wrote last time is read as instruction; "
            "memory_review = true starts each wakeup from memory a person accepted"
        )
    if config.mode == "open":
        notes.append('mode = "open": the agent has a network and holds the provider\'s key')
    return notes
