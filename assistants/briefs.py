"""The history of a brief: what it said, from when on."""

from __future__ import annotations

import hashlib

from assistants.models import Assistant, BriefVersion, Wakeup

KEPT = 200  # versions of one assistant's brief


def keep(
    assistant: Assistant, text: str, *, wakeup: Wakeup | None = None, account: str = ""
) -> BriefVersion | None:
    """Keep what a brief says, where that is not what it said last; None when it is.

    Args:
        wakeup: that is given it.
        account: of who added the assistant, where no wakeup read it.
    """
    text = text.replace("\0", "\N{SYMBOL FOR NULL}")  # no database keeps it
    sha256 = digest_of(text)
    rows = BriefVersion.objects.filter(assistant=assistant).order_by("-pk")
    newest = rows.values_list("sha256", flat=True).first()
    if newest == sha256:
        return None
    made = BriefVersion.objects.create(
        assistant=assistant, text=text, sha256=sha256, wakeup=wakeup, account=account[:150]
    )
    if gone := list(rows.values_list("pk", flat=True)[KEPT:]):
        BriefVersion.objects.filter(pk__in=gone).delete()
    return made


def digest_of(text: str) -> str:
    return hashlib.sha256(text.replace("\0", "\N{SYMBOL FOR NULL}").encode()).hexdigest()


def history(assistant: Assistant) -> list[BriefVersion]:
    """Its versions without their texts, the newest first."""
    rows = BriefVersion.objects.filter(assistant=assistant).defer("text")
    return list(rows.select_related("wakeup__run").order_by("-pk"))
