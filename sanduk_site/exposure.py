"""Where the site may listen: on this machine alone, unless what more it takes was said."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings

from runs.refusal import Refusal
from sanduk_site import env


@dataclass(frozen=True, slots=True)
class Exposure:
    """Args:
    url: where people reach the site.
    warnings: what is allowed and should be known.
    """

    url: str
    warnings: tuple[str, ...] = ()


def judge(host: str, port: int) -> Exposure:
    """Whether the site may listen on `host`. Raises Refusal, naming what is missing."""
    chosen = bool(env.text("SANDUK_BASE_URL"))
    base_url = settings.SANDUK_BASE_URL
    if is_loopback(host):
        url = base_url if chosen else f"http://{_spelt(host)}:{port}"
        return Exposure(url, tuple(_warnings(url)))
    if settings.DEBUG:
        raise Refusal(f"--host {host} is refused while SANDUK_DEBUG is on: it shows settings")
    if not chosen or is_loopback(env.host_of(base_url).strip("[]")):
        raise Refusal(
            f"--host {host} can be reached from other machines, and needs SANDUK_BASE_URL, the "
            f"address people will type, as SANDUK_BASE_URL=http://box.lan:{port or 8000}"
        )
    return Exposure(base_url, tuple(_warnings(base_url)))


def _warnings(url: str) -> Iterator[str]:
    is_local = is_loopback(env.host_of(url).strip("[]"))
    if url.startswith("http:") and not is_local:
        yield (
            "passwords travel unencrypted to anybody who listens on that network; https needs a "
            "reverse proxy and SANDUK_BASE_URL=https://…"
        )
    if url.startswith("https:") and not settings.SANDUK_TRUSTED_PROXIES:
        yield (
            "SANDUK_TRUSTED_PROXIES is not set: every visitor seems to come from the reverse "
            "proxy, and one who guesses passwords locks out all others"
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _spelt(host: str) -> str:
    return f"[{host}]" if ":" in host else host
