"""Where the site may listen, and what more it takes to be seen from other machines."""

from __future__ import annotations

import pytest

from runs.refusal import Refusal
from sanduk_site import exposure

ANYWHERE = "0.0.0.0"  # noqa: S104 - nothing is bound here


@pytest.fixture
def based_at(monkeypatch, settings):
    """Sets the address people type, as the environment does."""

    def set_to(url: str) -> None:
        monkeypatch.setenv("SANDUK_BASE_URL", url)
        settings.SANDUK_BASE_URL = url

    monkeypatch.delenv("SANDUK_BASE_URL", raising=False)
    settings.DEBUG, settings.SANDUK_TRUSTED_PROXIES = False, []
    return set_to


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.9"])
def test_this_machine_alone_needs_nothing(based_at, host):
    judged = exposure.judge(host, 8000)

    assert judged.warnings == ()
    assert judged.url == f"http://{'[::1]' if host == '::1' else host}:8000"


@pytest.mark.parametrize("host", [ANYWHERE, "::", "192.168.1.5", "box.lan"])
def test_other_machines_need_the_address_people_type(based_at, host):
    with pytest.raises(Refusal, match=r"needs SANDUK_BASE_URL.*http://box\.lan:8001"):
        exposure.judge(host, 8001)


def test_an_address_of_this_machine_is_not_what_others_can_type(based_at):
    based_at("http://127.0.0.1:8000")

    with pytest.raises(Refusal, match="SANDUK_BASE_URL"):
        exposure.judge(ANYWHERE, 8000)


def test_plain_http_on_a_network_is_allowed_with_a_warning(based_at):
    based_at("http://box.lan:8000")

    judged = exposure.judge(ANYWHERE, 8000)

    assert judged.url == "http://box.lan:8000"
    (warning,) = judged.warnings
    assert "unencrypted" in warning


def test_behind_a_reverse_proxy_it_listens_on_this_machine_alone(based_at, settings):
    based_at("https://box.example")
    (warning,) = exposure.judge("127.0.0.1", 8000).warnings
    assert "SANDUK_TRUSTED_PROXIES" in warning

    settings.SANDUK_TRUSTED_PROXIES = ["127.0.0.1"]
    assert exposure.judge("127.0.0.1", 8000).warnings == ()


def test_debug_pages_are_shown_to_nobody_else(based_at, settings):
    based_at("http://box.lan:8000")
    settings.DEBUG = True

    with pytest.raises(Refusal, match="SANDUK_DEBUG"):
        exposure.judge(ANYWHERE, 8000)
