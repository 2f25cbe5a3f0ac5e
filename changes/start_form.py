"""The form that asks for a change on the web: what it can name is all that the web can name."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
from django import forms

from changes.asking import Options
from changes.repository import find
from runs import work_roots
from runs.order import Order
from runs.start_form import StartForm

_REF_MAX = 200


class ChangeForm(StartForm):
    """A run's form, with a repository in place of a workspace."""

    base = forms.CharField(
        label="From",
        required=False,
        max_length=_REF_MAX,
        help_text="A branch, a tag or a commit. Empty: what is checked out there.",
    )
    field_order = ("task", "place", "below", "base", "agent", "provider", "recipe", "mode")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        place, below = self.fields["place"], self.fields["below"]
        place.label = "Repository"
        place.help_text = (
            "One commit of it is given to the agent. The directory itself is out of its reach."
        )
        below.help_text = "Where the repository above is a root, or lies deeper."

    usual_below = ""

    def places(self) -> tuple[list[str], list[str]]:
        """Every one: a repository is read alone, whoever it belongs to."""
        return list(work_roots.offered()), []

    def check_place(self, path: str) -> None:
        """`path` looks at what is there."""

    def clean_base(self) -> str:
        base: str = self.cleaned_data["base"].strip()
        if not base.isprintable():
            raise forms.ValidationError("It holds what no name of a commit does.")
        return base

    def path(self) -> str:
        """The repository's directory. Raises Refusal where the web may not name it."""
        path = work_roots.joined(self.cleaned_data["place"], self.cleaned_data["below"])
        work_roots.check(path)
        found = find(Path(path))
        # what an agent may write below a root must lead to no repository elsewhere
        for each in (found.top(), found.git_dir, found.common_dir):
            work_roots.check(os.path.realpath(each))
        return path

    def options(self) -> Options:
        """What a valid form asks for beside the task."""
        order = Order(report_instruction=False, **self.particulars())
        return Options(order=order, base=self.cleaned_data["base"])


def digest(path: str, options: Options) -> str:
    """What a person has seen when they agree to it: equal for equal orders alone."""
    told = msgspec.json.encode([path, options.base, options.order], order="deterministic")
    return hashlib.sha256(told).hexdigest()
