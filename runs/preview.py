"""What a run would be, for `--dry-run`. No engine is asked, and the credential is a placeholder."""

from __future__ import annotations

import os
from typing import Any

from relay import EgressRules
from runs import terms
from runs.admission import size_bytes
from runs.duration import spoken
from runs.mounts import described
from runs.plan import Plan
from runs.visible import visible


def as_json(plan: Plan) -> dict[str, Any]:
    """Every detail that is decided, each in a field of its own, with units in the names."""
    order, place = plan.order, plan.workspace
    launch = plan.launch("<run token>" if order.relayed else "<key>")
    default = plan.provider.default_model if plan.provider else ""
    return {
        "agent": plan.agent.name,
        "provider": plan.provider.name if plan.provider else None,
        "model": plan.request.model or default or None,
        "mode": order.mode_name,
        "engine": plan.engine.name,
        "image": plan.image.tag,
        "link_image": plan.link_image.tag if plan.link_image else None,
        "workdir": str(place.path),
        "workdir_is_made": place.created,
        "uid": place.uid,
        "gid": place.gid,
        "mounts": [
            {"source": each.source, "target": each.target, "read_only": each.read_only}
            for each in plan.mounts
        ],
        "hidden": list(plan.hidden.paths),
        "limits": {
            "cpus": order.cpus,
            "host_cpus": os.cpu_count(),
            "memory_bytes": size_bytes(order.memory),
            "timeout_s": order.timeout_s,
            "idle_timeout_s": order.idle_timeout_s,
        },
        "rules": terms.as_json(order.stored()),
        "egress_door": _door(plan.egress),
        "task_on_stdin": launch.task_on_stdin,
        "argv": list(launch.argv),
        "variables": sorted({*launch.env, *order.env, *order.env_names}),
    }


def lines(plan: Plan) -> list[tuple[str, str]]:
    """The same for people: a name and what to know of it."""
    told, order = as_json(plan), plan.order
    silence = f", {spoken(order.idle_timeout_s)} of silence" if order.idle_timeout_s else ""
    found = [
        ("agent", told["agent"]),
        ("provider", told["provider"] or "none"),
        ("model", told["model"] or "the agent's own"),
        ("mode", told["mode"]),
        ("engine", told["engine"]),
        ("image", told["image"]),
        ("link", told["link_image"] or "none"),
        ("workdir", told["workdir"]),
        ("runs as", f"{told['uid']}:{told['gid']}"),
        ("mounts", "; ".join(described(plan.mounts)) or "none"),
        ("hidden", ", ".join(told["hidden"]) or "nothing"),
        ("limits", f"{_cpus(order.cpus)}, {order.memory}, {spoken(order.timeout_s)}{silence}"),
        ("rules", terms.as_flags(order.stored()) or "none beyond the defaults"),
        ("egress door", door_in_words(plan.egress)),
        ("task", "on stdin" if told["task_on_stdin"] else "in argv"),
        ("argv", " ".join(told["argv"])),
        ("variables", " ".join(told["variables"])),
    ]
    return [(name, visible(value)) for name, value in found]


def door_in_words(rules: EgressRules | None) -> str:
    """What the egress door of a run lets through."""
    if rules is None:
        return "none"
    listed = ", ".join(_listed(rules))
    if rules.mode == "warn":
        also = f" (listed: {listed})" if listed else ""
        return f"OPEN to every public host, recorded (--egress warn){also}"
    return f"open to {listed}"


def _door(rules: EgressRules | None) -> dict[str, Any] | None:
    if rules is None:
        return None
    return {"lets_every_host_pass": rules.mode == "warn", "hosts": _listed(rules)}


def _listed(rules: EgressRules) -> list[str]:
    return sorted(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                  for host, port in rules.hosts)  # fmt: skip


def _cpus(limit: float) -> str:
    """The limit in words; a container gets no more processors than there are."""
    there = os.cpu_count() or 1
    return f"{limit:g} cpus" + (f" (this host has {there})" if limit > there else "")
