"""What is asked of GitHub about one repository, and what of the answers is believed.

Every answer is read strictly; where it is not what the API documents, it counts as none. Addresses
that people are shown are composed here, of the site's own address and a number: never taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Meta

from changes import github
from changes.github import Answer, NoAnswer, Site
from changes.remotes import There
from runs.refusal import Refusal
from runs.visible import visible

Name = Annotated[str, Meta(min_length=1, max_length=300)]
Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_T = TypeVar("_T")


class Permissions(msgspec.Struct):
    push: bool = False


class Found(msgspec.Struct):
    """A repository, as its own page of the API has it."""

    full_name: Name
    default_branch: Name
    archived: bool = False
    permissions: Permissions | None = None  # not every kind of token is told


class _End(msgspec.Struct):
    ref: Name
    sha: Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


class Pull(msgspec.Struct):
    number: Number
    state: str
    head: _End
    base: _End


class _Branch(msgspec.Struct):
    name: Name


class _Comparison(msgspec.Struct):
    status: str


class Refused(Refusal):
    """GitHub said that it did not do it."""


@dataclass(frozen=True, slots=True)
class Talk:
    """Questions about one repository of one site."""

    site: Site
    where: There
    token: str

    def __repr__(self) -> str:
        return f"Talk({self.site.host}, {self.where})"

    def repository(self) -> Found:
        """What the token may do there. Raises Refusal where that is not enough."""
        answer = self._ask("GET", "")
        if 300 <= answer.status < 400:
            raise Refusal(
                f"{self.where} has moved on {self.site.host}: give the remote its new address, "
                "git remote set-url"
            )
        if answer.status in (403, 404):
            raise Refusal(
                f"{self.where} is not on {self.site.host}, or {github.TOKEN} may not see it"
                f"{_said(answer)}"
            )
        found = self._read(answer, Found, 200)
        if found.full_name.lower() != str(self.where).lower():
            raise Refusal(
                f"{self.site.host} knows {self.where} by another name: give the remote its new "
                "address, git remote set-url"
            )
        if found.archived:
            raise Refusal(f"{self.where} is archived on {self.site.host}: nothing can be pushed")
        if found.permissions is not None and not found.permissions.push:
            raise Refusal(
                f"{github.TOKEN} may not push to {self.where}: whoever it belongs to needs the "
                "right to write there"
            )
        return found

    def require_branch(self, branch: str) -> None:
        """Raise Refusal where there is none called so."""
        answer = self._ask("GET", f"/branches/{quote(branch, safe='')}")
        if answer.status == 404:
            raise Refusal(
                f"{self.where} has no branch {visible(branch, limit=200)} on {self.site.host}: "
                "push it first, or name another with --into"
            )
        if self._read(answer, _Branch, 200).name != branch:
            raise Refusal(f"the branch {visible(branch, limit=200)} was renamed there: --into it")

    def require_within(self, commit: str, branch: str) -> None:
        """Raise Refusal where the commit is no part of the branch there."""
        words = f"/compare/{quote(branch, safe='')}...{commit}"
        # no page but the first holds files
        answer = self._ask("GET", words, query=(("per_page", "1"), ("page", "2")))
        is_known = answer.status != 404
        if is_known and self._read(answer, _Comparison, 200).status in ("behind", "identical"):
            return
        raise Refusal(
            f"the base commit {commit[:12]} is not in {visible(branch, limit=200)} of {self.where} "
            f"on {self.site.host}: the pull request would hold what nobody accepted here; push "
            "the base first, or name another branch with --into"
        )

    def tip(self, branch: str) -> str:
        """The commit a branch is at there; "" where there is none."""
        answer = self._ask("GET", f"/git/ref/heads/{quote(branch)}")
        if answer.status == 404:
            return ""
        found = self._read(answer, _Ref, 200)
        return found.object.sha if found.ref == f"refs/heads/{branch}" else ""

    def pull_of(self, head: str, commit: str, into: str) -> int:
        """The number of the pull request that was made of this commit; 0 for none.

        An open one of the branch is it whatever was pushed since, a closed one only if its commit
        is the same.
        """
        query = (
            ("state", "all"), ("head", f"{self.where.owner}:{head}"), ("per_page", "30"),
        )  # fmt: skip
        answer = self._ask("GET", "/pulls", query=query)
        if answer.status in (403, 404):
            raise Refused(
                f"{github.TOKEN} may not read pull requests of {self.where}{_said(answer)}"
            )
        found = self._read(answer, list[Pull], 200)
        ours = [each for each in found if each.head.ref == head and each.base.ref == into]
        good = [each for each in ours if each.state == "open" or each.head.sha == commit]
        return max((each.number for each in good), default=0)

    def make(self, *, head: str, into: str, title: str, body: str) -> int:
        """Make a draft; its number.

        Raises:
            Refused: it was not made.
            NoAnswer: whether it was made is not known.
        """
        asked: Mapping[str, Any] = {
            "title": title, "body": body, "head": head, "base": into, "draft": True,
        }  # fmt: skip
        answer = self._ask("POST", "/pulls", body=asked)
        if 400 <= answer.status < 500 and answer.status not in (408, 425, 429):
            raise Refused(
                f"{self.site.host} did not make the pull request ({answer.status}){_said(answer)}"
            )
        if answer.status == 429:
            raise Refused(f"{self.site.host} wants to be asked later (429){_said(answer)}")
        made = self._read(answer, Pull, 201)
        if made.head.ref != head or made.base.ref != into:
            raise NoAnswer(f"{self.site.host} answered with another pull request than was asked")
        return made.number

    def _ask(self, method: str, path: str, **rest: Any) -> Answer:
        start = f"/repos/{quote(self.where.owner)}/{quote(self.where.name)}"
        answer = github.ask(self.site, self.token, method, f"{start}{path}", **rest)
        if answer.status == 401:
            raise Refused(
                f"{self.site.host} does not know {github.TOKEN} (any more): set another with "
                f"sanduk auth set {github.TOKEN}"
            )
        if answer.status == 403 and "rate limit" in answer.said().lower():
            raise Refused(f"{self.site.host} wants to be asked later{_said(answer)}")
        return answer

    def _read(self, answer: Answer, kind: type[_T], status: int) -> _T:
        if answer.status != status:
            raise NoAnswer(f"{self.site.host} answered {answer.status}{_said(answer)}")
        try:
            return msgspec.json.decode(answer.data, type=kind)
        except (msgspec.DecodeError, RecursionError):
            raise NoAnswer(
                f"{self.site.host} did not answer as GitHub does; is SANDUK_GITHUB_API right?"
            ) from None


class _Ref(msgspec.Struct):
    ref: Name
    object: _Object


class _Object(msgspec.Struct):
    sha: Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


def _said(answer: Answer) -> str:
    words = answer.said()
    return f": {words}" if words else ""
