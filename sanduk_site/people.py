"""The people of this installation: making their accounts, shutting them out, letting them in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from runs import audit, clock
from runs.models import TerminalAccount
from runs.refusal import Refusal
from sanduk_site import links, roles
from sanduk_site.models import LoginSession, OneTimeLink, TerminalToken


def named(name: str) -> Any:
    """One person. Raises Refusal when there is none of that name."""
    model = get_user_model()
    user = model.objects.filter(**{model.USERNAME_FIELD: name}).first()
    if user is None:
        raise Refusal(f"there is no site user {name!r}; sanduk user add makes one")
    return user


def add(name: str, wanted: Iterable[str], *, actor: Any = None) -> tuple[Any, str]:
    """Make an account with these roles, and the token of the link that sets its password.

    Args:
        actor: the site user who makes it; None for the OS account of this process.

    Raises Refusal for a name that is none, or taken.
    """
    user = get_user_model()(username=name, is_staff=True)
    user.set_unusable_password()
    try:
        user.clean_fields()
        with transaction.atomic():
            user.save()
            audit.record("user.add", _subject(user), actor=actor)
            roles.give(user, wanted, actor=actor, is_new=True)
            return user, links.new(user)
    except ValidationError as exc:
        raise Refusal(f"{name!r} is no user name: {' '.join(exc.messages)}") from None
    except IntegrityError:
        raise Refusal(
            f"there is a site user {name!r} already; sanduk user role changes it"
        ) from None


def new_link(user: Any, *, actor: Any = None) -> str:
    """The token of a link with which this person sets a new password, once.

    `actor` is the site user who has it made; None: the OS account of this process.
    """
    if not user.is_active:
        raise Refusal(f"{user.get_username()} is shut out; sanduk user on {user.get_username()}")
    with transaction.atomic():
        audit.record("user.link", _subject(user), actor=actor)
        return links.new(user)


def shut_out(user: Any) -> bool:
    """Let nobody in as this person, and sign every browser out. False when it was so already.

    Raises Refusal for the last administrator.
    """
    name = user.get_username()
    with transaction.atomic():
        if not get_user_model().objects.filter(pk=user.pk, is_active=True).update(is_active=False):
            return False
        roles.check_one_is_left(name)
        LoginSession.objects.filter(user=user, ended_at=None).update(
            ended_at=clock.now(), ended_by=audit.account()[:150]
        )
        TerminalToken.objects.open().filter(user=user).update(
            ended_at=clock.now(), ended_by=audit.account()[:150]
        )
        OneTimeLink.objects.open().filter(user=user).update(expires_at=clock.now())
        audit.record("user.off", _subject(user))
    return True


def let_in(user: Any) -> bool:
    """Let somebody in again who was shut out; False when they were not."""
    with transaction.atomic():
        if not get_user_model().objects.filter(pk=user.pk, is_active=False).update(is_active=True):
            return False
        audit.record("user.on", _subject(user))
    return True


def unlock(name: str = "") -> int:
    """Forget wrong guesses of a password, at one name or at all; how many rows they were."""
    from axes.handlers.proxy import AxesProxyHandler

    gone: int = AxesProxyHandler.reset_attempts(username=name or None)
    audit.record("user.unlock", f"user:{name}"[:100] if name else "user")
    return gone


def listed() -> list[dict[str, Any]]:
    """Everybody, with roles and the OS account that is theirs."""
    accounts = dict(TerminalAccount.objects.values_list("user_id", "account"))
    people = get_user_model().objects.order_by("username").prefetch_related("groups")
    return [
        {
            "user": each.get_username(),
            "roles": [role for role in roles.RIGHTS if role in {g.name for g in each.groups.all()}],
            "superuser": each.is_superuser,
            "account": accounts.get(each.pk, ""),
            "active": each.is_active,
        }
        for each in people
    ]


def _subject(user: Any) -> str:
    return f"user:{user.get_username()}"[:100]
