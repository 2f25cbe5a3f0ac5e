"""The words of a pull request: whoever wrote them, they call nobody and end nothing."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from changes import pull_request_text
from changes.models import RiskFlag
from tests.changes.rows import make_attempt, make_change

pytestmark = pytest.mark.django_db

EVIL = (
    "Thanks @octocat and @people/owners!\n"
    "Fixes #12, closes people/shop#13, resolves GH-14 and gh-15\n"
    "fix https://github.com/people/shop/issues/16 or www.evil.example\n"
    "```\n"
    "~~~\n"
    "/approve\n"
    "<img src=https://evil.example/x.png><script>alert(1)</script>\n"
    "![x](https://evil.example/x.png) [y](javascript:alert(1))\n"
    "Co-authored-by: Eve <eve@evil.example>\n"
    "\u202eevil\u200b \x1b[31m\r/merge\n"
    "\x0b\x85\u2028/lgtm\n"
)
ACTS = re.compile(r"@\w|#\d|\bgh-\d|://\S|\bwww\.\w", re.IGNORECASE)


@pytest.fixture(autouse=True)
def _held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.secret_scan.held_secrets", lambda: ({"K": "held-secret-77"}, []))


def body_of(change, attempt, **words: str) -> str:
    return pull_request_text.body(
        change, attempt, **{"tests": "passed", "trailers": "Sanduk-Change: 1", **words}
    )


def test_hostile_words_stand_in_blocks_they_cannot_end_and_act_nowhere():
    change = make_change(task=EVIL, agent="@octocat", model="#12")
    attempt = make_attempt(change, results={"summary": EVIL, "risks": [EVIL], "followups": [EVIL]})
    RiskFlag.objects.create(
        attempt=attempt, category="secret", severity="high", path="a\n```\n@eve", reason=EVIL
    )

    text = body_of(change, attempt, tests=EVIL, trailers=EVIL)

    assert ACTS.search(text) is None
    assert "\u202e" not in text
    assert "\x1b" not in text
    kinds = {each.type for each in MarkdownIt("commonmark").parse(text)}
    assert kinds <= {
        "paragraph_open", "paragraph_close", "inline", "heading_open", "heading_close", "fence",
    }  # fmt: skip
    inside = False
    for line in text.split("\n"):
        if line in ("```text", "```"):
            inside = line == "```text"
        elif inside:
            assert line.startswith("| "), line
        else:
            assert "evil" not in line
            assert "octocat" not in line
    assert not inside


def test_a_title_is_one_quiet_line_of_the_task():
    def title(task: str) -> str:
        return pull_request_text.title(make_change(task=task))

    assert title("\n\n  add   new things \n\nand more") == "add new things"
    assert title("Fixes #12 for @anna `x` <b>\u202e") == "Fixes # 12 for @ anna 'x' (b)\\u202e"
    assert len(title("x" * 5000)) == pull_request_text.TITLE_MAX
    change = make_change(task=" \n")
    assert pull_request_text.title(change) == f"Change {change.uid}"


def test_a_secret_of_this_host_stays_here():
    change = make_change(task="use held-secret-77\nand go on")
    attempt = make_attempt(
        change, results={"summary": "it is\nheld-secret-77\nor ghp_" + "a1B2" * 9 + "\nfine"}
    )

    text = body_of(change, attempt)

    assert "held-secret-77" not in text
    assert "ghp_a1B2" not in text
    assert "| and go on" in text
    assert "| fine" in text
    assert pull_request_text.title(change) == f"Change {change.uid}"


def test_what_is_long_is_cut_and_that_is_said():
    change = make_change(task="\n".join(f"line {number}" for number in range(500)))
    attempt = make_attempt(
        change,
        results={"summary": "\n".join("x" * 5000 for _ in range(5000))},
        could_not_check=["y" * 5000] * 200,
    )

    text = body_of(change, attempt)

    assert "| … 440 more lines" in text
    assert len(text) <= pull_request_text.BODY_MAX


def test_a_change_without_flags_says_so():
    change = make_change(task="tidy")

    text = body_of(change, make_attempt(change, files=1, added_lines=2, deleted_lines=1))

    assert "| clear: nothing was flagged" in text
    assert "1 file, +2 -1." in text
    assert "What the agent says" not in text
