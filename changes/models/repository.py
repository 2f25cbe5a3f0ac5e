"""`Repository`: a git repository of this host that changes were asked for."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath
from typing import ClassVar

from django.db import models

from runs import clock
from runs.refusal import Refusal
from runs.visible import visible_name

_WORDS = re.compile("[^a-z0-9]+")


def identity_of(path: str) -> str:
    """The id of a repository at an absolute, resolved path: `sanduk-1f0c9a7b`.

    Its store, and the operator's rules for it, are named by it.
    """
    word = _WORDS.sub("-", PurePosixPath(path).name.removesuffix(".git").lower()).strip("-")
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{word[:40].rstrip('-') or 'repository'}-{digest[:8]}"


class RepositoryQuerySet(models.QuerySet["Repository"]):
    def at(self, path: str) -> Repository:
        """The row of the repository at this resolved path, made when it is missing.

        Raises Refusal: no row can hold this path.
        """
        try:
            path.encode()
        except UnicodeEncodeError:
            raise Refusal(
                f"{visible_name(path)} is no UTF-8: rename the directory the repository is in"
            ) from None
        facts = {"uid": identity_of(path)}
        found, _made = self.get_or_create(path=path, defaults=facts)
        return found


class Repository(models.Model):
    """Where changes come from and land. Nothing in it is read but through `changes.bundle`."""

    uid = models.CharField(max_length=64, unique=True, editable=False)
    path = models.CharField(max_length=4096, unique=True)  # absolute, resolved
    created_at = models.DateTimeField(default=clock.now)

    objects = RepositoryQuerySet.as_manager()

    class Meta:
        ordering: ClassVar[list[str]] = ["path"]

    def __str__(self) -> str:
        return self.uid

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name or self.uid
