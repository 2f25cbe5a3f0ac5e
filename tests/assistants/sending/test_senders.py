"""Commands, files and Apprise: what the receiver gets, and every way that can go wrong."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from assistants.delivery import apprise_url, command, file
from assistants.delivery.kinds import (
    AppriseSettings,
    CommandSettings,
    FileSettings,
)
from assistants.delivery.parcel import Doubtful, Failed
from runs import credentials
from runs.refusal import Refusal
from tests.assistants.sending.making import BODY, parcel
from tests.pace import stretched


def run_command(*argv: str, timeout_s: float = 20, body: str = BODY) -> str:
    return command.send(parcel(body), CommandSettings(argv=argv), timeout_s)


def shell(text: str, **how) -> str:
    return run_command("/bin/sh", "-c", text, **how)


# commands


def test_a_command_gets_the_body_and_who_it_is_from():
    names = ("ASSISTANT", "RUN_ID", "DELIVERY_ID", "ITEM_ID")
    echo = " ".join(f'"$SANDUK_{name}"' for name in names)

    assert shell(f"echo {echo}; cat") == f"daily r-1 {'k' * 32} 7\n{BODY}"


def test_words_of_a_command_go_to_no_shell():
    assert run_command("echo", "$HOME", ";", "id") == "$HOME ; id\n"


def test_a_command_does_not_see_our_keys_and_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-provider-key")
    monkeypatch.setenv("OTHER_NAME", "a-provider-key")
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p@h/d")
    monkeypatch.setenv("TICKET_TOKEN", "its-own")

    seen = shell("env")
    assert "a-provider-key" not in seen
    assert "DATABASE_URL" not in seen
    assert "TICKET_TOKEN=its-own" in seen


def test_a_command_that_fails_is_told_with_what_it_said():
    with pytest.raises(Failed, match="exited with 3") as failed:
        shell("echo no such queue >&2; exit 3")
    assert failed.value.output == "no such queue\n"
    assert not failed.value.lasting


def test_a_command_that_is_not_there_is_a_failure():
    with pytest.raises(Failed, match="could not be started"):
        run_command("/nowhere/notify")


def test_a_command_need_not_read_the_body():
    assert shell("echo done", body="x" * 5_000_000) == "done\n"


def test_endless_output_is_cut_and_does_not_fill_memory():
    said = shell("head -c 50000000 /dev/zero | tr '\\0' x; echo end")

    assert len(said) <= 64 * 1024
    assert said.endswith("end\n")


def test_a_command_out_of_time_is_killed_with_all_it_started(tmp_path: Path):
    started = time.monotonic()
    with pytest.raises(Doubtful, match="did not end within 1 s"):
        shell(f"(sleep 3; touch {tmp_path}/late) & sleep 30", timeout_s=1)

    assert time.monotonic() - started < stretched(15)
    time.sleep(2.5)
    assert not (tmp_path / "late").exists()


def test_what_a_command_leaves_behind_does_not_hold_us():
    started = time.monotonic()

    assert shell("sleep 60 & echo done") == "done\n"
    assert time.monotonic() - started < stretched(15)


def test_a_command_that_is_killed_by_others_may_have_sent():
    with pytest.raises(Doubtful, match="SIGKILL"):
        shell("kill -9 $$")


# files


def append(path: Path, body: str = BODY) -> None:
    file.send(parcel(body), FileSettings(path=str(path)), 20)


def test_a_file_gets_a_line_for_each_item(tmp_path: Path):
    path = tmp_path / "items.jsonl"
    append(path)
    append(path, "two\nlines")

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["body"] for line in lines] == [BODY, "two\nlines"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_not_followed(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path / "target")

    with pytest.raises(Failed):
        append(tmp_path / "link")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_gets_nothing(tmp_path: Path, make):
    make(tmp_path / "odd")

    with pytest.raises(Failed):
        append(tmp_path / "odd")


def test_a_full_disk_leaves_no_half_line(tmp_path: Path):
    path = tmp_path / "items.jsonl"
    append(path, "first")
    script = f"""
import resource, signal, sys
from pathlib import Path
import django; django.setup()
from assistants.delivery.parcel import Failed
from tests.assistants.sending.test_senders import append
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    append(Path({str(path)!r}), "x" * 5000)
except Failed as exc:
    sys.exit(7)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 7
    assert [json.loads(line)["body"] for line in path.read_text().splitlines()] == ["first"]
    append(path, "second")
    assert len(path.read_text().splitlines()) == 2


def test_a_file_that_others_hold_locked_is_waited_for_and_not_for_ever(tmp_path: Path):
    path = tmp_path / "items.jsonl"
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Failed, match="held it locked"):
            file.send(parcel(), FileSettings(path=str(path)), 0.2)
        threading.Timer(0.3, lambda: fcntl.flock(held, fcntl.LOCK_UN)).start()
        append(path)
        time.sleep(0.05)
    assert len(path.read_text().splitlines()) == 1


# Apprise


@pytest.fixture
def apprise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the library: it keeps what it was given, and takes `good://` only."""
    (tmp_path / "apprise.py").write_text(
        "import json, sys, time\n"
        "class Apprise:\n"
        "    def add(self, url):\n"
        "        self.url = url\n"
        "        return '://' in url\n"
        "    def notify(self, **given):\n"
        "        given['argv'] = sys.argv\n"
        "        open(__file__ + '.got', 'w').write(json.dumps(given))\n"
        "        print('asked', self.url)\n"
        "        time.sleep(30 if self.url.startswith('slow') else 0)\n"
        "        return self.url.startswith('good')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "apprise.py.got"


def notify(url: str, timeout_s: float = 20) -> str:
    credentials.store("APPRISE_URL", url)
    return apprise_url.send(parcel(), AppriseSettings(url_secret="APPRISE_URL"), timeout_s)


def test_apprise_gets_title_and_body_and_its_url_is_not_shown(apprise: Path):
    said = notify("good://t0ken-of-it")

    got = json.loads(apprise.read_text())
    assert (got["title"], got["body"]) == ("daily: item 7", BODY)
    assert "t0ken" not in said + str(got["argv"])
    assert "[APPRISE_URL]" in said


def test_what_apprise_does_not_take_is_a_failure(apprise: Path):
    with pytest.raises(Failed, match="did not take it"):
        notify("bad://t0ken")
    with pytest.raises(Failed, match="no URL that Apprise knows"):
        notify("t0ken")
    with pytest.raises(Doubtful, match="was killed"):
        notify("slow://t0ken", timeout_s=1)


def test_without_the_library_it_is_refused_by_name(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(Refusal, match=r"pip install 'sanduk\[apprise\]'"):
        AppriseSettings(url_secret="APPRISE_URL").check()
    with pytest.raises(Failed, match="not installed"):
        notify("good://t0ken")
