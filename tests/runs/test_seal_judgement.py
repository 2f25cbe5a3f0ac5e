"""What the probe recorded becomes a certificate; every hole is named, no doubt is a pass."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.seal import (
    ProbeFailed,
    judge,
    namespace_checked,
    read_probe,
    with_door,
    with_namespace_check,
    with_sockets,
)

CLOSED: dict[str, Any] = {
    "interfaces": [{"name": "lo", "up": True, "addresses": ["127.0.0.1", "::1"]}],
    "routes": {"v4": [], "v6": []},
    "host": [{"address": "192.0.2.1", "port": 22, "open": False, "error": "ENETUNREACH"}],
    "neighbours": [],
    "metadata": {"address": "169.254.169.254", "port": 80, "open": False, "error": "ENETUNREACH"},
    "ipv6": {"address": "2001:db8::1", "port": 80, "open": False, "error": "ENETUNREACH"},
    "families": {"AF_INET": True, "AF_INET6": True, "AF_UNIX": True, "AF_VSOCK": False},
    "vsock": {"open": False, "error": "EPERM"},
    "netns": 4026532281,
    "relay": {"status_without_token": 401, "error": None, "ms": 1.0},
    "dns": {"name": "x.example.com", "resolved": False, "error": "EAI_AGAIN", "ms": 3.2},
    "ms": 21.5,
}


def probe(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(CLOSED), **changes}


def target(**changes: Any) -> dict[str, Any]:
    return {"address": "172.17.0.1", "port": 8000, "open": False, "error": None, **changes}


def test_a_closed_box_is_sealed():
    certificate = judge(probe(), mode="sealed")

    assert certificate.holes == ()
    assert certificate.headline == "sealed: nothing answers but the relay"
    assert {check.verdict for check in certificate.checks} == {"closed"}
    assert (certificate.netns, certificate.probe_ms, certificate.vsock) == (4026532281, 21.5, False)


@pytest.mark.parametrize(
    ("hosts", "warn_only", "words"),
    [
        (["a.example:443"], False, "the egress door, which lets it reach a.example:443"),
        (list("abcde"), False, "reach a, b, c and 2 more"),
        (["a.example:443"], True, "reach every public host (--egress warn)"),
    ],
)
def test_an_egress_door_is_in_the_first_sentence(hosts, warn_only, words):
    certificate = with_door(judge(probe(), mode="sealed"), hosts, warn_only=warn_only)

    assert certificate.headline.startswith("sealed, but for ")
    assert certificate.headline.endswith(words)
    assert certificate.holes == ()
    assert certificate.as_stored()["door"] == certificate.door
    assert ("egress", "open") in [(c.name, c.verdict) for c in certificate.checks]


def test_an_agent_whose_namespace_was_not_seen_leaves_a_doubt():
    judged = judge(probe(), mode="sealed")
    seen, unseen = namespace_checked(with_namespace_check(judged)), namespace_checked(judged)

    assert seen.headline == "sealed: nothing answers but the relay"
    assert (unseen.checks[-1].name, unseen.checks[-1].verdict) == ("namespace", "unknown")
    assert unseen.headline.endswith(f"; 1 of {len(unseen.checks)} checks could not be made")


def test_every_gap_is_in_the_first_sentence():
    judged = judge(probe(families={"AF_VSOCK": True}), mode="sealed")
    judged = with_sockets(judged, ["/lent/agent.sock"], all_seen=True)
    headline = with_door(judged, ["a.example:443"], warn_only=False).headline

    assert headline.startswith("sealed, but for VSOCK: a socket to the hypervisor can be opened")
    assert ", and for a socket in a directory you lent it" in headline
    assert ", and for the egress door" in headline


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"interfaces": [{"name": "eth0", "addresses": ["172.17.0.2"]}]}, "address on eth0"),
        ({"interfaces": [{"name": "lo", "addresses": ["127.0.0.1", "::1b"]}]}, "address on lo"),
        ({"routes": {"v4": ["default"], "v6": []}}, "1 route"),
        ({"routes": {"v4": [], "v6": ["default", "fd00::/8"]}}, "2 route"),
        ({"host": [target(open=True)]}, "addresses and ports: answers at 172.17.0.1:8000"),
        ({"host": [target(error="ECONNREFUSED")]}, "answers at 172.17.0.1"),  # closed, but there
        ({"neighbours": [target(open=True)]}, "a neighbouring container: answers"),
        ({"metadata": target(address="169.254.169.254", open=True)}, "metadata address"),
        ({"ipv6": target(open=True)}, "IPv6 address outside"),
        ({"dns": {"resolved": True, "ms": 3}}, "name resolves"),
        ({"relay": {"status_without_token": 200}}, "answers 200 to whoever has no token"),
    ],
)  # fmt: skip
def test_each_hole_is_named_first(changes, words):
    """L-10, L-11 and pains 3.10: gateway, neighbour, DNS, IPv6, metadata."""
    certificate = judge(probe(**changes), mode="sealed")

    assert len(certificate.holes) == 1
    assert words in certificate.holes[0]
    assert certificate.headline.startswith("not sealed: ")
    assert words in certificate.headline


@pytest.mark.parametrize("question", ["interfaces", "routes", "relay"])
@pytest.mark.parametrize("answer", [None, [], {}, "closed", 0, True, [None], {"v4": None}])
def test_without_an_answer_to_what_proves_the_seal_it_is_not_sealed(question, answer):
    certificate = judge(probe(**{question: answer}), mode="sealed")

    assert len(certificate.holes) == 1
    assert certificate.headline.startswith("not sealed")


@pytest.mark.parametrize("question", ["host", "neighbours", "metadata", "ipv6", "families", "dns"])
@pytest.mark.parametrize("answer", [None, "closed", {}, [None], [{}], [{"open": "no"}]])
def test_a_check_that_could_not_be_made_is_counted_and_not_passed(question, answer):
    if (question, answer) == ("families", {}):
        answer = None  # that none opens is an answer
    certificate = judge(probe(**{question: answer}), mode="sealed")

    assert certificate.headline.endswith("; 1 of 9 checks could not be made")
    assert next(c for c in certificate.checks if c.name.startswith(question[:3])).verdict == (
        "unknown"
    )


def test_a_kernel_without_ipv6_has_no_table_of_it_and_is_sealed():
    assert judge(probe(routes={"v4": [], "v6": None}), mode="sealed").holes == ()


def test_no_neighbour_to_try_is_said_as_such():
    [check] = [c for c in judge(probe(), mode="sealed").checks if c.name == "neighbours"]

    assert check.sentence == "no neighbouring container was there to be tried"


def test_an_open_vsock_is_in_the_first_words_and_refuses_nothing():
    families = {**CLOSED["families"], "AF_VSOCK": True}

    certificate = judge(probe(families=families), mode="sealed")

    assert certificate.holes == ()
    assert certificate.headline.startswith("sealed, but for VSOCK: ")
    assert certificate.vsock


def test_a_strange_socket_family_is_listed():
    families = {"AF_INET": True, "AF_ALG": True}

    [check] = [
        c for c in judge(probe(families=families), mode="sealed").checks if c.name == "families"
    ]

    assert (check.verdict, check.sentence) == ("open", "sockets of AF_ALG can be opened")


def test_key_safe_promises_only_what_it_holds():
    changes = {
        "interfaces": [{"name": "eth0", "addresses": ["172.17.0.2"]}],
        "routes": {"v4": ["default"]},
        "dns": {"resolved": True},
        "host": [target(open=True)],
    }

    certificate = judge(probe(**changes), mode="key-safe")

    assert certificate.holes == ()
    assert certificate.headline.startswith("key-safe: the key stays on the host; LAN and internet")


@pytest.mark.parametrize("relay", [{"status_without_token": 200}, {}, None])
def test_key_safe_without_a_relay_that_asks_for_the_token_is_refused(relay):
    certificate = judge(probe(relay=relay), mode="key-safe")

    assert len(certificate.holes) == 1
    assert certificate.headline.startswith("not key-safe: ")


@pytest.mark.parametrize("status", [True, "401", 401.5, [401]])
def test_a_status_that_is_no_number_is_no_answer(status):
    assert judge(probe(relay={"status_without_token": status}), mode="sealed").holes


def test_what_is_stored_holds_the_headline_and_is_json():
    stored = json.loads(json.dumps(judge(probe(), mode="sealed").as_stored()))

    assert stored["headline"] == "sealed: nothing answers but the relay"
    assert stored["raw"]["netns"] == 4026532281


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**300, 10**400)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([401, "ECONNREFUSED", "AF_VSOCK", "127.0.0.1"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=8) | st.sampled_from(
        ["name", "addresses", "open", "error", "port", "resolved", "ms", "status_without_token"]
    ), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(
    st.dictionaries(st.sampled_from([*CLOSED, "other"]), JUNK),
    st.sampled_from(["sealed", "key-safe"]),
)
def test_no_answer_however_strange_raises(found, mode):
    certificate = judge(found, mode=mode)

    assert certificate.headline
    assert len(certificate.checks) == (9 if mode == "sealed" else 8)
    assert len(certificate.headline) < 2000


@given(JUNK, st.sampled_from(sorted(CLOSED)))
def test_junk_in_one_answer_never_makes_a_seal_of_what_was_open(junk, question):
    found = probe(host=[target(open=True)], **{question: junk} if question != "host" else {})

    assert judge(found, mode="sealed").holes


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b'{"a": "\xff"}', b"[" * 100_000]
)
def test_an_answer_that_is_no_object_has_failed(line):
    with pytest.raises(ProbeFailed):
        read_probe(line)


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else(line):
    with contextlib.suppress(ProbeFailed):
        assert isinstance(read_probe(line), dict)
