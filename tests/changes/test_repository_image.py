"""The image of a repository: the operator's recipe and kits, and a set-up from the base commit."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings

from changes import attempts, bundle, repository_image, rules
from changes.repository_image import fitted
from runs.order import Order
from runs.plan import Image, from_recipe
from runs.refusal import Refusal
from tests.changes.rows import run_git

pytestmark = pytest.mark.django_db

LOCKED = 'lock_files = ["requirements.lock", "web/package-lock.json"]\n'
SET_UP = 'set_up = ["pip install -r requirements.lock", "cd web && npm ci"]\n'


@pytest.fixture
def locked(project):
    """The project with lock files in its base commit, which is in the store."""
    (project.path / "web").mkdir()
    (project.path / "requirements.lock").write_text("one==1\n")
    (project.path / "web" / "package-lock.json").write_text("{}\n")
    (project.path / "latest").symlink_to("requirements.lock")
    return committed(project)


def committed(project):
    run_git(project.path, "add", "-A")
    run_git(project.path, "commit", "-q", "-m", "more")
    project.base = run_git(project.path, "rev-parse", "HEAD")
    provided = bundle.provide(project.path, project.base, directory=project.path.parent)
    project.store.take(provided.bundle, provided.base_commit, provided.shallow)
    return project


def order(project, **fields) -> Order:
    said = rules.of(project.repository.uid)
    asked = Order(**{"task": "x", "agent": "pi", **fields})
    return fitted(asked, project.repository, said, project.base)


def image(project, **fields) -> Image:
    made = order(project, **fields)
    return from_recipe(made.recipe or "pi", made.kits)[1]


def test_without_rules_an_order_is_as_it_was(project):
    asked = Order(task="x", agent="pi", kits=("ripgrep",))

    assert fitted(asked, project.repository, rules.Rules(), project.base) == asked
    assert not list((settings.SANDUK_HOME / "repos").glob("*.set-up"))


def test_the_order_comes_before_the_operator_and_kits_are_added(project):
    project.rule('recipe = "codex"\nkits = ["a", "b"]\n')

    assert order(project).recipe == "codex"
    assert order(project, recipe="pi").recipe == "pi"
    assert order(project, kits=("b", "c")).kits == ("a", "b", "c")
    assert order(project, image="team/tool:1") == Order(task="x", agent="pi", image="team/tool:1")


@pytest.mark.parametrize("said", ["true", "false"])
def test_a_browser_is_the_operators_word_unless_the_order_has_its_own(project, said):
    project.rule(f"browser = {said}\n")

    assert order(project).browser is (said == "true")
    assert order(project, browser=True).browser is True
    assert order(project, browser=False).browser is False
    assert order(project, image="team/tool:1").browser is None


def test_a_path_starts_where_the_rules_lie_and_never_in_the_branch(project, monkeypatch):
    project.rule('recipe = "./own.json"\nkits = ["kits/mine", "/srv/kits/other"]\n')
    monkeypatch.chdir(project.path)
    place = settings.SANDUK_HOME / "repos"

    made = order(project)

    assert made.recipe == str(place / "own.json")
    assert made.kits == (str(place / "kits/mine"), "/srv/kits/other")


def test_the_set_up_copies_the_lock_files_and_runs_last_as_root(locked):
    locked.rule(LOCKED + SET_UP)

    said = image(locked).context.containerfile
    files = image(locked).context.files

    lines = said.splitlines()
    copied = [line for line in lines if "/opt/project/" in line]
    assert [line.split('"')[3] for line in copied] == [
        "/opt/project/requirements.lock",
        "/opt/project/web/package-lock.json",
    ]
    assert image(locked).kits == ()  # nobody has to be told that nothing pins it
    script = files[f"steps/{locked.repository.uid}-set-up.sh"].content.decode()
    assert script.splitlines()[1:] == [
        "mkdir -p /opt/project",
        "cd /opt/project",
        "pip install -r requirements.lock",
        "cd web && npm ci",
    ]
    assert b"one==1\n" in {file.content for file in files.values()}
    (run,) = [number for number, line in enumerate(lines) if line.endswith("-set-up.sh")]
    assert "USER" not in "".join(lines[:run])


def test_the_image_is_cached_by_everything_the_set_up_reads(locked):
    locked.rule(LOCKED + SET_UP)
    first = image(locked).tag
    (locked.path / "README.md").write_text("another text\n")
    assert image(committed(locked)).tag == first

    (locked.path / "requirements.lock").write_text("one==2\n")
    second = image(committed(locked)).tag
    locked.rule(LOCKED + SET_UP.replace("npm ci", "npm ci --silent"))
    third = image(locked).tag

    assert len({first, second, third, image_of_pi()}) == 4
    (locked.path / "requirements.lock").write_text("one==1\n")
    locked.rule(LOCKED + SET_UP)
    assert image(committed(locked)).tag == first


def image_of_pi() -> str:
    return from_recipe("pi")[1].tag


def test_the_branchs_own_lock_files_and_the_checkout_are_not_looked_at(locked):
    locked.rule(LOCKED + SET_UP)
    first = image(locked).tag
    (locked.path / "requirements.lock").write_text("evil==1\n")  # not committed
    locked.change({"requirements.lock": "evil==2\n", "web/package-lock.json": "[]"})

    assert image(locked).tag == first


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing.lock", "not in the base commit"),
        ("web", "not in the base commit"),
        ("latest", "no regular file"),
        ("../outside", "no plain path"),
        ("/etc/passwd", "no plain path"),
        ("web/../requirements.lock", "no plain path"),
        ("a\\nb", "no plain path"),
        ("$(id)", "no plain path"),
    ],
)
def test_a_lock_file_that_cannot_be_copied_is_refused_by_name(locked, name, why):
    locked.rule(f'lock_files = ["{name}"]\nset_up = ["true"]\n')

    with pytest.raises(Refusal, match=why) as refusal:
        order(locked)
    assert str(rules.file_of(locked.repository.uid)) in str(refusal.value)


def test_lock_files_without_a_set_up_mean_nothing(locked):
    locked.rule(LOCKED)

    with pytest.raises(Refusal, match="lock_files mean nothing without set_up"):
        order(locked)


def test_an_order_that_was_fitted_is_fitted_again_by_the_rules_of_now(locked):
    locked.rule(LOCKED + SET_UP)
    once = order(locked)
    said = rules.of(locked.repository.uid)
    assert fitted(once, locked.repository, said, locked.base) == once

    locked.rule('set_up = ["true"]\n')
    again = fitted(once, locked.repository, rules.of(locked.repository.uid), locked.base)

    assert len(again.kits) == 1
    assert again.kits != once.kits


def test_many_that_write_the_same_set_up_at_once_leave_one_whole(locked):
    said = rules.read(LOCKED + SET_UP, name="rules")

    def one(_: int) -> str:
        return str(repository_image._set_up(locked.repository, said, locked.base))

    store = attempts.kept_store(locked.repository)
    assert store.holds(locked.base)
    with ThreadPoolExecutor(8) as pool:
        (place,) = set(pool.map(one, range(16)))
    kit = json.loads((Path(place) / "kit.json").read_text())

    assert kit["name"] == locked.repository.uid
    assert [each.name for each in Path(place).parent.parent.iterdir()] == [Path(place).parent.name]


def test_what_has_long_not_been_asked_for_goes_and_the_newest_stay(project):
    place = repository_image._place_of(project.repository)
    for number in range(30):
        (place / f"{number:02}").mkdir(parents=True)
        long_ago = time.time() - (90 + number) * 86400
        os.utime(place / f"{number:02}", (long_ago, long_ago))
    project.rule('set_up = ["true"]\n')

    made = Path(order(project).kits[0])

    left = sorted(path.name for path in place.iterdir())
    assert left == sorted([*(f"{number:02}" for number in range(19)), made.parent.name])


def test_commands_of_several_lines_are_several_lines_of_the_script(project):
    project.rule('set_up = ["""set -x\nif true; then\n  echo a\nfi"""]\n')

    files = image(project).context.files

    script = files[f"steps/{project.repository.uid}-set-up.sh"].content.decode()
    assert script.endswith("set -x\nif true; then\n  echo a\nfi\n")
