"""A posture statement that is true: what stands between an agent and this host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sanduk_site.boundary.probes import Finding
from sanduk_site.boundary.suite import Suite, Tested


def statement(made: Suite) -> list[str]:
    """Sentences, the verdict first, what is not claimed last."""
    return [
        _verdict(made.findings, made.unmade),
        *_engine(made.tested),
        *_seal(made.certificate),
        *_not_tried(made.findings),
        *_not_claimed(),
    ]


def _verdict(found: list[Finding], unmade: list[str]) -> str:
    broken = [each.name for each in found if each.verdict == "broken"]
    held = sum(1 for each in found if each.verdict == "held")
    if broken:
        return f"The boundary does NOT hold here: {', '.join(broken)} of {len(found)} probes broke."
    if unmade:
        return f"NOT PROVED: {unmade[0]}; {held} of {len(found)} probes were tried, and held."
    return f"Every probe that could be tried held: {held} of {len(found)}."


def _engine(tested: Tested) -> Iterable[str]:
    facts = tested.facts
    runtime = f" under {tested.oci_runtime}" if tested.oci_runtime else ""
    yield (
        f"Engine: {tested.name} {facts.version} on {facts.operating_system or 'this machine'}"
        f"{runtime}; image of agent {tested.agent}."
    )
    if tested.has_own_kernel:
        yield f"The agent has a kernel of its own ({tested.oci_runtime}) before the host's."
    else:
        yield (
            "The kernel is SHARED with the host: whoever has an exploit for it is not held by a "
            "container."
        )
    if facts.rootless:
        yield "The engine is rootless: whoever breaks out is this account, not root."
    else:
        yield "The engine is NOT rootless: its daemon is root, and so is whoever breaks out of it."
    if not tested.engine.shares_sockets:
        yield "This engine is WEAKER: a box has a network to the relay, not loopback alone."
    if facts.missing_limits:
        yield f"The engine cannot limit {', '.join(facts.missing_limits)}."


def _seal(certificate: dict[str, Any]) -> Iterable[str]:
    if certificate.get("headline"):
        yield f"Seal of the probed box: {certificate['headline']}."


def _not_tried(found: list[Finding]) -> Iterable[str]:
    missing = [each.name for each in found if each.verdict == "not tried"]
    if missing:
        yield f"Not tried, so nothing is claimed of it: {', '.join(missing)}."


def _not_claimed() -> Iterable[str]:
    yield (
        "Not claimed: that what an agent writes into its workspace is harmless; that nothing it "
        "reads leaves as part of a model call; that open and key-safe runs have no network; "
        "anything against side channels between processes of one machine."
    )
