"""What a run may spend, and who may spend it next.

The most a call can cost is reserved before it goes out and settled when it has ended. Calls go
side by side as long as their reservations fit into what is left. One that no longer fits, while
something is left, waits until nothing is in flight and goes alone: so the ceiling is crossed by
that one call at most, and a small budget still lets an agent make its first call. What a call
cost that nobody can tell stays reserved to the end: of a call without a price that is all that
is left, so the run makes no other.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Unpriced = Literal["serial", "refuse"]


class InvalidBudget(ValueError):
    """A budget that is none."""


class NothingLeft(Exception):
    """The budget is spent."""


class DoesNotFit(NothingLeft):
    """Something is left, and the call that may not cross the budget needs more."""


class Amount(NamedTuple):
    """Money and tokens; infinite where nothing bounds them."""

    usd: float
    tokens: float

    def plus(self, other: Amount) -> Amount:
        return Amount(self.usd + other.usd, self.tokens + other.tokens)

    def beyond(self, other: Amount) -> Amount:
        """How much more this is than the other, at least nothing."""
        return Amount(max(0.0, self.usd - other.usd), max(0.0, self.tokens - other.tokens))

    def fits(self, other: Amount) -> bool:
        return self.usd <= other.usd and self.tokens <= other.tokens


NOTHING = Amount(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Budget:
    """The terms.

    Args:
        usd: at most so much money; None for no such limit.
        tokens: at most so many tokens in and out, cached ones included.
        strict: never cross it: a call that does not fit is allowed less output instead.
        unpriced: what to do with a model that has no price: one call at a time, or none. None
            means serial where the provider reports what a call cost, and refuse elsewhere, where
            serial would bound nothing and `relay.policy.Policy` does not take it.

    Raises:
        InvalidBudget: a limit that is no positive, finite number, or terms without any limit.
    """

    usd: float | None = None
    tokens: int | None = None
    strict: bool = False
    unpriced: Unpriced | None = None

    def __post_init__(self) -> None:
        if self.usd is None and self.tokens is None:
            raise InvalidBudget("a budget limits money or tokens")
        for name, value in (("--budget", self.usd), ("--token-budget", self.tokens)):
            if value is None:
                continue
            if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
                raise InvalidBudget(f"{name} takes a number above 0, not {value}")
        if self.tokens is not None and not isinstance(self.tokens, int):
            raise InvalidBudget(f"--token-budget takes a whole number, not {self.tokens}")
        if self.unpriced not in (None, "serial", "refuse"):
            raise InvalidBudget(f"--unpriced takes serial or refuse, not {self.unpriced!r}")
        if self.unpriced and self.usd is None:
            raise InvalidBudget("--unpriced is about money: it means nothing without --budget")

    @property
    def limit(self) -> Amount:
        return Amount(
            math.inf if self.usd is None else self.usd,
            math.inf if self.tokens is None else self.tokens,
        )


Shrink = Callable[[Amount], tuple[Amount, int] | None]


class Reservation:
    """What one call may cost at most, from its `reserve` to its `settle`."""

    def __init__(self, worst: Amount, shrink: Shrink | None) -> None:
        self.worst = worst
        self.granted = False
        self.turn: asyncio.Future[None] | None = None  # while it waits
        self.output_limit: int | None = None  # what it was made smaller to
        self._shrink = shrink

    def fit(self, free: Amount) -> bool:
        """Whether it fits, made smaller if it may be."""
        if self.worst.fits(free):
            return True
        smaller = self._shrink(free) if self._shrink else None
        if smaller is None:
            return False
        self.worst, self.output_limit = smaller
        return True

    @property
    def goes_alone(self) -> bool:
        """Whether it may go although it does not fit."""
        return self._shrink is None


class Account:
    """What is spent, held and reserved under one budget. It lives in one event loop."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.spent = NOTHING
        self.held = NOTHING  # of calls that ended without telling what they cost
        self._in_flight: set[Reservation] = set()
        self._waiting: deque[Reservation] = deque()

    @property
    def is_exhausted(self) -> bool:
        """Nothing is left, whatever the calls in flight will turn out to cost."""
        used, limit = self.spent.plus(self.held), self.budget.limit
        return _is_used_up(used.usd, limit.usd) or _is_used_up(used.tokens, limit.tokens)

    def reserve(self, worst: Amount, shrink: Shrink | None = None) -> Reservation:
        """Ask for the means of a call; unless granted at once, wait for its `turn`.

        Args:
            worst: the most it can cost.
            shrink: makes it fit into an amount, and says how much output that leaves, or None when
                it cannot. A call that has one never goes without fitting.

        Raises:
            NothingLeft: also from `turn`.
        """
        reservation = Reservation(worst, shrink)
        if self._waiting or not self._grant(reservation):
            reservation.turn = asyncio.get_running_loop().create_future()
            self._waiting.append(reservation)
        return reservation

    def settle(
        self,
        reservation: Reservation,
        cost: Amount = NOTHING,
        *,
        usd_known: bool = True,
        tokens_known: bool = True,
    ) -> None:
        """A call has ended, or will not go at all. Settling again changes nothing.

        Args:
            cost: what is known of it.
            usd_known: False holds the rest of the money that was reserved.
            tokens_known: the same for tokens.
        """
        if reservation in self._waiting:
            self._waiting.remove(reservation)
        turn = reservation.turn
        if turn is not None and not turn.cancel() and not turn.cancelled():
            turn.exception()  # looked at, so that asyncio does not report it
        if reservation in self._in_flight:
            self._in_flight.remove(reservation)
            rest = reservation.worst.beyond(cost)
            self.spent = self.spent.plus(cost)
            self.held = Amount(
                self.held.usd + (0.0 if usd_known else rest.usd),
                self.held.tokens + (0.0 if tokens_known else rest.tokens),
            )
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            turn = first.turn
            try:
                if not self._grant(first):
                    return
            except NothingLeft as error:
                if turn is not None and not turn.done():
                    turn.set_exception(error)
            else:
                if turn is not None and not turn.done():
                    turn.set_result(None)
            self._waiting.popleft()

    def _grant(self, reservation: Reservation) -> bool:
        if self.is_exhausted:
            raise NothingLeft
        if not reservation.fit(self._free()):
            if self._in_flight:
                return False
            if not reservation.goes_alone:
                raise DoesNotFit
        reservation.granted = True
        self._in_flight.add(reservation)
        return True

    def _free(self) -> Amount:
        used = self.spent.plus(self.held)
        for reservation in self._in_flight:
            used = used.plus(reservation.worst)
        limit = self.budget.limit
        return Amount(_less(limit.usd, used.usd), _less(limit.tokens, used.tokens))


def _is_used_up(used: float, limit: float) -> bool:
    return not math.isinf(limit) and used >= limit


def _less(limit: float, used: float) -> float:
    """What is left; where there is no limit, all of it, whatever was used."""
    return limit if math.isinf(limit) else max(0.0, limit - used)
