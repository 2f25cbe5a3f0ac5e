"""Typed readers of the environment, the only source of settings."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

TRUE, FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


class BadSetting(Exception):
    """A variable that cannot be used as it is; the text names it and says what it accepts."""


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, default).strip()


def flag(name: str, default: bool = False) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value.strip().lower() in TRUE:
        return True
    if value.strip().lower() in FALSE:
        return False
    raise BadSetting(f"{name} must be one of 1, 0, true, false, yes, no, on, off")


def integer(name: str, default: int, *, low: int | None = None, high: int | None = None) -> int:
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        raise BadSetting(f"{name} must be a whole number") from None
    if (low is not None and number < low) or (high is not None and number > high):
        raise BadSetting(f"{name} must be {_range(low, high)}")
    return number


def _range(low: int | None, high: int | None) -> str:
    if high is None:
        return f"at least {low}"
    return f"at most {high}" if low is None else f"between {low} and {high}"


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list, empty items dropped."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = text(name, default)
    if value not in allowed:
        raise BadSetting(f"{name} must be one of {', '.join(allowed)}")
    return value


def directory(name: str, default: Path) -> Path:
    """An absolute path: a relative one would be another directory in each place."""
    value = text(name)
    return _absolute(name, value) if value else default


def _absolute(name: str, value: str) -> Path:
    try:
        path = Path(value).expanduser()
    except RuntimeError:
        raise BadSetting(f"{name} names a home directory that does not exist") from None
    if not path.is_absolute():
        raise BadSetting(f"{name} must be an absolute path")
    return _storable(name, path)


def directories(name: str) -> list[Path]:
    """A comma-separated list of absolute paths, none of them the whole host."""
    found = [_absolute(name, word) for word in words(name)]
    if Path("/") in found:
        raise BadSetting(f"{name} holds /, which is the whole host; list directories in it")
    return found


def _storable(name: str, path: Path) -> Path:
    """The path, if it is text: rows, labels and the database's address hold nothing else."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise BadSetting(f"{name} is no UTF-8 text; name a directory whose path is") from None
    return path


def time_zone(name: str, default: str) -> str:
    value = text(name, default)
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadSetting(f"{name} must be an IANA zone, such as Europe/Berlin") from None
    return value


def base_url(name: str, default: str) -> str:
    """Where people reach the site: ``http(s)://HOST[:PORT]``, without a path."""
    value = text(name, default).rstrip("/")
    form = f"{name} must be http://HOST[:PORT] or https://HOST[:PORT], without a path"
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        raise BadSetting(form) from None
    extra = parts.path or parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("http", "https") or not parts.hostname or extra:
        raise BadSetting(form)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def api_base(name: str, default: str) -> str:
    """Where an API that gets a secret begins: ``https://HOST[:PORT][/PATH]``.

    Plain http is for this machine alone.
    """
    value = (text(name) or default).rstrip("/")
    form = f"{name} must be https://HOST[:PORT][/PATH], as https://github.example.org/api/v3"
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        raise BadSetting(form) from None
    is_here = parts.hostname in ("localhost", "127.0.0.1", "::1")
    schemes = ("http", "https") if is_here else ("https",)
    extra = parts.query or parts.fragment or parts.username or parts.password
    plain = re.fullmatch(r"[A-Za-z0-9._\[\]:-]+", parts.netloc) and "//" not in parts.path
    path = re.fullmatch(r"[A-Za-z0-9._/-]*", parts.path) and ".." not in parts.path
    if parts.scheme not in schemes or not parts.hostname or extra or not plain or not path:
        raise BadSetting(form)
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path}"


def host_of(url: str) -> str:
    """The host of an address, as a Host header spells it: an IPv6 address in brackets."""
    host = urlsplit(url).hostname or ""
    return f"[{host}]" if ":" in host else host


def secret(name: str) -> str:
    """The variable, or the content of the file that ``<name>_FILE`` names.

    Raises BadSetting when the file cannot be read; the value itself is never part of the message.
    """
    value = os.environ.get(name, "")
    file = os.environ.get(f"{name}_FILE", "")
    if value or not file:
        return value.strip()
    try:
        return Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise BadSetting(f"{name}_FILE cannot be read: {reason}") from None


def mail_server(name: str) -> dict[str, str | int | bool]:
    """Django's settings for `smtp(s)://[USER:PASSWORD@]HOST[:PORT]`; none where it is not set.

    smtps speaks TLS from the first byte on; smtp begins it, but on this machine itself.
    """
    value = secret(name)
    if not value:
        return {}
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    extra = parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname or extra:
        # its value holds a password
        raise BadSetting(f"{name} must be smtp://[USER:PASSWORD@]HOST[:PORT], or smtps://")
    is_tls, is_here = parts.scheme == "smtps", parts.hostname in ("localhost", "127.0.0.1", "::1")
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or (465 if is_tls else 25 if is_here else 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": is_tls,
        "EMAIL_USE_TLS": not is_tls and not is_here,
    }


def state_home() -> Path:
    """SANDUK_HOME, else the user's state directory (XDG_STATE_HOME, else ~/.local/state)."""
    if text("SANDUK_HOME"):
        return directory("SANDUK_HOME", Path("/"))
    if chosen := text("XDG_STATE_HOME"):
        return _storable("XDG_STATE_HOME", Path(chosen) / "sanduk")
    return _storable("HOME", Path.home() / ".local" / "state" / "sanduk")
