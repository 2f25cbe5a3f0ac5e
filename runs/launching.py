"""How what a plan names is started: an agent with its task, or its own interface for a person."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from relay import Provider
from runs.agents.base import Launch, Sitting
from runs.link import PORT
from runs.mounts import WORK

if TYPE_CHECKING:
    from runs.plan import Plan


def launch(plan: Plan, credential: str) -> Launch:
    """Args:
    credential: the run token or, in open mode, the key.
    """
    order, provider = plan.order, plan.provider
    if provider is None and order.shell:
        return Launch(())
    if order.shell == "agent":
        start = partial(plan.agent.sitting, at=Sitting(WORK, order.seed, order.asks))
    else:
        start = partial(plan.agent.launch, task=plan.task)
    if provider is None:
        return start(plan.request, nobody(), root="", credential="")
    root = f"http://127.0.0.1:{PORT}" if order.relayed else _origin(provider)
    return start(plan.request, provider, root=root, credential=credential)


def nobody() -> Provider:
    """The provider of a run that has none."""
    return Provider(name="none", scheme="", host="", port=None, prefix="", routes=())


def _origin(provider: Provider) -> str:
    host = f"[{provider.host}]" if ":" in provider.host else provider.host
    port = f":{provider.port}" if provider.port else ""
    return f"{provider.scheme}://{host}{port}"
