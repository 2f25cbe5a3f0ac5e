"""Delivers to any service the library Apprise knows (the extra `sanduk[apprise]`).

Apprise runs in a process of its own: it can be ended in time, and the URL with its token is in no
list of arguments.
"""

from __future__ import annotations

import importlib.util
import json
import sys

from assistants.delivery import program
from assistants.delivery.kinds import AppriseSettings, environment, secret_named
from assistants.delivery.parcel import Doubtful, Failed, Parcel
from runs.refusal import Refusal

_PROGRAM = """
import json, sys
import apprise
given = json.load(sys.stdin)
service = apprise.Apprise()
if not service.add(given["url"]):
    sys.exit(3)
sys.exit(0 if service.notify(title=given["title"], body=given["body"]) else 1)
"""
_NO_URL = 3


def check_installed() -> None:
    """Raises Refusal when the library is not there."""
    if importlib.util.find_spec("apprise") is None:
        raise Refusal("apprise is not installed: pip install 'sanduk[apprise]'")


def send(parcel: Parcel, settings: AppriseSettings, timeout_s: float) -> str:
    """Have Apprise notify. Raises Failed, Doubtful."""
    try:
        check_installed()
    except Refusal as exc:
        raise Failed(str(exc), lasting=True) from None
    url = secret_named(settings.url_secret)
    given = {"url": url, "title": parcel.title, "body": parcel.body}
    argv = [sys.executable, "-P", "-c", _PROGRAM]
    data = json.dumps(given).encode()
    try:
        ended = program.run(argv, data, env=environment(), timeout_s=timeout_s)
    except OSError as exc:
        raise Failed(f"python could not be started: {exc.strerror}") from None
    output = ended.output.replace(url, f"[{settings.url_secret}]")
    if ended.code is None:
        raise Doubtful(f"it did not end within {timeout_s:g} s and was killed", output=output)
    if ended.code == _NO_URL:
        raise Failed(f"{settings.url_secret} is no URL that Apprise knows", lasting=True)
    if ended.code:
        raise Failed("the service did not take it", output=output)
    return output
