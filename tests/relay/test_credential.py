from __future__ import annotations

import pytest

from relay import Credential, InvalidCredential


def test_a_key_never_shows_in_a_repr():
    key = Credential("sk-abc123", source="OPENAI_API_KEY")
    assert "sk-abc123" not in f"{key!r} {key}"
    assert "OPENAI_API_KEY" in repr(key)


@pytest.mark.parametrize(
    "value", ["", "sk-abc\n", "sk\r\nhost: x", "sk\x00", "sk abc", "sk-ábc", "\tsk", "sk\x7f"]
)
def test_a_key_that_is_no_header_value_is_refused_without_printing_it(value):
    with pytest.raises(InvalidCredential) as caught:
        Credential(value, source="OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in str(caught.value)
    assert "sk" not in str(caught.value)
