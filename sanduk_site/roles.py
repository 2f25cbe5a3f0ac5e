"""Four roles as groups, and which right each gives. They add up: a person may have several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Q

from runs import audit
from runs.refusal import Refusal

VIEWER, OPERATOR, APPROVER, ADMINISTRATOR = "viewer", "operator", "approver", "administrator"
_VIEWED = {
    "runs": ("run", "runevent", "relaycall", "decision", "auditevent"),
    "assistants": (
        "assistant", "schedule", "wakeup", "inboxmessage", "outboxitem", "destination", "delivery",
        "memorysnapshot",
    ),
    "changes": (
        "repository", "change", "batch", "attempt", "riskflag", "testrun", "skill", "artifact",
    ),
}  # fmt: skip
_VIEWS = frozenset(f"{app}.view_{model}" for app, models in _VIEWED.items() for model in models)
_OPERATES = _VIEWS | {
    "runs.start_run",
    "runs.stop_run",
    "assistants.change_assistant",
    "assistants.tell_assistant",
    "assistants.wake_assistant",
    "changes.start_change",
}
_APPROVES = _VIEWS | {
    "assistants.decide_outboxitem",
    "assistants.review_memory",
    "changes.decide_change",
    "changes.decide_skill",
}
_ADMINISTERS = (
    _OPERATES
    | _APPROVES
    | {
        "runs.view_request_bodies",
        "runs.change_sitesetting",
        "assistants.change_assistant_security",
        "assistants.view_every_assistant",
        "auth.view_user",
        "auth.add_user",
        "auth.change_user",
        "auth.view_group",
        "sanduk_site.view_loginsession",
        "sanduk_site.end_loginsession",
    }
)
# an upgrade sets each group to exactly this; other sets are for groups of the operator's own
RIGHTS: dict[str, frozenset[str]] = {
    VIEWER: _VIEWS,
    OPERATOR: _OPERATES,
    APPROVER: _APPROVES,
    ADMINISTRATOR: _ADMINISTERS,
}


def make_groups() -> None:
    """Make the roles' groups hold exactly their rights. Raises LookupError for one that is none."""
    there = {f"{each.content_type.app_label}.{each.codename}": each for each in _named()}
    for role, rights in RIGHTS.items():
        if missing := rights - set(there):
            raise LookupError(f"no such right: {', '.join(sorted(missing))}")
        group, _created = Group.objects.get_or_create(name=role)
        group.permissions.set([there[right] for right in rights])


def _named() -> Iterable[Permission]:
    wanted = Q()
    for right in frozenset().union(*RIGHTS.values()):
        app, codename = right.split(".")
        wanted |= Q(content_type__app_label=app, codename=codename)
    return Permission.objects.select_related("content_type").filter(wanted)


def of(user: Any) -> list[str]:
    """The roles a person has, in the order above."""
    names = set(user.groups.filter(name__in=RIGHTS).values_list("name", flat=True))
    return [role for role in RIGHTS if role in names]


def give(user: Any, roles: Iterable[str], *, actor: Any = None, is_new: bool = False) -> None:
    """Let a person have exactly these roles; groups that are no role of ours stay.

    Args:
        actor: the site user who gives them; None for the OS account of this process.
        is_new: the person was made just now, and was no administrator.

    Raises Refusal when the last administrator would be gone.
    """
    wanted = set(roles)
    with transaction.atomic():
        user.groups.remove(*Group.objects.filter(name__in=set(RIGHTS) - wanted))
        user.groups.add(*Group.objects.filter(name__in=wanted))
        user.is_staff = True  # the pages are the admin's: a role without it opens none
        user.is_superuser = user.is_superuser and ADMINISTRATOR in wanted
        user.save(update_fields=["is_staff", "is_superuser"])
        name = user.get_username()
        if not is_new:
            check_one_is_left(name)
        audit.record("user.role", f"user:{name}"[:100], actor=actor, roles=sorted(wanted))


def check_one_is_left(name: str) -> None:
    """Raise Refusal when there is no administrator any more."""
    if not administrators().exists():
        raise Refusal(f"{name} is the last administrator; make another first")


def deciders() -> Any:
    """The people who may decide on what wants to leave."""
    backend = "django.contrib.auth.backends.ModelBackend"
    return get_user_model().objects.with_perm("assistants.decide_outboxitem", backend=backend)


def administrators() -> Any:
    """The people who may do everything."""
    is_one = Q(is_superuser=True) | Q(groups__name=ADMINISTRATOR)
    return get_user_model().objects.filter(is_one, is_active=True).distinct()
