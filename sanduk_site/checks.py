"""Misconfiguration that `manage.py check` finds, each with an id and a hint.

The ids are listed in docs/operations.md.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

NETWORK_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph")
# every variable of ours that something reads; docs/operations.md describes each
VARIABLES = frozenset(
    {
        "SANDUK_HOME", "SANDUK_DEBUG", "SANDUK_DEFAULT_MODE", "SANDUK_MODE", "SANDUK_RUNTIME",
        "SANDUK_AGENT", "SANDUK_PROVIDER", "SANDUK_MODEL", "SANDUK_BROWSER",
        "SANDUK_BASE_URL",
        "SANDUK_LEASE_SECONDS", "SANDUK_MAX_RUNS", "SANDUK_DRAIN_SECONDS",
        "SANDUK_REPORT_MAX_BYTES", "SANDUK_MIN_FREE_MB",
        "SANDUK_BODIES_MAX_DAYS", "SANDUK_BODIES_MAX_MB", "SANDUK_BACKUP_DAYS",
        "SANDUK_ADMIN_USER", "SANDUK_ADMIN_PASSWORD", "SANDUK_ADMIN_PASSWORD_FILE",
        "SANDUK_TRUSTED_PROXIES", "SANDUK_FOUR_EYES", "SANDUK_ALLOWED_HOSTS", "SANDUK_TIME_ZONE",
        "SANDUK_SECRET_KEY", "SANDUK_SECRET_KEY_FILE",
        "SANDUK_CLOCK_FILE", "SANDUK_TEST_HOME", "SANDUK_ENGINE_DIR", "SANDUK_POSTGRES_DIR",
        "SANDUK_APT_MIRROR", "SANDUK_CA_BUNDLE", "SANDUK_EGRESS_ADMIT", "SANDUK_HIDE",
        "SANDUK_WORK_ROOTS", "SANDUK_EMAIL_URL", "SANDUK_EMAIL_URL_FILE", "SANDUK_EMAIL_FROM",
        "SANDUK_TEST_COMMAND", "SANDUK_GITHUB_API",
    }
)  # fmt: skip


@register("sanduk")
def check_home(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """The state directory: private, writable, and not on a network file system."""
    return list(_home(settings.SANDUK_HOME))


def _home(home: Path) -> Iterator[CheckMessage]:
    if not home.exists():
        return  # it is made, 0700, when it is first needed
    facts = home.stat()
    if not stat.S_ISDIR(facts.st_mode) or not os.access(home, os.W_OK | os.X_OK):
        yield Error(
            f"SANDUK_HOME {home} cannot be written.",
            hint="Point SANDUK_HOME at a directory of this account, or leave it unset.",
            id="sanduk.E001",
        )
    elif facts.st_mode & 0o077:
        yield Warning(
            f"SANDUK_HOME {home} can be read by other accounts.",
            hint=f"It holds reports, messages and keys: chmod 700 {home}",
            id="sanduk.W001",
        )
    kind = file_system(home)
    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3") and kind in NETWORK_FILE_SYSTEMS:
        yield Error(
            f"SQLite would live on a network file system ({kind}), where its locks do not hold.",
            hint="Move SANDUK_HOME to a local disk, or set DATABASE_URL to a PostgreSQL server.",
            id="sanduk.E002",
        )


def file_system(path: Path) -> str:
    """The type of the file system `path` is on, as /proc/mounts names it; "" where unknown."""
    best, kind = "", ""
    try:
        rows = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    for row in rows:
        place, found = row.split()[1:3]
        if Path(path).is_relative_to(place) and len(place) >= len(best):
            best, kind = place, found
    return kind


@register("sanduk")
def check_variables(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """A misspelt SANDUK_ variable would silently do nothing."""
    found: list[CheckMessage] = []
    for name in sorted(os.environ):
        if not name.startswith("SANDUK_") or name in VARIABLES:
            continue
        near = difflib.get_close_matches(name, VARIABLES, n=1)
        found.append(
            Warning(
                f"{name} is set, and nothing reads it.",
                hint=f"Did you mean {near[0]}?" if near else "See docs/operations.md.",
                id="sanduk.W002",
            )
        )
    return found


@register("sanduk")
def check_engine(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """SANDUK_RUNTIME must name an engine there is."""
    from runs.engines import get_engine
    from runs.engines.base import EngineError

    if not settings.SANDUK_RUNTIME:
        return []
    try:
        get_engine(settings.SANDUK_RUNTIME)
    except EngineError as exc:
        hint = "Unset SANDUK_RUNTIME to take the first engine that is installed."
        return [Error(f"SANDUK_RUNTIME: {exc}.", hint=hint, id="sanduk.E003")]
    return []


@register("sanduk", deploy=False)
def check_exposure(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Debug pages show settings and source to whoever can reach the site."""
    local = {"127.0.0.1", "localhost", "[::1]"}
    if settings.DEBUG and not set(settings.ALLOWED_HOSTS) <= local:
        return [
            Error(
                "SANDUK_DEBUG is on while the site answers to other names than localhost.",
                hint="Unset SANDUK_DEBUG, or SANDUK_ALLOWED_HOSTS.",
                id="sanduk.E004",
            )
        ]
    return []


@register("sanduk")
def check_secret_files(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """A file that a `*_FILE` variable names should be readable by this account alone."""
    found: list[CheckMessage] = []
    for name, value in sorted(os.environ.items()):
        if not name.endswith(("_KEY_FILE", "_TOKEN_FILE", "_PASSWORD_FILE")):
            continue
        try:
            mode = Path(value).stat().st_mode
        except OSError:
            continue  # whoever reads the secret says so, with the right exit code
        if mode & 0o077:
            found.append(
                Warning(
                    f"The file that {name} names can be read by other accounts.",
                    hint=f"chmod 600 {value}",
                    id="sanduk.W003",
                )
            )
    return found


@register("sanduk")
def check_queue(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Settings of the queue that would have tasks repeated, lost, or never timed out."""
    cluster = settings.Q_CLUSTER
    return [
        Error(f"Q_CLUSTER: {trouble}.", hint="docs/worker.md says why.", id="sanduk.E005")
        for name, found in (("", cluster), *cluster.get("ALT_CLUSTERS", {}).items())
        for trouble in _queue_troubles(name, {**cluster, **found})
    ]


def _queue_troubles(name: str, found: dict[str, Any]) -> Iterator[str]:
    where = f"the cluster {name}" if name else "the default cluster"
    if not found.get("timeout") or found["retry"] <= found["timeout"]:
        yield f"in {where} retry must be longer than timeout, or a task runs twice at once"
    if not found.get("ack_failures") or found.get("max_attempts") != 1:
        yield f"{where} would try failed tasks for ever"
    if found.get("guard_cycle") not in (0.25, 0.5, 1):
        yield f"the guard_cycle of {where} must be 0.25, 0.5 or 1, or no time limit holds"
    if found.get("catch_up") is not False or found.get("sync"):
        yield f"{where} must not catch up and not be synchronous"
    if found.get("cluster_name") or found.get("orm") != "default":
        yield f"{where} must have no cluster_name and use the default database"
    if name and found.get("scheduler") is not False:
        yield f"{where} must not have a scheduler: one is enough"
