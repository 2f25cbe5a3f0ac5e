"""What the probe is asked to try: the host's own addresses and ports, from /proc."""

from __future__ import annotations

import json
import os
from dataclasses import replace

from runs import own_host, seal
from tests.runs.test_seal_judgement import probe


def test_the_questions_are_one_json_object_with_a_name_of_its_own():
    first, second = (
        json.loads(
            seal.questions(
                mode="sealed",
                socket_path="/run/relay.sock",
                port=8080,
                limit_s=60,
                neighbours=[],
                host=own_host.look(),
            )
        )
        for _ in range(2)
    )

    assert set(first) == {
        "socket", "port", "host_addresses", "host_ports", "neighbours", "name", "limit_s",
        "egress_socket",
    }  # fmt: skip
    assert first["name"].endswith(".example.com")
    assert first["name"] != second["name"]


def test_the_namespace_is_compared_from_the_host():
    mine = os.stat(f"/proc/{os.getpid()}/ns/net").st_ino  # noqa: PTH116 - the link is the point
    certificate = replace(seal.judge(probe(), mode="sealed"), netns=mine)

    assert seal.same_namespace(certificate, os.getpid()) is True
    assert seal.same_namespace(replace(certificate, netns=1), os.getpid()) is False
    assert seal.same_namespace(certificate, None) is None
    assert seal.same_namespace(certificate, 2**22 + 7) is None
    assert seal.same_namespace(replace(certificate, netns=None), os.getpid()) is None


def test_the_comparison_becomes_part_of_the_certificate():
    certificate = seal.with_namespace_check(seal.judge(probe(), mode="sealed"))

    assert certificate.checks[-1].name == "namespace"
    assert certificate.headline == "sealed: nothing answers but the relay"
