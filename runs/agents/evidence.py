"""Strict reading of what an agent printed: every value may be missing, forged, huge or of any type.

Nothing here raises. What does not have the expected shape reads as absent; what is too long is cut
and says so.
"""

from __future__ import annotations

import json
import re
from typing import Any

from runs.agents.base import Trace

TEXT_CHARS = 20_000  # of one trace line
OUTPUT_CHARS = 2_000  # of what a tool gave back when it went well
DETAIL_CHARS = 8_000  # of a tool's input or output
ERROR_CHARS = 2_000
ANSWER_CHARS = 200_000  # of the final message
_BLOCKS = 1_000  # of one message that are read
_COUNT_LIMIT = 10**15  # above any honest count of tokens, and within a 64-bit column
_COST_LIMIT_USD = 10.0**6
_RATE_LIMITED = re.compile(r"^429\b|\(429\)|\b(?:http|status)(?: code)?:? 429\b", re.IGNORECASE)
_NESTING = 5  # levels of {"error": {"error": ...}} that are opened


def clean(text: str, limit: int = TEXT_CHARS) -> str:
    """The text, storable anywhere: cut at `limit` characters, no NUL, no lone surrogate."""
    if len(text) > limit:
        text = f"{text[:limit]} … [{len(text) - limit:,} more characters]"
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def text_of(value: object, limit: int = TEXT_CHARS) -> str:
    """The string, or an empty one when it is no string."""
    return clean(value, limit) if isinstance(value, str) else ""


def mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[dict[str, Any]]:
    """The objects of a list, the first thousand of its items."""
    if not isinstance(value, list):
        return []
    return [item for item in value[:_BLOCKS] if isinstance(item, dict)]


def text_blocks(content: object) -> str:
    """The texts of a message's or tool result's content blocks, one below the other."""
    blocks = [block for block in mappings(content) if block.get("type") == "text"]
    texts = [text_of(block.get("text"), ANSWER_CHARS) for block in blocks]
    return clean("\n".join(filter(None, texts)), ANSWER_CHARS)


def count(value: object) -> int | None:
    """A whole number that can be a count; `true`, 1.5, -1 and 10**30 cannot."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _COUNT_LIMIT else None


def total(*values: object) -> int | None:
    """The sum of those that are counts, or None when none is."""
    known = [number for number in map(count, values) if number is not None]
    return count(sum(known)) if known else None


def dollars(value: object) -> float | None:
    """An amount in US dollars; NaN, infinity and negative amounts are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared before it is converted: an integer of 400 digits fits no float. NaN fails too.
    return float(value) if 0 <= value <= _COST_LIMIT_USD else None


def shown(value: object, limit: int = DETAIL_CHARS) -> str:
    """Any JSON value as one line of text, for a person to read."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value, limit)
    try:
        return clean(json.dumps(value, ensure_ascii=False, separators=(", ", ": ")), limit)
    except (RecursionError, TypeError, ValueError):
        return "[nested too deeply to show]"


def returned(name: str, output: object) -> list[Trace]:
    """What a tool gave back, where its agent prints that; no line where it is nothing."""
    text = shown(output, OUTPUT_CHARS).rstrip()
    return [Trace("note", f"{name} gave back", text)] if text else []


def sentence(value: object) -> str:
    """An error as words: of an object its message, also when it stands as JSON behind a text."""
    if isinstance(value, list):
        # A list in a list is shown as it is: opening each would recurse as deep as it likes.
        flat = [shown(item) if isinstance(item, list) else sentence(item) for item in value[:20]]
        return clean("; ".join(filter(None, flat)), ERROR_CHARS)
    if isinstance(value, str):
        return clean(_without_json(value.strip()), ERROR_CHARS)
    if isinstance(value, dict):
        return clean(_message(value) or shown(value, ERROR_CHARS), ERROR_CHARS)
    return shown(value, ERROR_CHARS)


def outcome_error(record: dict[str, Any]) -> str:
    """What a result record with an `outcome` says went wrong; empty when it is `complete`."""
    outcome = record.get("outcome")
    if outcome == "complete":
        return ""
    said = text_of(outcome, 200).replace("_", " ").strip()
    return sentence(record.get("error")).strip() or f"the agent ended with: {said or 'no outcome'}"


def names_rate_limit(error: str) -> bool:
    """Whether an agent's error names HTTP status 429 as a status, not as any number."""
    return bool(_RATE_LIMITED.search(error))


def _message(error: dict[str, Any]) -> str:
    inner: object = error
    for _ in range(_NESTING):
        if not isinstance(inner, dict):
            break
        if isinstance(inner.get("message"), str) and inner["message"].strip():
            return str(inner["message"]).strip()
        inner = inner.get("error") or inner.get("detail")
    return inner.strip() if isinstance(inner, str) else ""


def _without_json(text: str) -> str:
    """`429: {"message": "too fast"}` as `429: too fast`."""
    start = text.find("{")
    if start < 0 or len(text) > TEXT_CHARS:
        return text
    try:
        body, end = json.JSONDecoder().raw_decode(text, start)
    except (RecursionError, ValueError):
        return text
    message = _message(mapping(body))
    return f"{text[:start]}{message}{text[end:]}" if message else text
