"""What a run was told to hide, an agent cannot read, replace or uncover."""

from __future__ import annotations

import json
import os

import pytest

from tests.engine.running import DONE, Installation

pytestmark = pytest.mark.engine
TRY = """
for path in .env config/.env "odd, name.key" secrets/inside; do
    cat "$path" 2>/dev/null
    echo stolen 2>/dev/null > "$path"
    rm -f "$path" 2>/dev/null
    mv "$path" taken 2>/dev/null
done
umount .env 2>/dev/null
mv config moved && cat moved/.env && mv moved config
ls secrets; grep -r s3cret . 2>/dev/null
"""


def filled(made: Installation) -> None:
    for name in (".env", "config/.env", "odd, name.key", "secrets/inside", "open.txt"):
        path = made.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("s3cret" if name != "open.txt" else "seen")
    if os.geteuid() == 0:
        for folder, folders, files in os.walk(made.work):
            for name in (".", *folders, *files):
                os.chown(f"{folder}/{name}", 1000, 1000)


def secrets_of(made: Installation) -> list[str]:
    return [
        (made.work / name).read_text()
        for name in (".env", "config/.env", "odd, name.key", "secrets/inside")
    ]


def test_hidden_files_are_empty_and_stay_as_they_were(installation: Installation):
    filled(installation)
    flags = ("--hide", ".env", "--hide", "*.key", "--hide", "secrets")
    done = installation.run(f"{{ {TRY} cat open.txt; }} > said 2>&1; {DONE}", *flags)

    assert (done.code, done.err) == (0, "")
    assert (installation.work / "said").read_text() == "seen"
    assert secrets_of(installation) == ["s3cret"] * 4
    assert installation.show()["rules"]["hide"] == [".env", "*.key", "secrets"]
    installation.nothing_left()


def test_without_hiding_the_same_script_finds_them_and_a_word_of_warning_is_said(
    docker: Installation,
):
    filled(docker)
    script = f"cat .env secrets/inside > said; {DONE}"
    done = docker.sanduk(*docker.words(script, "--hide", "nope"), SANDUK_HIDE="*.pem")

    assert (docker.work / "said").read_text() == "s3crets3cret"
    assert "the agent can read .env, odd, name.key, config/.env; --hide .env would" in done.err
    assert "--hide nope: nothing matches" in done.err
    assert "pem" not in done.err


def test_a_setting_hides_in_every_run_and_no_flag_takes_it_back(docker: Installation):
    filled(docker)
    done = docker.run(f"cat .env said 2>/dev/null; {DONE}", "--hide", "*.key", SANDUK_HIDE=".env")
    shown = docker.sanduk(*docker.words("x", "--dry-run", "--json"), SANDUK_HIDE=".env, secrets/")

    assert done.code == 0
    assert sorted(json.loads(shown.out)["hidden"]) == [".env", "config/.env", "secrets"]


@pytest.mark.parametrize("pattern", ["../x", "/etc", "*", ""])
def test_a_pattern_that_leaves_the_workspace_is_refused(docker: Installation, pattern: str):
    done = docker.run(DONE, "--hide", pattern)

    assert done.code == 2
    assert "--hide" in done.line
