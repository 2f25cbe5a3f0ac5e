"""What a run cost, wherever it is told: how well it is known, and `≥` when it is more."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from runs import clock, narration, shown
from runs.management.commands import sanduk_ps, sanduk_runs, sanduk_show
from runs.models import RelayCall, Run
from tests.factories import make_run

pytestmark = pytest.mark.django_db


def run_of(*kinds: str, usd: float = 0.25) -> Run:
    """A run with a call of each kind; what is not known costs nothing as far as it is known."""
    known = [kind for kind in kinds if kind != "unknown"]
    least = bool({"lower_bound", "unknown"} & set(kinds))
    run = make_run(
        state="ended",
        spent_usd=usd * len(known),
        spent_is_lower_bound=least,
        calls_relayed=len(kinds),
    )
    for number, kind in enumerate(kinds, 1):
        RelayCall.objects.create(
            run=run, sequence=number, method="POST", path="/v1/messages", started_at=clock.now(),
            status=200, protocol="anthropic-messages", cost_kind=kind,
            cost_usd=None if kind == "unknown" else usd,
        )  # fmt: skip
    return run


CASES = [
    (("exact",), "exact", "$0.2500 exact"),
    (("reported", "reported"), "reported", "$0.5000 reported"),
    (("exact", "reported"), "mixed", "$0.5000 mixed"),
    (("exact", "lower_bound"), "lower_bound", "≥ $0.5000"),
    (("reported", "unknown"), "lower_bound", "≥ $0.2500"),
    (("unknown",), "unknown", "cost unknown"),
]


@pytest.mark.parametrize(("kinds", "kind", "words"), CASES)
def test_the_total_says_how_well_it_is_known(capsys, admin_client, kinds, kind, words):
    run = run_of(*kinds)

    assert words in narration.last_word(run).split(", ")
    assert narration.as_json(run)["spent"]["cost_kind"] == kind
    sanduk_runs.Command().act(limit=5, live=False, json=False)
    assert words in capsys.readouterr().out
    sanduk_runs.Command().act(limit=5, live=False, json=True)
    assert json.loads(capsys.readouterr().out)[0]["spent"]["cost_kind"] == kind
    assert words in admin_client.get(reverse("admin:runs_run_changelist")).content.decode()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("exact", "$0.2500 exact"),
        ("reported", "$0.2500 reported"),
        ("lower_bound", "≥ $0.2500"),
        ("unknown", "cost unknown"),
    ],
)
def test_each_call_says_how_well_its_cost_is_known(capsys, admin_client, kind, words):
    run = run_of(kind)
    command = sanduk_show.Command()
    asked = command.create_parser("sanduk", "sanduk_show").parse_args([run.uid, "--calls"])
    command.act(**vars(asked))

    assert capsys.readouterr().out.rstrip().endswith(words)
    assert words in admin_client.get(reverse("admin:runs_relaycall_changelist")).content.decode()


def test_a_run_without_a_model_call_has_no_cost_and_names_none():
    run = make_run(state="ended")

    assert shown.spent(run) == ""
    assert narration.as_json(run)["spent"]["cost_kind"] is None


def test_the_costs_of_many_runs_are_one_question(django_assert_num_queries):
    runs = [run_of("exact") for _ in range(5)]

    with django_assert_num_queries(1):
        assert set(shown.cost_kinds(runs).values()) == {"exact"}


def test_an_empty_list_of_live_runs_says_so(capsys):
    make_run(state="ended")
    sanduk_runs.Command().act(limit=5, live=True, json=False)
    told = capsys.readouterr()

    assert told.out == ""
    assert "no run is going on" in told.err


def test_columns_stand_under_their_headings(capsys):
    run_of("exact")
    make_run(state="ended", agent="an-agent-with-a-name", outcome="budget_exhausted")
    sanduk_runs.Command().act(limit=5, live=False, json=False)
    headings, *lines = capsys.readouterr().out.splitlines()

    for name in ("CREATED", "OUTCOME", "AGENT", "COST", "TASK"):
        column = headings.index(name)
        assert all(line[column - 1] == " " != line[column] for line in lines), name


def test_containers_stand_under_headings_too(capsys, monkeypatch):
    class Engine:
        async def containers(self, _labels):
            from runs.engines.base import ContainerRow

            labels = {"sanduk.run": "a" * 12, "sanduk.role": "agent"}
            return [ContainerRow("c" * 64, "sanduk-pi:1", "running", labels, "x\x1b[2J")]

    monkeypatch.setattr(sanduk_ps, "get_engine", lambda _: Engine())
    monkeypatch.setattr(sanduk_ps, "install_id", lambda: "here")
    monkeypatch.setattr(sanduk_ps.purposes, "of", lambda uids: dict.fromkeys(uids, "a change"))
    sanduk_ps.Command().act(runtime="", json=False)
    headings, line = capsys.readouterr().out.splitlines()

    assert headings.split("  ")[0] == "CONTAINER"
    for name in sanduk_ps.COLUMNS:
        column = headings.index(name)
        assert line[column] != " "
    assert line.startswith("c" * 12)


def test_a_model_that_is_free_has_no_price_to_tell_unless_its_provider_told_one():
    assert shown.money(0.0, "exact") == ""
    assert shown.money(0.0, "reported") == "$0.0000 reported"
