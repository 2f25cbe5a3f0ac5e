"""What calls cost: at most, before they go out, and in fact, when they have ended."""

from __future__ import annotations

import asyncio
import math
import re
from dataclasses import dataclass

import msgspec

from relay.admission import Admitted, Refusal
from relay.budget import (
    NOTHING,
    Account,
    Amount,
    Budget,
    DoesNotFit,
    NothingLeft,
    Reservation,
    Shrink,
)
from relay.judging import Body, ThinkingTooLarge
from relay.meter import Meter
from relay.policy import Policy
from relay.prices import Price, shipped_prices
from relay.protocols import Dialect
from relay.records import CallRecord, CostKind, Ledger, Protocol, Usage
from relay.rules import spoken_by
from relay.strict_json import NotStrict, read_object

# No token is shorter than a byte; what a provider writes around a request comes on top.
_AROUND = 2048
_LEAST_OUTPUT = 16  # Responses takes no smaller limit
# What a request refers to, or lets the provider fetch, may be larger than the request.
_REFERENCE = re.compile(
    rb'"(?:url|image_url|file_url|file_id|file_uri|fileUri|previous_response_id|conversation|'
    rb'cachedContent|cached_content|container)"\s*:\s*"(?!data:)'
    rb'|"(?:conversation|container|google_?[sS]earch|url_?[cC]ontext)"\s*:\s*\{'
    rb'|"type"\s*:\s*"(?:web_|code_|file_search|mcp|advisor|image_generation|computer|openrouter:)'
    rb"|\\u00[2-7]"
)
_DEARER = re.compile(
    rb'"(?:service_tier"\s*:\s*"(?!auto"|default"|standard"|standard_only")|speed"\s*:\s*"fast")'
)
_EXTRAS = (
    *(b'"web_search', b'"file_search', b'"code_interpreter', b'"image_generation'),
    *(b'"googleSearch"', b'"google_search"'),
)
# Most requests have none of these words, and one search finds that out.
_NOTABLE = re.compile(
    b'"(?:service_tier"|fast"|inference_geo"|%b)' % b"|".join(word[1:] for word in _EXTRAS)
)
_LARGE = 4 * 1024  # bytes of a request


@dataclass(slots=True)
class Ask:
    """What the price table needs to know of a request; kept when its body is gone."""

    model: str = ""
    is_dearer: bool = False  # it asks for a service that has another price
    has_extras: bool = False  # it offers tools that are charged for beside the tokens

    @classmethod
    def of(cls, model: str, protocol: Protocol, body: bytes) -> Ask:
        """Read it from a request, as it goes out."""
        if len(body) > _LARGE:
            body = _settings(body)
        if _NOTABLE.search(body) is None:
            return cls(model)
        may_be_dearer = b'"service_tier"' in body or b'"fast"' in body
        return cls(
            model,
            may_be_dearer and _DEARER.search(body) is not None,
            b'"inference_geo"' in body
            # Anthropic tells in the usage what its tools did.
            or (protocol != "anthropic-messages" and any(word in body for word in _EXTRAS)),
        )


def _settings(body: bytes) -> bytes:
    """A request without its conversation; all of it when it cannot be told apart.

    Each word that is looked for costs a pass through the text, for a long one more than all else.
    `input` stays: it may offer tools.
    """
    try:
        members = read_object(body)
    except NotStrict:
        return body
    return msgspec.json.encode(
        {key: raw for key, raw in members.items() if key not in ("messages", "contents")}
    )


@dataclass(slots=True)
class Outcome:
    """How far a call got."""

    sent: bool = False  # the provider may have seen it
    status: int | None = None  # the provider's
    whole: bool = False  # its answer arrived to the end


class Spending:
    """The money side of one relay."""

    def __init__(self, policy: Policy, ledger: Ledger) -> None:
        self._policy = policy
        self._provider = policy.provider
        self._prices = policy.prices or shipped_prices()
        self._ledger = ledger
        self.account = Account(policy.budget) if policy.budget else None

    # -- before ------------------------------------------------------------------------------------
    async def reserve(
        self, admitted: Admitted, body: Body, gone: asyncio.Future[None]
    ) -> Reservation | None:
        """Wait for the means of a call; None without a budget, and for what is no model call.

        Args:
            gone: done when the client has left, which ends the waiting.

        Raises:
            Refusal: it has no price, or nothing is left.
        """
        account, spoken = self.account, spoken_by(admitted)
        if account is None or spoken is None:
            return None
        names = {name for name in (*body.names, admitted.model) if name}
        worst, shrink = self._worst(_Estimate(body, spoken), names, account.budget)
        try:
            reservation = account.reserve(worst, shrink)
        except NothingLeft as error:
            raise self._nothing_left(error, worst) from None
        turn = reservation.turn
        if turn is None:
            return reservation
        try:
            await asyncio.wait((turn, gone), return_when=asyncio.FIRST_COMPLETED)
            if turn.done():
                turn.result()
        except NothingLeft as error:
            raise self._nothing_left(error, worst) from None
        finally:
            if not reservation.granted:
                account.settle(reservation)
        return reservation

    def limit(self, reservation: Reservation | None, admitted: Admitted, body: Body) -> bool:
        """Lower the output limit of a call to what was reserved for it; whether that was needed.

        Raises:
            Refusal: there is no room for its thinking.
        """
        if reservation is None or reservation.output_limit is None:
            return False
        try:
            return body.limit_output(spoken_by(admitted), reservation.output_limit)
        except ThinkingTooLarge as error:
            raise Refusal(
                402, "budget", f"{error}, more than what is left: {self._left_words()}"
            ) from None

    def _nothing_left(self, why: NothingLeft, worst: Amount) -> Refusal:
        """The answer to a call when the budget is spent, or under --budget-strict too small."""
        self._ledger.exhausted = True
        if isinstance(why, DoesNotFit):
            return Refusal(
                402,
                "budget",
                f"this call may come to {self._amount_words(worst)}, and even with less output it "
                f"does not fit into what --budget-strict leaves it: {self._left_words()}",
            )
        return Refusal(402, "budget", f"the budget is spent: {self._left_words()}")

    def _amount_words(self, amount: Amount) -> str:
        """In the measures the budget has."""
        budget = self._policy.budget
        words = []
        if budget is not None and budget.usd is not None:
            words.append(f"${amount.usd:.4f}" if math.isfinite(amount.usd) else "any sum")
        if budget is not None and budget.tokens is not None:
            finite = math.isfinite(amount.tokens)
            words.append(f"{amount.tokens:,.0f} tokens" if finite else "any number of tokens")
        return " and ".join(words)

    def _left_words(self) -> str:
        account, ledger = self.account, self._ledger
        if account is None:
            return ""
        budget, words = account.budget, []
        about = "≥ " if ledger.spent_is_lower_bound else ""
        if budget.usd is not None:
            words.append(f"{about}${account.spent.usd:.4f} of ${budget.usd:.4f}")
        if budget.tokens is not None:
            words.append(f"{about}{account.spent.tokens:,.0f} of {budget.tokens:,} tokens")
        words[-1] += " spent"
        if account.held != NOTHING:
            words.append("the rest is kept for calls that did not tell what they cost")
        flags = " or ".join(
            flag
            for flag, limit in (("--budget", budget.usd), ("--token-budget", budget.tokens))
            if limit is not None
        )
        return f"{', '.join(words)}; a higher {flags} would allow more"

    def _worst(
        self, estimate: _Estimate, names: set[str], budget: Budget
    ) -> tuple[Amount, Shrink | None]:
        """The most a call can cost, and how to make that less where it must not be crossed."""
        found = [self._prices.find(self._provider.name, name) for name in sorted(names)]
        prices = [price for price in found if price is not None]
        if len(prices) < len(found):
            prices = []
        context = max((price.context or math.inf for price in prices), default=math.inf)
        tokens = estimate.input_tokens(context)
        dearest = rate = 0.0
        if budget.usd is not None:
            if not prices or estimate.is_dearer:
                self._check_unpriced(names, budget, is_dearer=estimate.is_dearer)
                dearest = math.inf
            else:
                dearest = max(price.dearest_input(tokens, hour=estimate.hour) for price in prices)
                rate = max(price.output_rate(tokens) for price in prices)
        worst = _amount(dearest, tokens, rate, estimate.output_tokens(context))
        if not budget.strict:
            return worst, None
        if math.isinf(dearest) or (budget.tokens is not None and math.isinf(tokens)):
            raise Refusal(
                403,
                "budget",
                "under --budget-strict a call must be bounded, and what this one refers to is "
                "not; leave --budget-strict out to let it run alone",
            )
        return worst, lambda free: _shrunk(free, dearest, tokens, rate)

    def _check_unpriced(self, names: set[str], budget: Budget, *, is_dearer: bool) -> None:
        reports = self._provider.reports_cost
        chosen = budget.unpriced or ("serial" if reports else "refuse")
        if chosen == "serial" and not budget.strict:
            return
        what = ", ".join(sorted(name[:100] for name in names)) or "a request without a model"
        if is_dearer:
            what = "a service tier or speed other than the standard one"
        way = ", or bound the run with --token-budget instead"
        if reports and not budget.strict:
            way = ", or --unpriced serial to run its calls one at a time"
        raise Refusal(
            403,
            "unpriced",
            f"{what} has no price, and the run has a budget: add one to prices.toml{way}",
        )

    # -- after -------------------------------------------------------------------------------------
    def settle(
        self,
        record: CallRecord,
        ask: Ask | None,
        outcome: Outcome,
        meter: Meter | None,
        reservation: Reservation | None,
    ) -> None:
        """Write into the record what a call cost, and free what was reserved beyond that.

        Args:
            ask: None for what is no model call, or did not get that far.
        """
        ledger, usage = self._ledger, record.usage
        is_whole = outcome.whole and meter is not None and meter.is_final and _is_complete(usage)
        tokens_known = usd_known = True
        if ask is not None and outcome.sent:
            cost, kind = self._cost(ask, outcome, meter, usage, is_whole=is_whole)
            record.cost_usd, record.cost_kind = cost, kind
            ledger.spent_usd += cost or 0.0
            ledger.spent_is_lower_bound |= kind in ("lower_bound", "unknown")
            usd_known = kind in ("exact", "reported")
            tokens_known = is_whole or _failed(outcome)
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0) if usage else 0
        ledger.tokens += tokens
        if self.account is not None and reservation is not None:
            self.account.settle(
                reservation,
                Amount(record.cost_usd or 0.0, tokens),
                usd_known=usd_known,
                tokens_known=tokens_known,
            )
            ledger.held_usd = self.account.held.usd

    def _cost(
        self,
        ask: Ask,
        outcome: Outcome,
        meter: Meter | None,
        usage: Usage | None,
        *,
        is_whole: bool,
    ) -> tuple[float | None, CostKind]:
        reports = self._provider.reports_cost
        reported = meter.reported_cost_usd if meter and reports else None
        if reported is not None:
            return reported, "reported"
        if usage is None and _failed(outcome):
            return 0.0, "exact"  # no provider charges for saying no
        price = self._price(ask, meter.model if meter else "")
        has_extras = ask.has_extras or (meter is not None and meter.has_extras)
        if price is not None and price.is_free and not (reports or has_extras):
            return 0.0, "exact"  # also when it was cut: no count would make it dearer
        if usage is None or meter is None or price is None:
            return None, "unknown"
        is_exact = is_whole and not (has_extras or reports)
        return price.cost(usage), "exact" if is_exact else "lower_bound"

    def _price(self, ask: Ask, answered: str) -> Price | None:
        if ask.is_dearer:
            return None
        for name in (answered, ask.model):
            price = self._prices.find(self._provider.name, name)
            if price is not None:
                return price
        return None


class _Estimate:
    """What a request can come to, in tokens."""

    def __init__(self, body: Body, spoken: Dialect) -> None:
        text = body.encoded()
        self._size = len(text)
        self._refers = _REFERENCE.search(text) is not None
        self._output = body.output_bound(spoken)
        self.hour = b'"ttl"' in text
        self.is_dearer = _DEARER.search(text) is not None

    def input_tokens(self, context: float) -> float:
        return context if self._refers else min(self._size + _AROUND, context)

    def output_tokens(self, context: float) -> float:
        return context if self._output is None else self._output


def _amount(input_usd: float, input_tokens: float, rate: float, output: float) -> Amount:
    return Amount(input_usd + (rate * output if rate else 0.0), input_tokens + output)


def _shrunk(
    free: Amount, input_usd: float, input_tokens: float, rate: float
) -> tuple[Amount, int] | None:
    """What fits into `free`, with as much output as that allows; None when that is too little."""
    by_money = (free.usd - input_usd) / rate if rate else math.inf
    output = min(by_money, free.tokens - input_tokens)
    if not output >= _LEAST_OUTPUT:
        return None
    limit = math.floor(output)
    return _amount(input_usd, input_tokens, rate, limit), limit


def _is_complete(usage: Usage | None) -> bool:
    return usage is not None and None not in (usage.input_tokens, usage.output_tokens)


def _failed(outcome: Outcome) -> bool:
    """The provider answered, and no model did."""
    return outcome.status is not None and not 200 <= outcome.status < 300
