"""Accepting a memory that is older than the one in force is told first, and said outright."""

from __future__ import annotations

import pytest

from assistants import memory
from assistants.memory import trust
from runs.refusal import Refusal
from tests.assistants.memory.conftest import names, wake, writing

pytestmark = pytest.mark.django_db


def test_accepting_an_older_memory_goes_back_to_it(held):
    first = wake(held, writing("one", "1"))
    second = wake(held, writing("two", "2"))
    memory.accept(held, second)
    at = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    told = rf"goes back behind memory {second.pk}, accepted by \w+ at {at}; .*--back"
    for named in (None, first.pk, second.pk + 1):
        with pytest.raises(Refusal, match=told):
            memory.accept(held, first, behind=named)
    first.refresh_from_db()
    assert first.review == "waiting"
    memory.accept(held, first, behind=second.pk)
    seen = []
    wake(held, lambda place: seen.extend(names(place)))

    assert seen == ["one"]


def test_an_older_memory_is_superseded_by_a_newer_one_that_says_something_else(held):
    first = wake(held, writing("one", "1"))
    assert trust.newer_in_force(first) is None
    second = wake(held, writing("two", "2"))  # it started from nothing, too: no going back yet
    assert trust.newer_in_force(first) is None
    memory.accept(held, second)
    wake(held)  # takes a newer row of the same memory
    assert trust.newer_in_force(first) == second
    third = wake(held, writing("three", "3"))
    now = trust.in_force(held)
    assert [trust.is_superseded(each, now) for each in (first, second, third)] == [
        True, False, False,
    ]  # fmt: skip
    memory.accept(held, third)
    assert trust.newer_in_force(first) == third


def test_the_same_memory_once_more_goes_back_behind_nothing(held):
    first, again = wake(held, writing("one", "1")), wake(held, writing("one", "1"))
    memory.accept(held, again)
    memory.accept(held, first)
    assert first.digest == again.digest
