"""The bench's pieces work at all. Nothing here is about how fast anything is."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.bench import __main__ as bench
from tests.bench import measured
from tests.bench.relay import measures, targets
from tests.bench.relay.subjects import DIRECT, NGINX, RELAY, nginx_program
from tests.bench.report import Report
from tests.bench.rounds import rotated, sampled
from tests.bench.setting import Effort, Setting

TINY = Effort(
    rounds=1,
    calls=5,
    seconds=0.05,
    events=5,
    levels=(1, 4),
    streams=(1, 4),
    open_streams=5,
    body_sizes=(20_000,),
)
THERE = {DIRECT, RELAY} | ({NGINX} if nginx_program() else set())
needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl makes the certificate"
)


@pytest.fixture
def setting(tmp_path):
    return Setting(Report(), tmp_path, TINY, with_first=False)


def figures_of(setting):
    [section] = setting.report.sections
    assert not [note for note in section["notes"] if "could not be measured" in note]
    return section["figures"]


def assert_all_measured(setting, *labels):
    figures = figures_of(setting)
    for label in labels:
        assert figures[label].keys() >= THERE, label
        assert all(value > 0 for value in figures[label].values()), label


def test_calls_are_measured_for_every_subject_and_all_connections_are_served(setting):
    measures.measure_calls(setting)
    assert_all_measured(setting, targets.FIRST_BYTE, targets.calls_at(1), targets.calls_at(4))
    assert set(figures_of(setting)["connections of 4 that were served"].values()) == {4}


def test_streams_are_measured_for_every_subject_and_each_ends_well(setting):
    measures.measure_streams(setting)
    assert_all_measured(setting, targets.EVENT_AGE, targets.events_at(1), targets.events_at(4))
    assert set(figures_of(setting)["streams of 4 that ended well"].values()) == {4}


def test_bodies_are_measured_for_every_subject(setting):
    measures.measure_bodies(setting)
    assert_all_measured(setting, targets.body_of(20_000))


@needs_openssl
def test_a_provider_over_tls_is_measured_for_every_subject(setting):
    measures.measure_tls(setting)
    assert_all_measured(setting, targets.FIRST_BYTE)


@needs_openssl
def test_a_distant_provider_is_a_round_trip_away_for_every_subject(setting):
    measures.measure_distance(setting)
    assert_all_measured(setting, targets.FIRST_BYTE)
    for name, milliseconds in figures_of(setting)[targets.FIRST_BYTE].items():
        assert milliseconds >= measures.ROUND_TRIP_MS, name


def test_open_streams_are_held_and_their_memory_is_read(setting):
    measures.measure_memory(setting)
    assert set(figures_of(setting)[targets.served(5)].values()) == {5}
    assert_all_measured(setting, "idle, MB")


def test_starts_are_measured(setting):
    measures.measure_start(setting)
    figures = figures_of(setting)
    assert figures[targets.START][RELAY] > 0
    assert figures["a process until it listens, ms"].keys() == THERE - {DIRECT}


def test_a_target_is_met_or_missed_and_the_file_tells(tmp_path):
    report = Report()
    report.section("a part")
    report.target("small enough", 1.0, 2.0)
    report.target("too small", 1.0, 2.0, at_least=True)
    report.write(tmp_path / "figures.json")
    [section] = json.loads((tmp_path / "figures.json").read_text())["sections"]
    assert [one["met"] for one in section["targets"]] == [True, False]
    assert report.missed == 1


def test_a_target_beside_nginx_is_not_judged_without_nginx():
    report = Report()
    report.section("a part")
    figures = {targets.FIRST_BYTE: {DIRECT: 1.0, RELAY: 1.2}}
    targets.judge(targets.SMALL_CALLS[:2], figures, report)
    assert [one["met"] for one in report.sections[0]["targets"]] == [True]
    assert len(report.sections[0]["notes"]) == 1


def test_a_subject_that_fails_is_named_and_the_others_are_measured():
    told = []

    def sample(value):
        if value < 0:
            raise ConnectionResetError("gone")
        return {"figure": value}

    assert sampled({"good": 2, "bad": -1}, 3, sample, told.append) == {"figure": {"good": 2}}
    [line] = told
    assert line.startswith("bad could not be measured")


def test_each_round_visits_everybody_and_begins_with_another():
    visits = rotated(["a", "b", "c"], 3)
    assert [name for _, name in visits[::3]] == ["a", "b", "c"]
    assert sorted(name for turn, name in visits if turn == 1) == ["a", "b", "c"]


def test_the_parts_are_listed_and_a_set_means_its_parts(capsys):
    assert bench.main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(bench.PARTS)
    assert bench._named(["link", "relay"])[-1] == "link"
    assert len(bench._named(["relay", "relay-tls"])) == len(bench.SETS["relay"])


def test_a_part_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        bench.main(["nothing"])
    assert ended.value.code == 2
    assert "there is no part nothing" in capsys.readouterr().err


def test_the_page_of_facts_has_every_figure_it_was_given():
    run = {"first request": 5542, "first call after": 0.9, "wall": 1.5, "upstream": 0.1, "calls": 2}
    page = measured.page_of(
        {"pi": run},
        {"pi": {"on the host": 0.3, "in the container": 174.0}},
        {"sealed": {"names": ["lo"], "host": []}, "open": {"names": ["eth0"], "host": ["1.2.3.4"]}},
        {"sealed": 0, "open": 1},
    )

    of = f"of {len(measured.KEYS)}"
    for line in (
        "| pi | 5,542 | 1,386 |",
        "| pi | 1.50 | 0.90 | 0.10 | 2 |",
        "| pi | 0.3 | 174.0 |",
        "| sealed | lo | no |",
        "| open | eth0 | yes |",
        f"| sealed | 0 {of} |",
        f"| open | 1 {of} |",
    ):
        assert line in page.splitlines()


def test_the_page_in_the_docs_is_of_this_form():
    """It is measured, not written: only its headings and first columns can be compared."""
    page = measured.PAGE.read_text("utf-8")

    for agent in measured.AGENTS:
        assert f"| {agent} |" in page
    assert re.findall(r"^\| sealed \| 0 of \d+ \|$", page, re.MULTILINE)
