"""Providers that an operator adds, as a run meets them."""

from __future__ import annotations

import dataclasses

import pytest

import relay
from runs import keys
from runs.refusal import Refusal


def test_a_provider_that_needs_a_key_and_names_none_is_refused_before_anything_starts():
    own = dataclasses.replace(relay.get_provider("openai"), name="own", key_env="")

    with pytest.raises(Refusal, match=r"own needs a key and names no variable.*key_env"):
        keys.provider_key(own)


def test_a_provider_that_needs_no_key_gets_none():
    own = dataclasses.replace(relay.get_provider("openai"), key_env="", needs_key=False)

    assert keys.provider_key(own) == ""
