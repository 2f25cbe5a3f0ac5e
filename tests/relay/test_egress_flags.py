"""The flag a refusal names is one that the command line takes."""

from __future__ import annotations

import pytest

from relay.destinations import InvalidHost, flag_for, parse_allowed_host


@pytest.mark.parametrize("host", ["some.vendor.test", "1.1.1.1", "2606:4700::1111"])
def test_the_flag_is_one_that_can_be_given(host: str):
    word, value = flag_for(host, 8443).split()

    assert word == "--allow-host"
    assert parse_allowed_host(value) == (host, 8443)


@pytest.mark.parametrize("host", ["localhost", "10.0.0.1", "169.254.169.254", "::1", "127.0.0.1"])
def test_no_flag_is_named_for_what_no_flag_allows(host: str):
    assert flag_for(host, 443) == ""


@pytest.mark.parametrize(
    "text",
    [
        *("0x7f000001", "2130706433", "127.1", "0177.0.0.1", "0x7f.1", "127.0.0.1.", "1", "0x"),
        *("8.8.1:443", "x.0x7f", "localhost", "LOCALHOST.", "any.localhost", "[::1]"),
    ],
)
def test_no_spelling_of_an_address_passes_for_a_name(text: str):
    """The system's resolver takes them for addresses of this machine."""
    with pytest.raises(InvalidHost, match="--allow-host"):
        parse_allowed_host(text)
    assert flag_for(text.lower().rstrip("."), 443) == ""


@pytest.mark.parametrize("host", ["a1.test", "1.test", "0x1.test", "3com.example", "x.y2"])
def test_a_name_with_numbers_in_it_is_a_name(host: str):
    assert parse_allowed_host(host) == (host, 443)
