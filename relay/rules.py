"""The rules that need a request's body: which models it names, how much it may be answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from relay.admission import Admitted, Refusal
from relay.judging import Body, ThinkingTooLarge
from relay.policy import Policy
from relay.protocols import Dialect, dialect
from relay.protocols.reading import name as model_name
from relay.strict_json import NotStrict, read_object, read_value


class _Asked(msgspec.Struct):
    model: Any = None
    stream: Any = None


_asked = msgspec.json.Decoder(_Asked)

# OpenRouter's plugins that call no model of their own. Others do, named or not.
_HARMLESS_PLUGINS = frozenset({"web", "file-parser", "response-healing"})


@dataclass(slots=True)
class Prepared:
    """A request's body, ready to go."""

    text: bytes
    model: str = ""  # that it asks for, as far as it can be read
    clamped: bool = False  # a limit on its output was lowered or added
    body: Body | None = None  # taken apart; None when no rule looks into it


def prepare(policy: Policy, admitted: Admitted, text: bytes) -> Prepared:
    """Apply a policy to a request's body.

    Raises:
        Refusal: with the rule that is broken and the smallest change that would allow it.
    """
    protocol = admitted.route.protocol
    if protocol is None:
        if not (text and (policy.allow_models or policy.max_tokens_cap)):
            return Prepared(text)
        body, clamped = judge(policy, admitted, text)
        return Prepared(body.encoded(), "", clamped, body)
    if policy.judges_bodies:
        body, clamped = judge(policy, admitted, text)
        model = admitted.model or model_name(body.value("model"))
        return Prepared(body.encoded(), model, clamped, body)
    asked = _read_asked(text)
    model = admitted.model or model_name(asked.model)
    if asked.stream is True and policy.provider.adds_usage_option and protocol == "openai-chat":
        text = with_usage_option(text)
    return Prepared(text, model)


def _read_asked(text: bytes) -> _Asked:
    """Look at a body without judging it."""
    try:
        return _asked.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Asked()


def judge(policy: Policy, admitted: Admitted, text: bytes) -> tuple[Body, bool]:
    """Apply a policy to a request's body: the body that may go, and whether its output was limited.

    Raises:
        Refusal: with the rule that is broken and the smallest change that would allow it.
    """
    try:
        body = Body(text)
        if policy.allow_models:
            _check_models(policy.allow_models, admitted, body)
        if policy.provider.adds_usage_option and admitted.route.protocol == "openai-chat":
            _add_usage_option(body.fields)
        clamped = _limit(policy, admitted, body)
        body.look()  # whatever the rules are, no field may be ambiguous
        return body, clamped
    except NotStrict as error:
        raise Refusal(
            400,
            "json",
            f"under a policy a request body is one JSON object that can be read in one way "
            f"only: {error}",
        ) from None


def with_usage_option(text: bytes) -> bytes:
    """A Chat Completion's body that, if it asks for a stream, asks for its usage too.

    A body that cannot be read in one way only stays as it is: without a policy nothing is judged.
    """
    try:
        fields = read_object(text)
        changed = _add_usage_option(fields)
    except NotStrict:
        return text
    return msgspec.json.encode(fields) if changed else text


def _add_usage_option(fields: dict[str, msgspec.Raw]) -> bool:
    if bytes(fields.get("stream", b"")) != b"true":
        return False
    options = read_value(bytes(fields.get("stream_options", b"null")))
    if options is None:
        options = {}
    if not isinstance(options, dict) or options.get("include_usage") is True:
        return False
    told = {**options, "include_usage": True}
    fields["stream_options"] = msgspec.Raw(msgspec.json.encode(told))
    return True


def _check_models(allowed: frozenset[str], admitted: Admitted, body: Body) -> None:
    if admitted.model:
        _check_name(allowed, admitted.model)
    elif admitted.route.protocol is not None and not isinstance(body.value("model"), str):
        raise _not_allowed(allowed, "a request must name its model")
    preset = body.value("preset")
    for name in body.names:
        _check_name(allowed, f"@preset/{name}" if name == preset else name)
    if body.value("route") is not None and not body.value("models"):
        raise _not_allowed(allowed, "'route' lets the provider choose: leave it out")
    plugins = body.value("plugins")
    for plugin in plugins if isinstance(plugins, list) else [plugins]:
        if plugin is not None and not _is_harmless(plugin):
            raise _not_allowed(allowed, "a plugin that may call other models: leave it out")


def _is_harmless(plugin: Any) -> bool:
    kind = plugin.get("id") if isinstance(plugin, dict) else None
    return isinstance(kind, str) and kind in _HARMLESS_PLUGINS


def _check_name(allowed: frozenset[str], name: str) -> None:
    if name not in allowed:
        raise _not_allowed(allowed, f"the model {name[:100]!r} is not allowed", name[:100])


def _not_allowed(allowed: frozenset[str], what: str, name: str = "") -> Refusal:
    flag = f"; --allow-model {name} would allow it" if name else ""
    return Refusal(403, "allow-model", f"{what}: this run may use {_listed(allowed)}{flag}")


def _listed(names: frozenset[str]) -> str:
    shown = sorted(names)[:10]
    return ", ".join(shown) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _limit(policy: Policy, admitted: Admitted, body: Body) -> bool:
    if policy.max_tokens_cap is None:
        return False
    spoken = spoken_by(admitted)
    try:
        return body.limit_output(spoken, policy.max_tokens_cap)
    except ThinkingTooLarge as error:
        raise Refusal(
            403,
            "max-tokens-cap",
            f"{error}: --max-tokens-cap {policy.max_tokens_cap} leaves no room for it; "
            "ask without a thinking budget, or raise the cap above it",
        ) from None


def spoken_by(admitted: Admitted) -> Dialect | None:
    """The dialect of a route's calls; None when they are no model calls."""
    return dialect(admitted.route.protocol) if admitted.route.protocol else None
