"""The settings of each kind of destination: plain data that holds no secret, only their names."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from assistants.models import Destination
from relay.destinations import is_never_asked, is_public, is_this_machine
from runs import credentials, keys
from runs.refusal import Refusal


class CommandSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program of the host's. `argv` goes to no shell."""

    argv: tuple[str, ...]

    def check(self) -> None:
        if not self.argv or shutil.which(self.argv[0]) is None:
            raise Refusal(f"there is no program {''.join(self.argv[:1])!r} on PATH")
        if "/" in self.argv[0] and not self.argv[0].startswith("/"):
            raise Refusal(
                f"{self.argv[0]!r} would be looked for in /, where it runs: say all of it"
            )

    def told(self) -> str:
        return shlex.join(self.argv)


class WebhookSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where to POST. Either `url`, or `url_secret`, the name of a secret that is the whole URL."""

    url: str = ""
    url_secret: str = ""
    secret: str = ""  # the name of the secret that signs
    allow_lan: bool = False  # private addresses and this machine's own

    def check(self) -> None:
        if bool(self.url) == bool(self.url_secret):
            raise Refusal("a webhook takes an URL, or the name of a secret that is one")
        url, what = self.url or secret_named(self.url_secret), self.url_secret or "the URL"
        check_url(url, what=what)
        check_literal(url, what=what, allow_lan=self.allow_lan)
        if self.secret:
            secret_named(self.secret)

    def told(self) -> str:
        signed = f", signed with {self.secret}" if self.secret else ", not signed"
        return (self.url or f"the URL in {self.url_secret}") + signed


Security = Literal["none", "starttls", "tls"]
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class EmailSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One address: with several, some may get it and others not."""

    to: str
    sender: str
    host: str = "localhost"
    port: Port = 25
    security: Security = "none"
    user: str = ""
    password_secret: str = ""

    def check(self) -> None:
        for address in (self.to, self.sender):
            name, at, domain = address.partition("@")
            plain = address.isprintable() and not any(c in ' ,;<>"' for c in address)
            if not (name and at and domain and plain) or "@" in domain:
                raise Refusal(f"{address!r} is no single e-mail address")
        if bool(self.user) != bool(self.password_secret):
            raise Refusal("a mail server takes both a user and the name of a password, or neither")
        if self.password_secret:
            secret_named(self.password_secret)
            if self.security == "none" and self.host not in ("localhost", "127.0.0.1", "::1"):
                raise Refusal("a password goes to a mail server over starttls or tls only")

    def told(self) -> str:
        return f"{self.to} by {self.host}:{self.port}"


class FileSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that gets one line of JSON for each item."""

    path: str

    def check(self) -> None:
        path = Path(self.path)
        if not path.is_absolute() or not path.parent.is_dir():
            raise Refusal(f"{self.path!r} is no absolute path in a directory that is there")
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise Refusal(f"{self.path!r} is no regular file")

    def told(self) -> str:
        return self.path


class AppriseSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A service that the library Apprise knows; its URL holds the token, so it is a secret."""

    url_secret: str

    def check(self) -> None:
        from assistants.delivery import apprise_url

        apprise_url.check_installed()
        secret_named(self.url_secret)

    def told(self) -> str:
        return f"the Apprise URL in {self.url_secret}"


Settings = CommandSettings | WebhookSettings | EmailSettings | FileSettings | AppriseSettings
_KINDS: dict[str, type[Settings]] = {
    Destination.Kind.COMMAND: CommandSettings,
    Destination.Kind.WEBHOOK: WebhookSettings,
    Destination.Kind.EMAIL: EmailSettings,
    Destination.Kind.FILE: FileSettings,
    Destination.Kind.APPRISE: AppriseSettings,
}


def settings_of(kind: str, config: dict[str, Any]) -> Settings:
    """The settings in a row. Raises Refusal when they are of another version."""
    try:
        return msgspec.convert(config, _KINDS[kind])
    except (msgspec.ValidationError, KeyError) as exc:
        raise Refusal(f"the destination's settings cannot be used: {exc}") from None


def secret_named(name: str) -> str:
    """A secret by its name. Raises Refusal when there is none; it is never shown."""
    credentials.check_name(name)
    value = keys.value_of(name)
    if not value:
        raise Refusal(f"there is no secret {name}: sanduk auth set {name}")
    return value


def check_url(url: str, *, what: str) -> None:
    """Raise Refusal for what is no URL to POST to; an URL that is a secret is named by `what`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Refusal(f"{what} is no URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise Refusal(f"{what} must begin with http:// or https:// and name a host")
    if parts.username or parts.password:
        raise Refusal(f"{what} holds a user or a password; keep the URL as a secret instead")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise Refusal(f"{what} holds a character that no URL has")


def check_literal(url: str, *, what: str, allow_lan: bool) -> None:
    """Raise Refusal for an URL whose host is an address, however written, that is never asked.

    What a name leads to is looked at when something is sent there.
    """
    host = urlsplit(url).hostname or ""
    try:
        address = str(ip_address(host.partition("%")[0]))
    except ValueError:
        try:
            address = socket.inet_ntoa(socket.inet_aton(host))  # 2852039166, 0x7f.1
        except (OSError, UnicodeError):
            return
    if not may_ask(address, allow_lan=allow_lan):
        lan = not allow_lan and may_ask(address, allow_lan=True)
        hint = "; --allow-lan admits it" if lan else ", and no flag admits it"
        raise Refusal(f"the host of {what} is an address that is not public{hint}")


def may_ask(address: str, *, allow_lan: bool) -> bool:
    """Whether a webhook may go to an address, as `getaddrinfo` gives it."""
    if not allow_lan:
        return is_public(address) and not is_this_machine(address)
    return not is_never_asked(address)


def environment() -> dict[str, str]:
    """This process's environment without the secrets that sanduk itself reads from it."""
    held = set(keys.held_keys())
    ours = {"DATABASE_URL", "SANDUK_SECRET_KEY", "SANDUK_SECRET_KEY_FILE"}
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ours and value.strip() not in held
    }
