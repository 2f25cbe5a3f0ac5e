"""What a run ended with: outcome, report, what the agent said it used. Stored in one go."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

from relay import Ledger
from runs.agents.base import Result
from runs.models.run import EXIT_CODES, Outcome
from runs.report import Report

FINAL_TEXT_MAX = 256 * 1024


@dataclass(slots=True)
class Ending:
    outcome: Outcome
    reason: str = ""
    agent_exit_code: int | None = None
    result: Result | None = None
    report: Report | None = None
    ledger: Ledger | None = None
    certificate: dict[str, Any] = field(default_factory=dict)
    kept: str = ""
    by_host: bool = False  # refused because of this host, not because of what was asked for
    left: list[str] = field(default_factory=list)
    unwritten: str = ""  # why the database did not take it
    untraced: str = ""  # why it did not take the last of the trace

    def columns(self) -> dict[str, Any]:
        """The columns of the run's row, apart from state and lease."""
        result = self.result or Result(ok=False)
        resets = result.resets_at
        columns: dict[str, Any] = {
            "outcome": self.outcome,
            "exit_code": EXIT_CODES[self.outcome],
            "reason": _text(self.reason, 2000),
            "refused_by_host": self.by_host,
            "agent_exit_code": self.agent_exit_code,
            "final_text": _text(result.text, FINAL_TEXT_MAX),
            # a JSON column takes no NaN and no infinity
            "tally": {
                k: v for k, v in asdict(result.tally).items() if v is not None and isfinite(v)
            },
            "certificate": self.certificate,
            "kept_container": self.kept,
        }
        if self.ledger is not None:
            columns |= {
                "calls_clamped": self.ledger.clamped,
                "spent_usd": self.ledger.spent_usd if isfinite(self.ledger.spent_usd) else 0,
                "spent_is_lower_bound": self.ledger.spent_is_lower_bound,
                "spent_tokens": self.ledger.tokens,
            }
        if resets is not None and 0 < resets < 1e11:
            columns["rate_limit_resets_at"] = dt.datetime.fromtimestamp(resets, dt.UTC)
        if self.report is not None:
            columns |= {
                "report_state": self.report.state,
                "report": self.report.text,
                "report_sha256": self.report.sha256,
                "report_bytes": self.report.size,
            }
        return columns


def _text(text: str, limit: int) -> str:
    text = text.replace("\x00", "␀").encode("utf-8", "replace").decode()
    return text if len(text) <= limit else text[:limit] + "… [cut by sanduk]"
