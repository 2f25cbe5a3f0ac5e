"""The first administrator: from the environment, or by a link that is printed once."""

from __future__ import annotations

import os
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from runs import audit
from runs.refusal import Refusal
from sanduk_site import env, links, roles
from sanduk_site.models import OneTimeLink

NAME, PASSWORD = "SANDUK_ADMIN_USER", "SANDUK_ADMIN_PASSWORD"


def ensure() -> str | None:
    """See that there can be an administrator.

    Returns the token of a new link when there is none and the environment names none. Raises
    Refusal when what it names cannot be one.
    """
    try:
        name, password = env.text(NAME), env.secret(PASSWORD)
    except env.BadSetting as exc:
        raise Refusal(str(exc)) from None
    finally:
        os.environ.pop(PASSWORD, None)  # what is started from here has no use for it
    if roles.administrators().exists():
        return None
    if not name and not password:
        return links.new()
    if not name or not password:
        raise Refusal(f"the first administrator needs both {NAME} and {PASSWORD} (or its _FILE)")
    try:
        make(name, password)
    except ValidationError as exc:
        raise Refusal(f"{NAME} and {PASSWORD}: {' '.join(exc.messages)}") from None
    return None


def make(name: str, password: str, *, token: str = "") -> Any:
    """Make the first administrator.

    Args:
        token: of the link that is used up by this; "" where the environment names them.

    Raises ValidationError for a name or a password that is none, Refusal when the link is not
    good or somebody is administrator already.
    """
    user = get_user_model()(username=name, is_staff=True, is_superuser=True)
    user.clean_fields(exclude=["password"])
    validate_password(password, user)
    user.set_password(password)
    with transaction.atomic():
        if token:
            use(token)
        if roles.administrators().exists():
            raise Refusal("there is an administrator already")
        try:
            user.save()
        except IntegrityError:
            raise ValidationError("There is a user of that name already.") from None
        user.groups.add(Group.objects.get(name=roles.ADMINISTRATOR))
        audit.record("user.first-administrator", f"user:{name}"[:100], actor=user)
    return user


def use(token: str) -> None:
    """Use a link up, once. Raises Refusal when it was, or has expired."""
    link = links.found(token)
    if link is None or not OneTimeLink.objects.use(link.pk):
        raise Refusal("this link was used already, or has expired")
