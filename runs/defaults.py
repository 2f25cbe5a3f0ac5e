"""What is used where nobody said otherwise: a layer of agent, provider and model under the flags.

An agent that somebody names otherwise is not given the model that was meant for the usual one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Usual:
    """Args:
    agent, provider, model: "" where this layer says nothing.
    """

    agent: str = ""
    provider: str = ""
    model: str = ""


def of_environment() -> Usual:
    """SANDUK_AGENT, SANDUK_PROVIDER and SANDUK_MODEL, as this process was started with them."""
    return Usual(settings.SANDUK_AGENT, settings.SANDUK_PROVIDER, settings.SANDUK_MODEL)


def completed(asked: Mapping[str, Any], usual: Usual) -> dict[str, Any]:
    """What was asked, with this layer where it says nothing.

    Args:
        asked: values of flags by name; `recipe` names an agent too.
    """
    done = dict(asked)
    if not asked["agent"] and not asked["recipe"]:
        done["agent"] = usual.agent
    is_usual = not asked["recipe"] and (not asked["agent"] or asked["agent"] == usual.agent)
    # a provider alone is meant for whichever agent
    if not asked["provider"] and (is_usual or not usual.agent):
        done["provider"] = usual.provider
    if not asked["model"] and is_usual and asked["provider"] in ("", usual.provider):
        done["model"] = usual.model
    return done
