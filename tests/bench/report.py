"""What a bench prints, and the same as data: figures side by side, ratios first, then targets."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = tuple[str, Mapping[str, float]]  # a figure's name with its unit, and its value by subject


@dataclass
class Report:
    """Prints as it is filled.

    Attributes:
        sections: everything, as it goes into the file of `--json`.
    """

    sections: list[dict[str, Any]] = field(default_factory=list)

    def section(self, title: str) -> None:
        """Begin a part; what follows belongs to it."""
        self.sections.append({"title": title, "figures": {}, "targets": [], "notes": []})
        print(f"\n== {title}", flush=True)

    def table(self, names: Sequence[str], ours: str, rows: Sequence[Row]) -> None:
        """Print figures by subject, and first how ours compares with each of the others."""
        others = [name for name in names if name != ours]
        width = max(len(label) for label, _ in rows)
        ratios = "".join(f"{f'/ {name}':>14}" for name in others)
        print(f"{'':{width}}{ratios}  |{''.join(f'{name:>13}' for name in names)}")
        for label, values in rows:
            self._last["figures"][label] = dict(values)
            compared = "".join(f"{_ratio(values, ours, name):>14}" for name in others)
            plain = "".join(f"{_number(values.get(name)):>13}" for name in names)
            print(f"{label:{width}}{compared}  |{plain}", flush=True)

    def figure(self, label: str, values: Mapping[str, float]) -> None:
        """Keep and print one figure of several subjects on one line."""
        self._last["figures"][label] = dict(values)
        shown = ", ".join(f"{name} {_number(value)}" for name, value in values.items())
        print(f"{label}: {shown}", flush=True)

    def target(self, label: str, figure: float, limit: float, *, at_least: bool = False) -> None:
        """Hold a figure against what is wanted of it."""
        is_met = figure >= limit if at_least else figure <= limit
        bound = "at least" if at_least else "at most"
        self._last["targets"].append(
            {"target": label, "figure": figure, bound.replace(" ", "_"): limit, "met": is_met}
        )
        verdict = "met" if is_met else "MISSED"
        print(f"  {label:<58} {_number(figure):>8}  ({bound} {limit:g})  {verdict}", flush=True)

    def note(self, text: str) -> None:
        """Say something beside the figures, for example what was left out and why."""
        self._last["notes"].append(text)
        print(f"  {text}", flush=True)

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        everything = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "cores": os.cpu_count(),
            "load": os.getloadavg(),
            "sections": self.sections,
        }
        path.write_text(json.dumps(everything, indent=1) + "\n")

    @property
    def missed(self) -> int:
        return sum(not one["met"] for section in self.sections for one in section["targets"])

    @property
    def _last(self) -> dict[str, Any]:
        return self.sections[-1]


def _ratio(values: Mapping[str, float], ours: str, other: str) -> str:
    if not values.get(other) or ours not in values:
        return "-"
    return f"{values[ours] / values[other]:.3g} x"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
