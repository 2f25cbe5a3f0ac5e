"""`assistant.toml`: strict types, the line of what is wrong, and the old keys' old meaning."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistants import assistant_toml, briefing, keys, listing, toml_text
from assistants.assistant_toml import Arrival
from assistants.config import Config
from assistants.models import Assistant
from assistants.schedules import Timing
from runs import clock
from runs.refusal import Refusal
from runs.toml_lines import line_of

# what the first program's page showed as a usual file
OLD = """\
name = "reader"
agent = "claude"
provider = "anthropic"
every = "2h"
timeout = 600
max_failures = 5
gate = "gate.sh"
mounts = ["data:/data:ro", "~/repo:/repo"]
args = ["--effort", "low"]
"""


def arrived(directory: Path, text: str) -> Arrival:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "assistant.toml").write_text(text)
    return assistant_toml.read(directory, now=clock.now())


def why(directory: Path, text: str) -> str:
    with pytest.raises(Refusal) as refused:
        arrived(directory, text)
    return str(refused.value)


def test_an_old_file_keeps_its_meaning_and_says_what_that_is(tmp_path: Path):
    found = arrived(tmp_path, OLD)

    assert found.name == "reader"
    assert (found.config.agent, found.config.provider) == ("claude", "anthropic")
    assert (found.config.timeout_s, found.config.max_failures) == (600, 5)
    assert (found.config.mode, found.config.gate) == ("sealed", "gate.sh")
    assert (found.config.hold, found.config.memory_review) == (False, False)
    assert found.config.args == ("--effort", "low")
    assert [each.every_s for each in found.timings] == [7200]
    assert any("delivered without approval" in note for note in found.notes)
    assert any("unreviewed memory" in note for note in found.notes)


def test_an_empty_file_is_an_assistant_of_the_directorys_name(tmp_path: Path):
    found = arrived(tmp_path / "daily", "")

    assert found.name == "daily"
    assert [(each.every_s, each.missed) for each in found.timings] == [(1800, "once")]
    assert found.config.brief == "brief.md"


def test_one_that_holds_and_reviews_has_nothing_to_be_told(tmp_path: Path):
    assert arrived(tmp_path / "a", "approval = true\nmemory_review = true\n").notes == ()


def test_what_waits_because_a_secret_was_found_may_expire_without_approval(tmp_path: Path):
    assert arrived(tmp_path / "a", 'expires = "1d"').config.expires_s == 86400


@pytest.mark.parametrize("given", ["5", '"5"', "59"])
def test_a_plain_number_that_may_have_meant_minutes_is_told(tmp_path: Path, given):
    found = arrived(tmp_path / "a", f"every = {given}\napproval = true\nmemory_review = true")

    assert [note.partition(";")[0] for note in found.notes] == [
        f"every = {given.strip(chr(34))} is {given.strip(chr(34))} seconds"
    ]


@pytest.mark.parametrize("given", ["60", '"5s"', "1800"])
def test_a_number_that_is_clear_is_not(tmp_path: Path, given):
    text = f"every = {given}\napproval = true\nmemory_review = true"
    assert arrived(tmp_path / "a", text).notes == ()


@pytest.mark.parametrize("when", ["every = '1h'", "cron = '0 6 * * *'"])
def test_quiet_hours_that_cover_every_slot_are_said_by_their_key(tmp_path: Path, when):
    told = why(tmp_path / "a", f"{when}\nquiet_hours = '00:00-23:59'")

    assert "line 2: quiet_hours: 00:00-23:59 cover every slot" in told


def test_mounts_and_recipes_are_found_from_the_directory_and_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", "/home/me")
    found = arrived(tmp_path / "a", OLD + 'recipe = "./own.json"\n')

    assert found.config.mounts == (f"{tmp_path}/a/data:/data:ro", "/home/me/repo:/repo")
    assert found.config.recipe == f"{tmp_path}/a/own.json"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('# one\napproval = "false"', 2, "approval: it takes true or false, without quotes"),
        ("max_failures = 'x'", 1, "max_failures: it takes a whole number from 1"),
        ("max_failures = 0", 1, "from 1 to"),
        ("max_failures = true", 1, "not true or false"),
        ('mounts = "~/a:/a"', 1, "mounts: it takes a list of strings"),
        ('args = "--effort low"', 1, "args: it takes a list of strings"),
        ("args = ['--effort', 3]", 1, "one of its items is a whole number"),
        ("every = 1.5", 1, "every: it takes a duration"),
        ('every = "1h30m"', 1, "every: it takes a duration"),
        ('every = "٣m"', 1, "every: it takes a duration"),
        ('every = "0m"', 1, "more than zero"),
        ('timeout = "8d"', 1, "at most 7d"),
        ('mode = "closed"', 1, "mode: it takes"),
        ("budget = -1", 1, "budget: it takes US dollars above 0"),
        ("budget = nan", 1, "budget: it takes US dollars above 0"),
        ("budget = 3\ndaily_budget = 2", 1, "more than daily_budget"),
        ("name = 'A b'", 1, "is no name"),
        ('every = "1h"\ncron = "0 6 * * *"', 2, "exclude each other"),
        ('cron = "0 6 * *"', 1, "five fields"),
        ('\n\ntimezone = "Mars/Olympus"', 3, "no zone"),
        ('quiet_hours = "22-7"', 1, "quiet_hours"),
        ('missed = "once-if-younger-than"', 1, "missed: it takes"),
        ('missed = "never"', 1, "missed: it takes"),
        ('jitter = "1h"', 1, "shorter than every"),
        ('cron = "0 * * * *"\njitter = "1h"', 2, "jitter: must be shorter than the 1h from"),
        ('timezone = "localtime"', 1, "timezone: 'localtime' is no zone"),
        ('[[schedules]]\ncron = "0 6 * * *"\n[[schedules]]\ncron = "0 6 * * *"', 4,
         "cron: schedule 2 says what 1 says"),
        ('destinations = ["log", "log"]', 1, "destinations: 'log' is in it twice"),
        ('allow_hosts = ["a.example", "a.example"]', 1, "allow_hosts: 'a.example' is in it twice"),
        ("approvals = 2", 1, "needs approval = true"),
        ("exclude_author = true", 1, "needs approval = true"),
        ('gate = ""', 1, "empty"),
        ('gate = "../gate.sh"', 1, "must be a file in"),
        ('brief = "/etc/passwd"', 1, "must be a file in"),
        ('gate = "workspace/gate.sh"', 1, "where its agent could change it"),
        ("agent = ['pi']", 1, "agent: it takes a string"),
        ("agent = 2026-01-01", 1, "a date or time"),
        ("[approval]\nx = 1", 1, "not a table"),
        ('mounts = ["nonsense"]', 1, "mounts:"),
        ('[[schedules]]\nevery = "1h"\n[[schedules]]\nevery = "x"', 4, "every: it takes"),
        ('[[schedules]]\nevry = "1h"', 2, "did you mean every?"),
        ('[[schedules]]\ntimezone = "UTC"', None, "neither every nor cron"),
        ('every = "1h"\n[[schedules]]\nevery = "1h"', 1, "give it in each"),
        ("schedules = 3", 1, "under a heading"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_its_line_and_its_key(tmp_path: Path, text, line, said):
    told = why(tmp_path / "a", text)

    assert said in told
    assert "\n" not in told
    if line:
        assert f"assistant.toml line {line}: " in told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("aproval = true", "line 1: aproval: there is no such key; did you mean approval?"),
        ("zzz = 1", "there are name, agent, recipe"),
        ("a = = 1", "line 1"),
        ('a = 1\na = 2', "assistant.toml line 2: a: it is set twice"),
        ("x = " + "[" * 5000, "assistant.toml"),
        ("#" * 300_000, "larger than"),
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_one_line(tmp_path: Path, text, said):
    assert said in why(tmp_path / "a", text)


def test_a_link_a_pipe_or_nothing_in_place_of_the_file_is_refused(tmp_path: Path):
    with pytest.raises(Refusal, match="is not there; sanduk assistant new"):
        assistant_toml.read(tmp_path, now=clock.now())
    (tmp_path / "assistant.toml").symlink_to("/etc/passwd")
    with pytest.raises(Refusal, match="no regular file"):
        assistant_toml.read(tmp_path, now=clock.now())
    (tmp_path / "assistant.toml").unlink()
    (tmp_path / "assistant.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(Refusal, match="not UTF-8"):
        assistant_toml.read(tmp_path, now=clock.now())


def test_a_gate_that_is_a_link_into_the_workspace_is_refused(tmp_path: Path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "gate.sh").symlink_to("workspace/gate.sh")

    assert "could change it" in why(tmp_path, "gate = 'gate.sh'")


@pytest.mark.parametrize(("value", "mode"), [("true", "sealed"), ("false", "open")])
def test_the_old_key_proxy_is_a_mode_and_is_noted(tmp_path: Path, value, mode):
    found = arrived(tmp_path / "a", f"proxy = {value}")

    assert found.config.mode == mode
    assert f'mode = "{mode}"' in found.notes[0]
    assert any("has a network" in note for note in found.notes) is (mode == "open")


def test_the_old_key_proxy_may_not_contradict_the_mode(tmp_path: Path):
    assert "contradicts" in why(tmp_path / "a", 'proxy = true\nmode = "open"')
    assert "true or false" in why(tmp_path / "a", 'proxy = "yes"')


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ('["--nope"]', "--nope"),
        ('["--effort", "much"]', "--effort"),
        ('["do it"]', "the task is the brief"),
        ('["--detach"]', "--detach means nothing here"),
        ('["-w", "/tmp/x"]', "--workdir means nothing here"),
        ('["--report=x"]', "--report means nothing here"),
        ('["--help"]', "help"),
        ('["--timeout", "x"]', "--timeout takes a duration"),
        ('["--proxy-port", "1"]', "--proxy-port"),
    ],
)
def test_args_that_run_would_not_take_are_refused_when_it_arrives(tmp_path: Path, args, said):
    told = why(tmp_path / "a", f"max_failures = 2\nargs = {args}")

    assert "assistant.toml line 2: args: " in told
    assert said in told


@pytest.mark.parametrize(
    ("key", "args"),
    [
        ('model = "a"', '["--model", "b"]'),
        ('timeout = "1m"', '["--timeout=2m"]'),
        ('mode = "sealed"', '["--mode", "open"]'),
        ("proxy = true", '["--mode", "open"]'),
        ("budget = 1", '["--budget", "2"]'),
        ('recipe = "x"', '["-r", "y"]'),
    ],
)
def test_args_may_not_say_what_a_key_says(tmp_path: Path, key, args):
    assert "contradicts the key" in why(tmp_path / "a", f"{key}\nargs = {args}")


def test_args_that_a_key_can_say_become_that_key(tmp_path: Path):
    found = arrived(
        tmp_path / "a",
        'args = ["--budget", "2", "--effort", "low", "--mode=open", "-rmine", "--idle-timeout", '
        '"off", "--allow-model", "m"]',
    )

    assert found.config.args == ("--effort", "low", "--allow-model", "m")
    assert (found.config.budget_usd, found.config.mode) == (2, "open")
    assert (found.config.recipe, found.config.idle_timeout_s) == ("mine", None)
    assert any("--budget in args" in note for note in found.notes)
    assert any("has a network" in note for note in found.notes)


@pytest.mark.django_db
def test_paths_in_args_start_at_the_directory_wherever_it_is_woken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", "/home/me")
    found = arrived(
        tmp_path / "a",
        'args = ["--containerfile", "box/Containerfile", "--mount=../data:/data:ro", "--mount", '
        '"~/x:/x", "--kit", "./kits/sql", "--kit=lint", "--log-dir", "/srv/logs", "-ritem.json"]',
    )
    monkeypatch.chdir("/")
    assistant = Assistant(name="a", directory=str(tmp_path / "a"))
    config = msgspec.structs.replace(found.config, recipe="")

    order = briefing.order(assistant, config, "look", budget_usd=None)

    assert found.config.recipe == f"{tmp_path}/a/item.json"
    assert order.containerfile == f"{tmp_path}/a/box/Containerfile"
    assert order.mounts == (f"{tmp_path}/a/../data:/data:ro", "/home/me/x:/x")
    assert order.kits == (f"{tmp_path}/a/kits/sql", "lint")
    assert order.log_dir == "/srv/logs"
    told = dict(listing.settings(Assistant(config=found.config.stored(), pk=1)))
    assert f"--containerfile {tmp_path}/a/box/Containerfile" in told["args"]


def test_several_schedules_share_what_is_said_at_the_top(tmp_path: Path):
    found = arrived(
        tmp_path / "a",
        'timezone = "Europe/Berlin"\nquiet_hours = "22:00-06:00"\n'
        '[[schedules]]\nevery = "1h"\n'
        '[[schedules]]\ncron = "0 9 * * 1"\ntimezone = "America/New_York"\nmissed = "skip"\n',
    )

    shown = [(each.every_s, each.cron, each.timezone, each.missed) for each in found.timings]
    assert shown == [
        (3600, "", "Europe/Berlin", "once"),
        (None, "0 9 * * 1", "America/New_York", "skip"),
    ]
    assert {each.quiet_hours for each in found.timings} == {"22:00-06:00"}


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ('a = """\nb = 1\n"""\nb = 2\n', "b", 4),
        ("a = [\n'b = 1',\n]\n'b' = 2\n", "b", 4),
        ("a = 1\n[t]\nb = 1\n", "b", None),
        ("[b]\nx = 1\n", "b", 1),
        ("b.c = 1\n", "b", 1),
        ("bb = 1\n", "b", None),
    ],
)
def test_the_line_of_a_key_is_that_of_its_statement(text, key, line):
    tomllib.loads(text)
    assert line_of(text, key) == line


# -- leaving -----------------------------------------------------------------------------------
words = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="/:."), min_size=1,
                max_size=12)  # fmt: skip
seconds = st.integers(1, 7 * 86400)
timings = st.builds(
    Timing,
    anchor_at=st.just(clock.now().replace(microsecond=0)),
    every_s=st.integers(3601, 40_000),  # a day's quiet hours never hold all of its slots
    jitter_s=st.integers(0, 3600),
    timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
    quiet_hours=st.sampled_from(["", "22:00-07:00"]),
) | st.builds(
    Timing,
    anchor_at=st.just(clock.now().replace(microsecond=0)),
    cron=st.sampled_from(["30 12 * * 1-5", "*/5 * * * *"]),
    missed=st.just("once-if-younger-than"),
    missed_within_s=seconds,
)
configs = st.builds(
    Config,
    agent=words,
    model=words,
    provider=words,
    mode=st.sampled_from(["sealed", "key-safe", "open"]),
    timeout_s=seconds,
    idle_timeout_s=st.none() | seconds,
    gate=st.sampled_from(["", "gate.sh"]),
    mounts=st.lists(words.map(lambda word: f"/srv/{word}:/data")).map(tuple),
    args=st.lists(words.map(lambda word: f"--hide={word}")).map(tuple),
    allow_hosts=st.lists(words, unique=True).map(tuple),
    max_failures=st.integers(1, 1000),
    overlap=st.sampled_from(["skip", "wait"]),
    budget_usd=st.none() | st.floats(0.01, 10),
    daily_budget_usd=st.none() | st.floats(10, 1e6),
    hold=st.just(True),
    approvals=st.integers(1, 20),
    expires_s=st.none() | seconds,
    memory_review=st.booleans(),
    memory_max_mb=st.integers(1, 10_000),
    deliver_failures=st.booleans(),
) | st.builds(Config, hold=st.booleans(), memory_review=st.booleans())


@given(
    config=configs,
    found=st.lists(timings, min_size=1, max_size=3, unique=True),
    places=st.lists(st.sampled_from(["mail", "log"]), unique=True),
)
@settings(max_examples=80, deadline=None)
def test_what_is_exported_arrives_as_the_same(tmp_path_factory, config, found, places):
    directory = tmp_path_factory.mktemp("left")
    text = toml_text.written("daily", config, found, places)
    again = arrived(directory, text)

    assert (again.name, again.config, again.destinations or ()) == ("daily", config, tuple(places))
    assert len(again.timings) == len(found)
    assert all(new.same_as(old) for new, old in zip(again.timings, found, strict=True))
    assert toml_text.written("daily", again.config, again.timings, places) == text


def test_every_setting_has_a_key_and_every_key_of_a_setting_exists():
    fields = {key.field for key in keys.KEYS if key.field}

    assert set(Config.__struct_fields__) <= fields
    assert fields - set(Config.__struct_fields__) <= set(Timing.__slots__)


def test_leaving_a_key_out_means_what_is_stored_for_a_new_file(tmp_path: Path):
    found = arrived(tmp_path / "a", "").config

    for key in keys.KEYS:
        if key.field in Config.__struct_fields__:
            assert getattr(found, key.field) == key.absent, key.name
