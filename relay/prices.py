"""What a model's tokens cost: the table in `prices.toml`, and an operator's own beside it.

A table is a date, a source, and one table per provider from a pattern of model names to prices in
USD per million tokens. A name is looked up as it is and without a date at its end; the pattern
with the most letters wins.
"""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib import resources
from typing import Any

from relay.records import Usage

_MILLION = 1_000_000
_PATTERN = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._:/@*-]{0,200}")
_DATE_AT_END = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
_REQUIRED = ("input", "output")


class InvalidPrices(ValueError):
    """A price table that cannot be read; the text names the entry and the key."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens.

    Args:
        cached_input: input read from a cache; without a price of its own it costs what input does.
        cache_write: input written to a cache.
        cache_write_1h: written to a cache that is kept for an hour.
        context: the most tokens the model takes in and gives out together; None if not known.
        long: prices of a whole call whose input has more than `over` tokens.
    """

    input: float
    output: float
    cached_input: float
    cache_write: float
    cache_write_1h: float
    context: int | None = None
    over: int | None = None
    long: Price | None = None

    @property
    def is_free(self) -> bool:
        """Whether no call costs anything, however many tokens it has."""
        rates = (
            self.input, self.output, self.cached_input, self.cache_write, self.cache_write_1h
        )  # fmt: skip
        return not any(rates) and (self.long is None or self.long.is_free)

    def cost(self, usage: Usage) -> float:
        """USD of a call; a count that is not known counts as none."""
        total = usage.input_tokens or 0
        if self.long is not None and self.over is not None and total > self.over:
            return self.long.cost(usage)
        read = min(usage.cache_read_tokens or 0, total)
        written = min(usage.cache_write_tokens or 0, total - read)
        hour = min(usage.cache_write_1h_tokens or 0, written)
        return (
            (total - read - written) * self.input
            + read * self.cached_input
            + (written - hour) * self.cache_write
            + hour * self.cache_write_1h
            + (usage.output_tokens or 0) * self.output
        ) / _MILLION

    def dearest_input(self, tokens: float, *, hour: bool) -> float:
        """USD that so many input tokens may cost at most, whatever a cache does with them."""
        price = self._for(tokens)
        rates = [price.input, price.cached_input, price.cache_write]
        if hour:
            rates.append(price.cache_write_1h)
        return tokens * max(rates) / _MILLION

    def output_rate(self, input_tokens: float) -> float:
        """USD of one output token of a call with that much input."""
        return self._for(input_tokens).output / _MILLION

    def _for(self, input_tokens: float) -> Price:
        is_long = self.long is not None and self.over is not None and input_tokens > self.over
        return self.long if is_long and self.long is not None else self


class PriceTable:
    """Prices by provider and model.

    Args:
        entries: by provider, from pattern to price.
        base: where to look for what has no entry here.
    """

    def __init__(
        self,
        entries: Mapping[str, Mapping[str, Price]],
        *,
        date: str = "",
        source: str = "",
        base: PriceTable | None = None,
    ) -> None:
        self.date = date
        self.source = source
        self._entries = {
            provider: sorted(prices.items(), key=lambda item: -len(item[0].replace("*", "")))
            for provider, prices in entries.items()
        }
        self._base = base
        self._known: dict[tuple[str, str], Price | None] = {}

    def find(self, provider: str, model: str) -> Price | None:
        """The price of a model, or None when there is none."""
        if not model:
            return None
        key = (provider, model)
        if key not in self._known:
            if len(self._known) >= 1000:
                self._known.clear()  # a client may make up names without end
            self._known[key] = self._search(provider, model)
        return self._known[key]

    def is_free(self, provider: str) -> bool:
        """Whether every model of a provider, named here or not, is known to cost nothing."""
        entries = self._entries.get(provider, [])
        has_all = any(pattern == "*" for pattern, _ in entries)
        return all(price.is_free for _, price in entries) and (
            has_all or (self._base is not None and self._base.is_free(provider))
        )

    def _search(self, provider: str, model: str) -> Price | None:
        for name in dict.fromkeys((model, _DATE_AT_END.sub("", model))):
            for pattern, price in self._entries.get(provider, ()):
                if fnmatchcase(name, pattern):
                    return price
        return self._base.find(provider, model) if self._base else None


def load_prices(text: str, base: PriceTable | None = None) -> PriceTable:
    """Read a price table from TOML.

    Args:
        base: the table that this one is laid over.

    Raises:
        InvalidPrices: for a key that is unknown, missing or of another type, or a price that is
            no sum of money.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidPrices(f"the price table is no TOML: {error}") from None
    about = {key: document.pop(key, "") for key in ("date", "source")}
    for key, value in about.items():
        if not isinstance(value, str):
            raise InvalidPrices(f"{key} must be a text")
    entries: dict[str, dict[str, Price]] = {}
    for provider, prices in document.items():
        if not isinstance(prices, dict):
            raise InvalidPrices(f"unknown key {provider!r}: a provider is a table of its models")
        entries[provider] = {
            pattern: _price(f"{provider} {pattern}", pattern, record)
            for pattern, record in prices.items()
        }
    return PriceTable(entries, date=about["date"], source=about["source"], base=base)


@functools.cache
def shipped_prices() -> PriceTable:
    """The table that comes with sanduk."""
    return load_prices(resources.files("relay").joinpath("prices.toml").read_text("utf-8"))


def _price(where: str, pattern: str, record: object) -> Price:
    if not _PATTERN.fullmatch(pattern) or not isinstance(record, dict):
        raise InvalidPrices(f"{where}: an entry is a pattern of model names and its prices")
    values = dict(record)
    context, long = values.pop("context", None), values.pop("long", None)
    if context is not None and not _is_count(context):
        raise InvalidPrices(f"{where}: context is a number of tokens")
    price = replace(_rates(where, values), context=context)
    if long is None:
        return price
    if not isinstance(long, dict) or not _is_count(long.get("over")):
        raise InvalidPrices(f"{where}: long is a table of prices and 'over', a number of tokens")
    over = long["over"]
    dearer = _rates(f"{where} long", {key: value for key, value in long.items() if key != "over"})
    return replace(price, over=over, long=dearer)


def _rates(where: str, values: dict[str, Any]) -> Price:
    for key, value in values.items():
        if key not in _RATES:
            raise InvalidPrices(f"{where}: unknown key {key!r}; known are {', '.join(_KEYS)}")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or value < 0:
            raise InvalidPrices(f"{where}: {key} must be USD per million tokens, not {value!r}")
    for key in _REQUIRED:
        if key not in values:
            raise InvalidPrices(f"{where}: {key} is missing")
    rates = {key: float(value) for key, value in values.items()}
    write = rates.get("cache_write", rates["input"])
    return Price(
        input=rates["input"],
        output=rates["output"],
        cached_input=rates.get("cached_input", rates["input"]),
        cache_write=write,
        cache_write_1h=rates.get("cache_write_1h", write),
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


_RATES = ("input", "cached_input", "cache_write", "cache_write_1h", "output")
_KEYS = (*_RATES, "context", "long")
