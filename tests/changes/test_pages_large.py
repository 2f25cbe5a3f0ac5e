"""However large a change is, its page is not: it comes soon, and what is left out is said."""

from __future__ import annotations

import time

import pytest
from django.urls import reverse

from changes import colours, patches
from changes.models import Change
from tests.changes.rows import LEASE_S, OWNER, make_attempt, make_change
from tests.changes.trees import tree_of
from tests.site.pages import somebody

pytestmark = pytest.mark.django_db
SLOWEST_S = 25.0  # on a machine with much else to do


@pytest.fixture
def client(client):
    client.force_login(somebody("person", "administrator"))
    return client


def brought(project, files: dict[str, str], copies: int = 0) -> Change:
    """A change with these files, and `copies` of one file; nothing looked for risks in it."""
    project.change()  # its base is in the store then
    store = project.store
    tree = tree_of(store, {"README.md": "hello\n", **files})
    if copies:
        blob = store.git("hash-object", "-w", "--stdin", stdin=b"copy\n").decode().strip()
        rows = b"".join(b"100644 blob %s\t%05d.txt\0" % (blob.encode(), n) for n in range(copies))
        below = store.git("mktree", "-z", stdin=rows).decode().strip()
        top = store.git("ls-tree", "-z", tree) + b"040000 tree %s\tmany\0" % below.encode()
        tree = store.git("mktree", "-z", stdin=top).decode().strip()
    base_tree = store.tree_of(project.base)
    change = make_change(project.repository)
    assert Change.objects.claim(change.pk, OWNER, LEASE_S)
    facts = {"base_commit": project.base, "base_tree": base_tree, "tree": tree}
    size = len(patches.patch(store, base_tree, tree))
    attempt = make_attempt(change, patch_bytes=size, **facts)
    assert Change.objects.present(change.pk, OWNER, attempt)
    change.refresh_from_db()
    return change


def timed(client, place: str) -> str:
    began = time.monotonic()
    answer = client.get(place)
    assert time.monotonic() - began < SLOWEST_S
    assert answer.status_code == 200
    page: str = answer.content.decode()
    assert len(page) < 6_000_000
    return page


def test_fifty_thousand_files_come_in_parts(client, project):
    change = brought(project, {}, copies=50_000)
    place = reverse("change", args=[change.uid])
    assert "Part 1 of 500" in timed(client, place)
    assert "many/49999.txt" in timed(client, f"{place}?part=500")
    assert "many/12345.txt" in timed(client, f"{place}?find=12345")


def test_five_megabytes_have_a_page_of_their_own_or_the_patch(client, project):
    files = {
        "lines.txt": "".join(f"line {n}\n" for n in range(15_000)),
        "more.txt": "a line of several words\n" * 220_000,
        "one-line.js": "x=1;" * 1_300_000,
    }
    change = brought(project, files)
    page = timed(client, reverse("change", args=[change.uid]))
    assert "15,000 lines differ, which have a page of their own" in page
    assert "5,198,000 characters more" in page

    own = [reverse("change-file", args=[change.uid, 1, number]) for number in (1, 2, 3)]
    assert "line 14999<" in timed(client, own[0])
    assert "It is too large for a page: the patch holds it." in timed(client, own[1])
    timed(client, f"{own[2]}?lines=all&view=split")
    patch = client.get(reverse("change-patch", args=[change.uid, 1])).content
    assert len(patch) == change.attempt.patch_bytes


def test_a_patch_too_large_for_a_browser_says_what_gives_it(client, project, monkeypatch):
    monkeypatch.setattr("changes.views.files.PATCH_MAX", 10)
    change = project.change()
    answer = client.get(reverse("change-patch", args=[change.uid, 1]), follow=True)
    said = " ".join(str(message) for message in answer.context["messages"])
    assert f"sanduk change diff {change.uid}" in said


def test_colours_end_when_the_time_is_up_and_never_change_a_text():
    lines = ["def f(x):", '    """two', '    lines"""', "    return x  # é\t"]
    found = colours.Colours().of(b"a.py", lines)
    assert ["".join(text for _, text in line) for line in found] == lines
    assert ("k", "def") in found[0]
    assert found[2][0][0] == "s"
    assert colours.Colours(-1).of(b"a.py", lines) == [[("", line)] for line in lines]
    assert colours.Colours().of(b"a.unknown", lines) == [[("", line)] for line in lines]
    long = ["x" * 501]
    assert colours.Colours().of(b"a.py", long) == [[("", long[0])]]


@pytest.mark.parametrize("name", sorted({*colours._BY_SUFFIX.values(), "docker", "make"}))
def test_every_language_gives_back_each_line_as_it_was(name):
    suffix = next((end for end, one in colours._BY_SUFFIX.items() if one == name), "")
    path = (
        f"a.{suffix}".encode() if suffix else {"docker": b"Dockerfile", "make": b"Makefile"}[name]
    )
    lines = [
        "\ufeff<a b='c'>{ \"k\": [1, 2] } // x /* y",
        "  */ # z\x00\x0c\r",
        "",
        "\t\udcff€ ok  ",
    ]
    found = colours.Colours(60).of(path, lines)
    assert ["".join(text for _, text in line) for line in found] == lines
