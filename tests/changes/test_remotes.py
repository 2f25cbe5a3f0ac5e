"""Which repository on GitHub a remote is: taken apart, never believed as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes import remotes
from changes.github import Site, site
from changes.remotes import There
from runs.refusal import Refusal
from tests.changes.rows import make_git, run_git

HUB = Site("https://api.github.com", "https://github.com")
OWN = Site("https://hub.example:8443/api/v3", "https://hub.example:8443")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_git(tmp_path / "shop")


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/people/shop.git", "https://github.com/people/shop",
        "https://github.com/people/shop/", "https://GitHub.com/people/shop.git",
        "https://www.github.com/people/shop", "https://anna:secret-77@github.com/people/shop.git",
        "git@github.com:people/shop.git", "github.com:people/shop",
        "ssh://git@github.com/people/shop.git", "ssh://git@github.com:22/people/shop",
        "ssh://git@ssh.github.com:443/people/shop.git",
    ],
)  # fmt: skip
def test_the_usual_spellings_of_a_remote_are_one_repository(repository: Path, address: str):
    run_git(repository, "remote", "add", "origin", address)

    found = remotes.there(repository, "origin", HUB)

    assert found == There("people", "shop")
    assert remotes.address(HUB, found) == "https://github.com/people/shop.git"


def test_another_server_is_known_by_its_host_and_port(repository: Path):
    for name, address in (
        ("web", "https://hub.example:8443/people/shop.git"),
        ("ssh", "git@hub.example:people/shop.git"),
        ("port", "ssh://git@hub.example:2222/people/shop.git"),
    ):
        run_git(repository, "remote", "add", name, address)
        assert str(remotes.there(repository, name, OWN)) == "people/shop"
    run_git(repository, "remote", "add", "other", "https://hub.example/people/shop.git")
    with pytest.raises(Refusal, match="SANDUK_GITHUB_API"):
        remotes.there(repository, "other", OWN)


@pytest.mark.parametrize(
    "address",
    [
        "https://gitlab.com/people/shop.git", "https://github.com.evil.example/people/shop",
        "https://github.com@evil.example/people/shop", "https://evil.example/github.com/people/shop",
        "https://evilgithub.com/people/shop", "git@evil.example:people/shop", "/srv/shop.git",
        "file:///srv/shop.git", "ext::sh -c touch% /tmp/x", "http://github.com/people/shop",
        "git://github.com/people/shop", "https://github.com/people", "https://github.com/people/",
        "https://github.com/people/shop/tree", "https://github.com/people/..",
        "https://github.com/../shop", "https://github.com/-x/shop", "https://github.com/a b/shop",
        "https://github.com/people/shop?x=1", "https://github.com/people/sh\nop",
        "https://github.com:444/people/shop", "https://anna:secret-77@gitlab.com/people/shop",
        "gh:people/shop",
    ],
)  # fmt: skip
def test_everything_else_is_refused_and_not_repeated(repository: Path, address: str):
    run_git(repository, "config", "remote.origin.url", address)

    with pytest.raises(Refusal, match=r"is no repository on github\.com") as raised:
        remotes.there(repository, "origin", HUB)
    assert "secret-77" not in str(raised.value)
    assert "evil" not in str(raised.value)


def test_a_remote_that_is_not_there_or_has_two_addresses_is_told(repository: Path):
    with pytest.raises(Refusal, match=r"no remote called origin .* git remote add origin"):
        remotes.there(repository, "origin", HUB)
    for name in ("", "-x", "a\nb", "a b"):
        with pytest.raises(Refusal, match="no remote can be called"):
            remotes.there(repository, name, HUB)
    for address in ("https://github.com/people/shop", "https://github.com/people/other"):
        run_git(repository, "config", "--add", "remote.origin.url", address)
    with pytest.raises(Refusal, match="has 2 addresses"):
        remotes.there(repository, "origin", HUB)


def test_what_git_would_make_of_the_address_has_no_part_in_it(repository: Path, tmp_path: Path):
    run_git(repository, "remote", "add", "origin", "https://github.com/people/shop.git")
    run_git(repository, "config", "url.https://evil.example/.insteadOf", "https://github.com/")
    run_git(repository, "config", "remote.origin.pushurl", "https://evil.example/x/y.git")
    (tmp_path / "more").write_text('[remote "origin"]\n\turl = https://github.com/evil/evil\n')
    run_git(repository, "config", "include.path", str(tmp_path / "more"))

    assert "evil" in run_git(repository, "remote", "get-url", "--push", "origin")
    assert str(remotes.there(repository, "origin", HUB)) == "people/shop"


@pytest.mark.parametrize(
    ("api", "address"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://api.octo.ghe.com", "https://octo.ghe.com"),
        ("https://hub.example/api/v3", "https://hub.example"),
        ("https://api.hub.example/api/v3", "https://api.hub.example"),
        ("http://127.0.0.1:8123/api/v3", "http://127.0.0.1:8123"),
    ],
)
def test_where_people_find_a_site_follows_from_its_api(settings, api: str, address: str):
    settings.SANDUK_GITHUB_API = api

    assert site() == Site(api, address)
