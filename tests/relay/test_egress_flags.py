"""The flag a refusal names is one that the command line takes."""

from __future__ import annotations

import pytest

from relay.destinations import flag_for, parse_allowed_host


@pytest.mark.parametrize("host", ["some.vendor.test", "1.1.1.1", "2606:4700::1111"])
def test_the_flag_is_one_that_can_be_given(host: str):
    word, value = flag_for(host, 8443).split()

    assert word == "--allow-host"
    assert parse_allowed_host(value) == (host, 8443)


@pytest.mark.parametrize("host", ["localhost", "10.0.0.1", "169.254.169.254", "::1", "127.0.0.1"])
def test_no_flag_is_named_for_what_no_flag_allows(host: str):
    assert flag_for(host, 443) == ""
