"""The account: what may go, what waits, and that no order of events crosses the ceiling twice."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.budget import Account, Amount, Budget, InvalidBudget, NothingLeft

pytestmark = pytest.mark.anyio


def usd(amount: float) -> Amount:
    return Amount(amount, 0)


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"usd": math.nan},
        {"usd": math.inf},
        {"usd": -1.0},
        {"usd": 0},
        {"usd": True},
        {"tokens": 0},
        {"tokens": -5},
        {"tokens": 1.5},
        {"tokens": True},
        {"tokens": math.nan},
        {"usd": 1.0, "tokens": 0},
        {"usd": 1.0, "unpriced": "allow"},
    ],
    ids=repr,
)
def test_a_budget_that_would_never_trigger_is_refused(terms):
    """R-9: a NaN is below no ceiling."""
    with pytest.raises(InvalidBudget):
        Budget(**terms)


async def test_calls_go_side_by_side_while_they_fit():
    account = Account(Budget(usd=1))
    assert all(account.reserve(usd(0.25)).granted for _ in range(4))
    assert not account.reserve(usd(0.01)).granted


async def test_what_a_call_did_not_use_is_free_again():
    account = Account(Budget(usd=1))
    first, second = account.reserve(usd(0.9)), account.reserve(usd(0.9))
    assert (first.granted, second.granted) == (True, False)
    account.settle(first, usd(0.1))
    assert second.granted
    assert account.spent.usd == pytest.approx(0.1)


async def test_tokens_that_were_not_used_are_free_again_and_unknown_ones_are_not():
    account = Account(Budget(tokens=100))
    account.settle(account.reserve(Amount(0, 90)), Amount(0, 10))
    second = account.reserve(Amount(0, 90))
    assert second.granted
    assert account.held.tokens == 0
    account.settle(second, Amount(0, 10), tokens_known=False)
    assert account.held.tokens == 80
    with pytest.raises(NothingLeft):
        account.reserve(Amount(0, 1))


async def test_a_call_that_never_fits_waits_for_the_others_and_goes_alone():
    account = Account(Budget(usd=1))
    others = [account.reserve(usd(0.3)) for _ in range(2)]
    big = account.reserve(usd(50))
    later = account.reserve(usd(0.1))
    account.settle(others[0], usd(0.1))
    assert not big.granted
    account.settle(others[1], usd(0.1))
    assert (big.granted, later.granted) == (True, False)
    account.settle(big, usd(0.2))
    assert later.granted


async def test_the_first_call_of_a_small_budget_goes():
    """Agents ask for 128,000 tokens: its worst case alone is more than a small budget."""
    assert Account(Budget(usd=0.01)).reserve(usd(3)).granted


async def test_calls_that_wait_go_in_the_order_they_came():
    account = Account(Budget(usd=1))
    running = account.reserve(usd(1))
    waiting = [account.reserve(usd(worst)) for worst in (5, 0.5, 0.5)]
    account.settle(running, usd(0.1))
    assert [r.granted for r in waiting] == [True, False, False]
    account.settle(waiting[0], usd(0.1))
    assert [r.granted for r in waiting] == [True, True, False]


async def test_nothing_is_refused_while_something_is_left():
    account = Account(Budget(usd=1))
    account.settle(account.reserve(usd(0.9)), usd(0.999))
    assert account.reserve(usd(0.9)).granted


async def test_when_nothing_is_left_calls_are_refused_the_waiting_ones_too():
    account = Account(Budget(usd=1))
    running = account.reserve(usd(9))
    waiting = account.reserve(usd(0.1))
    account.settle(running, usd(1.5))
    with pytest.raises(NothingLeft):
        await waiting.turn
    with pytest.raises(NothingLeft):
        account.reserve(usd(0))


async def test_what_is_not_known_stays_reserved():
    account = Account(Budget(usd=1))
    account.settle(account.reserve(usd(0.6)), usd(0.1), usd_known=False)
    assert (account.spent.usd, account.held.usd) == (0.1, 0.5)
    account.settle(account.reserve(usd(0.6)), usd(0.1), usd_known=False)
    assert account.held.usd == 1.0
    with pytest.raises(NothingLeft):
        account.reserve(usd(0.1))


async def test_a_call_without_bound_that_tells_nothing_may_have_been_everything():
    account = Account(Budget(usd=1))
    account.settle(account.reserve(usd(math.inf)), usd_known=False)
    with pytest.raises(NothingLeft):
        account.reserve(usd(0.1))


async def test_money_does_not_limit_a_budget_of_tokens_nor_the_other_way_round():
    tokens = Account(Budget(tokens=100))
    for _ in range(3):
        reservation = tokens.reserve(Amount(math.inf, 10))
        assert reservation.granted
        tokens.settle(reservation, Amount(5, 10), usd_known=False)
    money = Account(Budget(usd=1))
    for _ in range(3):
        reservation = money.reserve(Amount(0.1, math.inf))
        assert reservation.granted
        money.settle(reservation, Amount(0.1, 10**9), tokens_known=False)
    both = Account(Budget(usd=1, tokens=100))
    assert both.reserve(Amount(0.1, 90)).granted
    assert not both.reserve(Amount(0.1, 20)).granted


async def test_settling_twice_charges_once():
    account = Account(Budget(usd=1))
    reservation = account.reserve(usd(0.5))
    for _ in range(3):
        account.settle(reservation, usd(0.5))
    assert account.spent.usd == 0.5


async def test_a_call_that_gives_up_waiting_lets_the_next_one_go():
    account = Account(Budget(usd=1))
    account.reserve(usd(0.5))
    big = account.reserve(usd(5))
    small = account.reserve(usd(0.1))
    assert not small.granted
    for _ in range(2):
        account.settle(big)
    assert small.granted
    assert account.spent.usd == 0


async def test_a_call_made_to_fit_never_goes_without_fitting():
    account = Account(Budget(usd=1, strict=True))

    def shrink(free: Amount) -> tuple[Amount, int] | None:
        return (usd(free.usd), 7) if free.usd >= 0.5 else None

    first = account.reserve(usd(9), shrink)
    assert (first.granted, first.worst, first.output_limit) == (True, usd(1), 7)
    second = account.reserve(usd(9), shrink)
    assert not second.granted
    account.settle(first, usd(0.4))
    assert second.granted
    assert second.worst.usd == pytest.approx(0.6)
    account.settle(second, usd(0.3))
    with pytest.raises(NothingLeft):
        account.reserve(usd(9), shrink)


AMOUNTS = st.floats(0, 3)
CALLS = st.lists(
    st.tuples(AMOUNTS | st.just(math.inf), st.floats(0, 1), st.sampled_from(["ok", "?", "gone"])),
    max_size=25,
)


class Call:
    def __init__(self, account: Account, worst: float, share: float, end: str) -> None:
        self.actual = share * min(worst, 3.0)
        self.end = end
        self.refused = False
        try:
            self.reservation = account.reserve(usd(worst))
        except NothingLeft:
            self.refused = True

    @property
    def is_running(self) -> bool:
        return not self.refused and self.reservation.granted

    def finish(self, account: Account) -> float:
        """End it; what it really cost."""
        if self.end == "gone":
            account.settle(self.reservation)
            return 0.0
        account.settle(self.reservation, usd(self.actual), usd_known=self.end == "ok")
        return self.actual


@settings(deadline=None)
@given(calls=CALLS, limit=st.floats(0.1, 5), data=st.data())
def test_whatever_happens_in_whatever_order_one_call_at_most_crosses_the_ceiling(
    calls, limit, data
):
    """litellm#34732: concurrent calls must not pass the ceiling together."""

    async def play() -> None:
        account = Account(Budget(usd=limit))
        todo, open_calls, costs = list(calls), [], []
        while todo or any(call.is_running for call in open_calls):
            running = [call for call in open_calls if call.is_running]
            if todo and (not running or data.draw(st.booleans())):
                open_calls.append(Call(account, *todo.pop(0)))
                continue
            call = data.draw(st.sampled_from(running))
            open_calls.remove(call)
            costs.append(call.finish(account))
        over = math.fsum(costs) - limit
        assert over <= max(costs, default=0) + 1e-9
        assert account.spent.usd == pytest.approx(math.fsum(costs))
        # Nobody waits for ever, and nobody was refused while something was left.
        for call in open_calls:
            assert call.refused or call.reservation.turn.done()
            assert account.is_exhausted
            if not call.refused:
                call.reservation.turn.exception()

    asyncio.run(play())


@settings(deadline=None)
@given(
    worsts=st.lists(st.tuples(st.floats(0.01, 2), st.floats(0, 1)), max_size=20),
    limit=st.floats(0.1, 3),
    data=st.data(),
)
def test_a_strict_budget_is_never_crossed(worsts, limit, data):
    def shrink(free: Amount) -> tuple[Amount, int] | None:
        return (free, 1) if free.usd > 0.05 else None

    async def play() -> None:
        account = Account(Budget(usd=limit, strict=True))
        running, spent = [], 0.0
        for worst, share in worsts:
            try:
                running.append((account.reserve(usd(worst), shrink), share))
            except NothingLeft:
                continue
            while running and data.draw(st.booleans()):
                going = [pair for pair in running if pair[0].granted]
                if not going:
                    break
                running.remove(going[0])
                cost = going[0][0].worst.usd * going[0][1]
                spent += cost
                account.settle(going[0][0], usd(cost))
                assert spent <= limit + 1e-9
        for reservation, _ in running:
            if reservation.turn is not None and reservation.turn.done():
                reservation.turn.exception()

    asyncio.run(play())
