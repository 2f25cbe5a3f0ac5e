"""Finds secrets in what wants to leave: those we hold, in any common spelling, and token shapes.

It says where, never what. Work grows with the length of the text and stops at SCAN_MAX.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec
from django.conf import settings

from runs import credentials, keys, providers
from runs.hidden import MARK
from runs.refusal import Refusal

SCAN_MAX = 2 * 2**20  # bytes of one text
SHORTEST = 8  # characters of a secret; fewer would be found in ordinary words

JOINED = "cut apart"

Kind = Literal["held", "token", "unchecked", "replaced"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of secret in one spelling. It holds none of the secret.

    Args:
        kind: "held" (a secret of this installation), "token" (the shape of one), "replaced" (a
            held secret that was taken out), or "unchecked": something could not be looked at,
            which is no all-clear.
        name: the variable of a held secret, the issuer's name of a token, or why unchecked.
        spelling: how it was written, as "base64"; "" for unchecked.
        line: where it is first, counted from 1; 0 for unchecked.
        times: how often.
    """

    kind: Kind
    name: str
    spelling: str = ""
    line: int = 0
    times: int = 1

    def plain(self) -> dict[str, Any]:
        """What a row keeps."""
        kept: dict[str, Any] = msgspec.to_builtins(self)
        return kept

    def told(self) -> str:
        """One line for a person."""
        if self.kind == "unchecked":
            return f"could not check: {self.name}"
        if self.kind == "replaced":
            often = f", {self.times} times" if self.times > 1 else ""
            return f"line {self.line}: held secret, replaced (altered: a key was taken out{often})"
        what = "a secret of this host, " if self.kind == "held" else ""
        spelling = f" ({self.spelling})" if self.spelling != "plain" else ""
        often = f", {self.times} times" if self.times > 1 else ""
        return f"line {self.line}: {what}{self.name}{spelling}{often}"


def restored(stored: list[dict[str, Any]]) -> list[Finding]:
    """The findings in a row."""
    return msgspec.convert(stored, list[Finding])


def scan(text: str) -> list[Finding]:
    """Everything in `text` that is, or looks like, a secret; never raises because of it."""
    held, problems = held_secrets()
    return [*problems, *scan_for(text.encode("utf-8", "surrogatepass"), held)]


def replaced(text: str) -> list[Finding]:
    """Where a held secret stood before it was taken out (see `runs.hidden`)."""
    place = text.find(MARK)
    if place < 0:
        return []
    line = text.count("\n", 0, place) + 1
    return [Finding(kind="replaced", name="a key", line=line, times=text.count(MARK))]


def held_secrets() -> tuple[dict[str, str], list[Finding]]:
    """Every secret this process could see by name, and what could not be read."""
    found: dict[str, str] = {}
    problems: list[Finding] = []
    names = {provider.key_env for provider in providers.usable()[0].values()} - {""}
    names.add(keys.GITHUB_TOKEN)
    stored: dict[str, str] = {}
    try:
        stored = credentials.stored()
        names |= set(stored)
    except Refusal:
        problems.append(Finding(kind="unchecked", name="the stored secrets cannot be read"))
    for name in sorted(names):
        try:
            own = credentials.is_personal(name)
            found[name] = stored.get(name, "") if own else keys.value_of(name)
        except Refusal:
            problems.append(Finding(kind="unchecked", name=f"{name} cannot be read"))
    found["the site's secret key"] = settings.SECRET_KEY
    found["the database's password"] = str(settings.DATABASES["default"].get("PASSWORD") or "")
    return {name: value for name, value in found.items() if len(value) >= SHORTEST}, problems


def scan_for(data: bytes, held: Mapping[str, str]) -> list[Finding]:
    """The given secrets and all known token shapes in `data`."""
    found: list[Finding] = []
    if len(data) > SCAN_MAX:
        megabytes = SCAN_MAX // 2**20
        found.append(Finding(kind="unchecked", name=f"what follows the first {megabytes} MB"))
        data = data[:SCAN_MAX]
    views = list(_views(_View(data)))
    spelled = _spelled(views[0], views[-1])
    for name, value in held.items():
        found += _held(name, value.encode(), views, spelled)
    return [*found, *_tokens(views)]


Rewriting = bytes | Callable[[re.Match[bytes]], bytes]


class _View:
    """A text as somebody may read it back, and where each byte of it came from."""

    def __init__(
        self,
        data: bytes,
        origin: _View | None = None,
        spelling: str = "plain",
        change: tuple[re.Pattern[bytes], Rewriting] | None = None,
    ) -> None:
        self.data, self.origin, self.spelling = data, origin, spelling
        self._change = change

    def changed(self, pattern: re.Pattern[bytes], to: Rewriting, spelling: str) -> _View | None:
        """With every match replaced; None when there is no match."""
        data, times = pattern.subn(to, self.data)
        return _View(data, self, spelling, (pattern, to)) if times else None

    def line(self, place: int) -> int:
        """The line of the whole text that a place of this view is in."""
        if self.origin is None:
            return self.data.count(b"\n", 0, place) + 1
        return self.origin.line(self._before(self.origin.data, place))

    def _before(self, data: bytes, place: int) -> int:
        """The place in the origin's `data`; found again for the few that are asked for."""
        if self._change is None:
            return place
        pattern, to = self._change
        end = here = 0  # behind the last change: there, and in this view
        for match in pattern.finditer(data):
            upto = here + match.start() - end
            if place < upto:
                break
            here = upto + len(to if isinstance(to, bytes) else to(match))
            end = match.end()
            if place < here:
                return match.start()
        return min(end + max(place - here, 0), len(data))


_PERCENT = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_BACKSLASH = re.compile(rb'(?:\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[/"\\])')
_ENTITY = re.compile(rb"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);")
# what a secret may be cut apart with: white space, the invisible characters, quotes and signs
# that join texts, and what a mail or a comment puts before its lines
_CUTS = re.compile(
    rb"""(?:["']\s*\+\s*["']|[\s\x00>#*|"'`,]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81\xa0|\xef\xbb\xbf)+"""
)
_HEX_CUTS = re.compile(rb"(?:\\x|0x|%|[\s:,;_-])+")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def _cut(data: bytes) -> bytes:
    """A secret as it reads in a text from which the cuts were taken."""
    return _CUTS.sub(b"", data)


def _views(plain: _View) -> Iterator[_View]:
    """The text as it stands, then with each way of writing undone; the last one is joined."""
    yield plain
    undone = (
        (_PERCENT, _without_percent, "URL-encoded"),
        (_BACKSLASH, _without_backslash, "escaped"),
        (_ENTITY, _without_entity, "HTML-escaped"),
    )
    for pattern, to, spelling in undone:
        view, twice = plain.changed(pattern, to, spelling), 0
        while view is not None and twice < 2:  # what is encoded twice is read by decoding twice
            yield view
            view, twice = view.changed(pattern, to, spelling), twice + 1
    decoded = plain.changed(_PERCENT, _without_percent, "URL-encoded") or plain
    joined = decoded.changed(_CUTS, b"", JOINED)
    yield joined or _View(decoded.data, decoded, JOINED)


def _without_percent(found: re.Match[bytes]) -> bytes:
    return unquote_to_bytes(found[0])


def _without_backslash(found: re.Match[bytes]) -> bytes:
    text = found[0]
    if text[1:2] == b"x":
        return bytes([int(text[2:], 16)])
    if text[1:2] == b"u":
        return chr(int(text[2:], 16)).encode("utf-8", "surrogatepass")
    return text[1:]


def _without_entity(found: re.Match[bytes]) -> bytes:
    return html.unescape(found[0].decode("ascii")).encode("utf-8", "surrogatepass")


class _Spelled(NamedTuple):
    """The text made ready for each way a secret may be written in it."""

    joined: _View
    base64: _View
    base32: _View
    hex: _View


def _spelled(plain: _View, joined: _View) -> _Spelled:
    hexed = plain.changed(_HEX_CUTS, b"", "hex") or plain
    return _Spelled(
        joined=joined,
        base64=_View(joined.data.translate(_URL_SAFE), joined),
        base32=_View(joined.data.upper(), joined),
        hex=_View(hexed.data.lower(), hexed),
    )


def _held(name: str, secret: bytes, views: list[_View], spelled: _Spelled) -> Iterator[Finding]:
    lines: set[int] = set()  # what stands as it is would be found in each view again
    for view in views:
        needle = _cut(secret) if view.spelling == JOINED else secret
        if len(needle) >= SHORTEST and (times := view.data.count(needle)):
            line = view.line(view.data.find(needle))
            if line not in lines:
                lines.add(line)
                yield Finding(
                    kind="held", name=name, spelling=view.spelling, line=line, times=times
                )
    for spelling, needles, view in _spellings(secret, spelled):
        places = [place for needle in needles if (place := view.data.find(needle)) >= 0]
        if places:
            times = sum(view.data.count(needle) for needle in needles)
            line = view.line(min(places))
            yield Finding(kind="held", name=name, spelling=spelling, line=line, times=times)


def _spellings(secret: bytes, spelled: _Spelled) -> Iterator[tuple[str, list[bytes], _View]]:
    """How a secret may be written, and the view of the text in which to look for it."""
    if len(_cut(secret)) >= SHORTEST:
        yield "reversed", [_cut(secret[::-1])], spelled.joined
    mirrored = base64.b64encode(secret)[::-1].lstrip(b"=")
    yield "base64", [*base64_parts(secret), mirrored], spelled.base64
    yield "base32", [base64.b32encode(secret).rstrip(b"=")[:-1]], spelled.base32
    yield "hex", [secret.hex().encode()], spelled.hex


def base64_parts(secret: bytes) -> list[bytes]:
    """What base64 makes of a secret at each of its three places in a group of three bytes.

    Letters that also depend on what stands before or behind the secret are left out.
    """
    parts = []
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + secret)
        first = (0, 2, 3)[before]
        depends = (before + len(secret)) % 3
        last = len(whole) - (0, 3, 2)[depends]
        parts.append(whole[first:last])
    return parts


_START = rb"(?<![A-Za-z0-9])"
_TOKENS: dict[str, re.Pattern[bytes]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "an Anthropic key": _START + rb"sk-ant-[A-Za-z0-9_-]{20,}",
        "an OpenAI key": _START + rb"sk-(?!ant-)(?=[\w-]{0,40}[0-9])(?=[\w-]{0,40}[A-Z])[\w-]{20}",
        "a Google key": _START + rb"AIza[A-Za-z0-9_-]{35}",
        "an AWS key id": _START + rb"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        "a GitHub token": _START + rb"(?:gh[opsur]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22})",
        "a GitLab token": _START + rb"gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_-]{20}",
        "a Slack token": _START + rb"xox[abeoprs]-[A-Za-z0-9-]{10}",
        "a Slack webhook": rb"hooks\.slack\.com/services/T[A-Z0-9]{6,20}/B[A-Z0-9]{6,20}/\w{16}",
        "a Stripe key": _START + rb"[rs]k_live_[A-Za-z0-9]{16}",
        "an npm token": _START + rb"npm_[A-Za-z0-9]{36}",
        "a PyPI token": _START + rb"pypi-AgE[A-Za-z0-9_-]{50}",
        "a Hugging Face token": _START + rb"hf_[A-Za-z0-9]{30}",
        "a Telegram bot's token": _START + rb"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
        "a private key": rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY",
        "an age key": _START + rb"AGE-SECRET-KEY-1[A-Z0-9]{50}",
        # a start at the run's own start only: otherwise each "eyJ" would read to the run's end
        "a signed JSON token": rb"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.",
    }.items()
}


def _tokens(views: list[_View]) -> Iterator[Finding]:
    for name, pattern in _TOKENS.items():
        lines: set[int] = set()
        for view in views:
            if view.spelling == JOINED:
                continue  # words that were joined look like anything
            matches = iter(pattern.finditer(view.data))
            first = next(matches, None)
            if first is None:
                continue
            line = view.line(first.start())
            if line not in lines:
                lines.add(line)
                times = 1 + sum(1 for _ in matches)
                yield Finding(
                    kind="token", name=name, spelling=view.spelling, line=line, times=times
                )
