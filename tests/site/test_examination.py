"""The doctor on the page of the system: asked by a button, beside the page, and shown as text."""

from __future__ import annotations

import threading

import pytest
from django.urls import reverse

from sanduk_site import doctor, examination
from sanduk_site.doctor import Line
from tests.site.pages import EVIL, HIDING, SCRIPT, somebody

pytestmark = pytest.mark.django_db
SEEN = (
    Line("python", "ok", "sanduk 0.4", fix="never told"),
    Line("engine docker", "wrong", "cannot be used: it is down", "systemctl start docker"),
    Line("backup", "note", "none has been made yet", "sanduk backup DIR"),
    Line("key anthropic", "ok", "…c0de (credentials)"),
    Line("key openai", "wrong", "OPENAI_API_KEY (environment) is empty", "sanduk auth set openai"),
)


@pytest.fixture(autouse=True)
def home(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "home"
    settings.SANDUK_HOME.mkdir(mode=0o700)


@pytest.fixture
def sees(monkeypatch):
    """sees(lines): what the doctor finds from now on."""

    def found(lines=SEEN) -> None:
        monkeypatch.setattr(doctor, "examined", lambda chosen: iter(lines))

    found()
    return found


@pytest.fixture
def examiner(monkeypatch):
    """One of this test's own."""
    made = examination.Examiner()
    monkeypatch.setattr(examination, "the_examiner", made)
    return made


def system(client, *roles: str) -> str:
    client.force_login(somebody(f"p-{'-'.join(roles)}", *roles))
    return client.get(reverse("system")).content.decode()


def section(page: str) -> str:
    return page.partition('id="doctor"')[2].partition("</section>")[0]


def test_what_it_said_stands_on_the_page_with_what_helps(client, sees):
    examination.examine()

    said = section(system(client, "administrator"))

    for line in SEEN:
        assert f"<strong>{line.name}</strong> {line.sentence}" in said
        if line.fix:
            assert (f"What helps: {line.fix}" in said) == (line.state != "ok")
    assert "2 wrong" in said
    assert "Look at everything again" in said


@pytest.mark.parametrize("role", ["viewer", "approver", "operator"])
def test_whose_key_it_is_is_told_to_administrators_alone(client, sees, role):
    examination.examine()

    said = section(system(client, role))

    assert "c0de" not in said
    assert "OPENAI_API_KEY" not in said
    assert "<strong>key anthropic</strong> is here" in said
    assert "<strong>key openai</strong> cannot be used" in said
    assert ("Look at everything" in said) == (role == "operator")


def test_before_the_first_one_the_page_says_how_to_ask_and_asks_nothing(client, monkeypatch):
    monkeypatch.setattr(doctor, "examined", lambda chosen: pytest.fail("a page asked"))

    said = section(system(client, "operator"))

    assert "It was not asked yet." in said
    assert "Look at everything</button>" in said
    assert client.get(reverse("system-doctor")).status_code == 405


def test_the_button_begins_it_beside_the_page_and_once(client, examiner, monkeypatch):
    goes_on, may_end, done = threading.Event(), threading.Event(), threading.Event()
    began = []

    def examine() -> None:
        began.append(threading.current_thread())
        goes_on.set()
        assert may_end.wait(30)
        done.set()

    monkeypatch.setattr(examination, "examine", examine)
    client.force_login(somebody("ada", "operator"))

    answer = client.post(reverse("system-doctor"), follow=True)  # answered while it goes on
    assert goes_on.wait(30)
    page = client.get(reverse("system")).content.decode()
    again = client.post(reverse("system-doctor"), follow=True)
    may_end.set()
    began[0].join(30)

    assert "The doctor looks at everything" in answer.content.decode()
    assert "It looks at everything, since" in section(page)
    assert "<form" not in section(page)
    assert "The doctor is at it already." in again.content.decode()
    assert done.is_set()
    assert len(began) == 1
    assert began[0] is not threading.current_thread()
    assert examiner.going_since is None
    assert "<form" in section(client.get(reverse("system")).content.decode())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_one_that_broke_off_is_told_as_such_and_another_can_begin(
    client, sees, examiner, monkeypatch
):
    def broken(chosen):
        yield SEEN[0]
        raise OSError("the disk is gone")

    monkeypatch.setattr(doctor, "examined", broken)
    threads = []
    monkeypatch.setattr(
        examination.threading, "excepthook", lambda args: threads.append(args.exc_type)
    )

    assert examiner.begin()
    for each in threading.enumerate():
        if each.name == "doctor":
            each.join(30)

    said = section(system(client, "operator"))
    assert threads == [OSError]
    assert "It did not come to its end" in said
    assert "nothing wrong so far" in said
    assert "python" in said
    assert examiner.going_since is None
    assert "Look at everything again" in said


def test_what_is_kept_is_this_accounts_alone_and_replaced_by_the_next(sees):
    examination.examine()
    first = examination.last()
    sees((Line("git", "ok", "2.39"),))
    examination.examine()

    assert first is not None
    assert first.lines == SEEN
    assert [line.name for line in examination.last().lines] == ["git"]
    kept = examination._path()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in kept.parent.iterdir()] == [kept.name]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"[]", b"null", b'{"lines": 3}', b" " * (2 << 20),
     b'{"began_at": "x", "ended_at": "y", "is_whole": true, "lines": []}'],
)  # fmt: skip
def test_a_damaged_file_is_as_none(client, content):
    path = examination._path()
    path.parent.mkdir()
    path.write_bytes(content)

    assert examination.last() is None
    assert "It was not asked yet." in section(system(client, "viewer"))


def test_hostile_words_are_text(client, sees):
    sees((Line(EVIL, "wrong", EVIL, EVIL),))
    examination.examine()

    said = section(system(client, "administrator"))

    assert SCRIPT not in said
    assert not any(mark in said for mark in HIDING)


def test_the_real_one_is_kept_line_by_line(settings, monkeypatch):
    monkeypatch.setattr(doctor, "_engines", lambda chosen: iter(()))  # no engine is asked
    examination.examine()

    found = examination.last()

    assert found is not None
    assert found.is_whole
    assert {"python", "database", "home", "git"} <= {line.name for line in found.lines}
