"""The price table: read strictly, looked up by pattern, and what a call costs by it."""

from __future__ import annotations

import re

import pytest

from relay.prices import InvalidPrices, load_prices, shipped_prices
from relay.providers import provider_names
from relay.records import Usage

TABLE = """
date = "2026-01-02"
source = "a list"
[anthropic]
"big" = { input = 10, cached_input = 1, cache_write = 12.5, cache_write_1h = 20, output = 50 }
"big-*" = { input = 4, output = 8 }
"big-small-*" = { input = 2, output = 3 }
"*" = { input = 1, output = 1 }
[openai]
"long" = { input = 1, output = 2, context = 400000, long = { over = 100, input = 3, output = 5 } }
"""
MILLION = 1_000_000


def test_the_shipped_table_says_of_when_and_from_where_it_is():
    table = shipped_prices()
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", table.date)
    assert table.source


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-opus-5-5"),
        ("anthropic", "claude-opus-5-5-20261001"),
        ("openai", "gpt-5.6-luna"),
        ("openai", "gpt-5.6-luna-2026-07-30"),
        ("gemini", "gemini-3-pro-preview"),
        ("rehearsal", "anything"),
    ],
)
def test_the_shipped_table_knows_the_models_agents_ask_for(provider, model):
    price = shipped_prices().find(provider, model)
    assert price is not None
    assert (price.output > price.input > price.cached_input > 0) or provider == "rehearsal"
    assert price.context or provider == "rehearsal"


def test_the_shipped_table_has_prices_only_of_providers_there_are():
    assert set(shipped_prices()._entries) <= set(provider_names())


def test_what_is_not_in_the_table_has_no_price():
    table = shipped_prices()
    for model in ("", "gpt-5.9", "claude-opus-5-5x", "gpt-5.6-luna-mini", "@preset/gpt-5"):
        assert table.find("openai", model) is None
    assert table.find("openai-compat", "gpt-5") is None
    assert table.find("nobody", "gpt-5") is None


def test_the_pattern_with_the_most_letters_wins():
    table = load_prices(TABLE)

    def costs(model: str) -> float:
        price = table.find("anthropic", model)
        assert price is not None
        return price.input

    assert [costs(m) for m in ("big", "big-1", "big-small-1", "x")] == [10, 4, 2, 1]
    assert costs("big-20260101") == 4  # as it is, before without its date


def test_a_table_of_ones_own_is_laid_over_the_shipped_one():
    mine = load_prices('[openai]\n"gpt-5" = { input = 99, output = 100 }', shipped_prices())
    assert mine.find("openai", "gpt-5").input == 99
    assert mine.find("openai", "gpt-5-2025-08-07").input == 99
    assert mine.find("openai", "gpt-5-mini") == shipped_prices().find("openai", "gpt-5-mini")


def test_made_up_names_do_not_fill_the_memory():
    table = load_prices(TABLE)
    for number in range(5000):
        table.find("openai", f"m{number}")
    assert len(table._known) <= 1000


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(MILLION, 0, 0, 0, 0), 10),
        (Usage(MILLION, MILLION, 0, 0, 0), 1),
        (Usage(MILLION, 0, MILLION, 0, 0), 12.5),
        (Usage(MILLION, 0, MILLION, 0, 0, MILLION), 20),
        (Usage(MILLION, 0, MILLION, 0, 0, MILLION // 2), 16.25),
        (Usage(3 * MILLION, MILLION, MILLION, MILLION, 5), 10 + 1 + 12.5 + 50),
        (Usage(0, 0, 0, MILLION, MILLION), 50),  # reasoning is part of the output
        (Usage(None, None, None, MILLION, None), 50),
        (Usage(), 0),
        (Usage(10, 99 * MILLION, 99 * MILLION, 0, 0), 10 / MILLION),  # more cached than there was
    ],
)
def test_a_call_costs_what_its_tokens_cost(usage, cost):
    assert load_prices(TABLE).find("anthropic", "big").cost(usage) == pytest.approx(cost)


def test_a_long_call_costs_more_as_a_whole():
    price = load_prices(TABLE).find("openai", "long")
    assert price.cost(Usage(100, None, None, 10)) == pytest.approx((100 + 20) / MILLION)
    assert price.cost(Usage(101, None, None, 10)) == pytest.approx((303 + 50) / MILLION)
    assert price.dearest_input(101, hour=False) == pytest.approx(303 / MILLION)
    assert price.output_rate(101) == pytest.approx(5 / MILLION)


def test_prices_that_are_not_given_are_those_of_plain_input():
    price = load_prices("[x]\na = { input = 2, output = 3, cache_write = 5 }").find("x", "a")
    assert (price.cached_input, price.cache_write, price.cache_write_1h) == (2, 5, 5)


GOOD = '[openai]\n"m" = { input = 1, output = 2 }'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("input = 1", "input = nan", "USD per million"),
        ("input = 1", "input = inf", "USD per million"),
        ("input = 1", "input = -1", "USD per million"),
        ("input = 1", 'input = "1"', "USD per million"),
        ("input = 1", "input = true", "USD per million"),
        ("input = 1,", "", "input is missing"),
        (", output = 2", "", "output is missing"),
        ("input = 1", "inputs = 1", "unknown key 'inputs'"),
        ("input = 1", "input = 1, context = 0", "number of tokens"),
        ("input = 1", "input = 1, context = 1.5", "number of tokens"),
        ("input = 1", "input = 1, long = { input = 1, output = 1 }", "'over'"),
        ("input = 1", "input = 1, long = 5", "'over'"),
        ("input = 1", "input = 1, long = { over = 5, input = 1 }", "output is missing"),
        ("input = 1", "input = 1, long = { over = 5, input = 1, output = -1 }", "USD per million"),
        ('"m" = { input = 1, output = 2 }', '"m" = 5', "an entry is"),
        ('"m"', '"a b"', "an entry is"),
        ('"m"', '""', "an entry is"),
        ("[openai]", "dat = 5\n[openai]", "unknown key 'dat'"),
        ("[openai]", "date = 2026-01-01\n[openai]", "date must be a text"),
        ("[openai]", "[openai", "no TOML"),
    ],
)
def test_a_table_with_a_mistake_is_refused_naming_it(old, new, words):
    assert load_prices(GOOD)
    with pytest.raises(InvalidPrices, match=words):
        load_prices(GOOD.replace(old, new))


def test_a_provider_is_free_only_where_every_model_is_known_to_cost_nothing():
    shipped = shipped_prices()
    assert shipped.is_free("rehearsal")
    assert not any(shipped.is_free(name) for name in ("openai", "anthropic", "nobody", ""))
    some = load_prices('[local]\n"small-*" = { input = 0, output = 0 }')
    assert not some.is_free("local")
    dear = load_prices("[rehearsal]\nbig = { input = 1, output = 2 }", shipped)
    assert not dear.is_free("rehearsal")
