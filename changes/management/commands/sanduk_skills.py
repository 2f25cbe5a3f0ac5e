"""`sanduk skills`: what agents wrote down for later ones, and who let it through."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from changes import skills
from changes.management import as_data, telling
from changes.management.acting import ChangeCommand, add_decision_flags, add_repository, here
from changes.models import Repository, Skill
from changes.named import one_repository, one_skill
from runs.management.action_help import Actions
from runs.management.terminal import add_actions
from runs.refusal import Refusal
from runs.visible import visible

ACTIONS = {
    "list": "the versions there are, those that wait first",
    "show": "one: what stands out in it, its text, what it changes",
    "approve": "give it to every later agent on the repository, for exactly its text",
    "reject": "let it go no further",
    "revoke": "take an approved one back, with a --reason",
}
COLUMNS = ("SKILL", "STATE", "SINCE", "FOUND", "CHANGE", "REPOSITORY", "DESCRIPTION")
_STATE = Skill.State
# which version a bare name means
_MEANT = {
    "show": (_STATE.PROPOSED, _STATE.APPROVED),
    "approve": (_STATE.PROPOSED,),
    "reject": (_STATE.PROPOSED,),
    "revoke": (_STATE.APPROVED,),
}


class Command(ChangeCommand):
    help = (
        "Skills are instructions that an agent wrote for later agents on the same repository. None "
        "of them is given to anybody before a person who read its text approved it."
    )
    examples = (
        "skills list",
        "skills list --repo ~/code/app --json",
        "skills show build-notes --repo ~/code/app",
        "skills approve build-notes@2 --repo ~/code/app --expect 3f2a9c0d11e4",
        'skills revoke build-notes --repo ~/code/app --reason "the build has changed"',
    )
    actions = Actions(
        ACTIONS,
        only={
            "skill": [each for each in ACTIONS if each != "list"],
            "all": ["list"],
            "expect": ["show", "approve"],
            "reason": ["approve", "reject", "revoke"],
        },
        more=('skills reject build-notes --repo ~/code/app --reason "it calls home"',),
    )
    ends_lost_runs = False

    def add_arguments(self, parser: CommandParser) -> None:
        add_actions(parser, ACTIONS)
        parser.add_argument(
            "skill", nargs="?", default="", metavar="NAME[@VERSION]", help="not for list"
        )
        add_repository(parser, what="the repository's path, or its id; for list: only of this one")
        parser.add_argument("--all", action="store_true", help="list: replaced and rejected, too")
        add_decision_flags(parser, reason="kept; needed where something was found in it")

    def act(self, **options: Any) -> int:
        action = options["action"]
        if action == "list":
            if options["skill"]:
                raise Refusal("skills list takes no name; skills show is about one")
            return self._list(options)
        if not options["skill"]:
            raise Refusal(f"skills {action} needs a NAME; sanduk skills list shows them")
        if options["all"]:
            raise Refusal(f"--all means nothing with {action}; it goes with list")
        if options["expect"] is not None and action not in ("approve", "show"):
            raise Refusal(f"--expect means nothing with {action}; it goes with approve")
        repository = _repository(options["repo"], options["skill"])
        skill = one_skill(repository, options["skill"], *_MEANT[action])
        if action == "show":
            return self._show(skill, as_json=options["json"])
        return self._decide(action, skill, options)

    def _list(self, options: dict[str, Any]) -> int:
        found = Skill.objects.select_related("repository", "attempt__change")
        if options["repo"]:
            found = found.filter(repository=one_repository(options["repo"]))
        if not options["all"]:
            found = found.filter(state__in=(_STATE.PROPOSED, _STATE.APPROVED))
        order = {state: place for place, state in enumerate(_STATE.values)}
        rows = sorted(
            found,
            key=lambda each: (order[each.state], each.repository.path, each.name, -each.version),
        )
        if options["json"]:
            self.print_json([as_data.skill(each, body=False) for each in rows])
        elif not rows:
            self.say("no skills" if options["all"] else "no skills; --all lists decided ones, too")
        else:
            self.print_cells(COLUMNS, [_cells(each) for each in rows])
        return 0

    def _show(self, skill: Skill, *, as_json: bool) -> int:
        difference = skills.compared(skill) if skill.state == _STATE.PROPOSED else ""
        if as_json:
            self.print_json({**as_data.skill(skill), "difference": difference})
            return 0
        self.print(f"{visible(skill.repository.path)}, from change {skill.attempt.change.uid}")
        for line in telling.skill(skill):
            self.print(line)
        if difference:
            self.print("the difference to what is in force:")
            for line in difference.splitlines():
                self.print(f"  {visible(line)}")
        return 0

    def _decide(self, action: str, skill: Skill, options: dict[str, Any]) -> int:
        person, reason = here(), options["reason"]
        if action == "approve":
            done = skills.approve(skill.pk, person, expect=options["expect"], reason=reason)
        elif action == "reject":
            done = skills.reject(skill.pk, person, reason=reason)
        else:
            done = skills.revoke(skill.pk, person, reason=reason)
        if options["json"]:
            self.print_json(as_data.skill(done))
        elif action == "approve":
            self.print(f"skill {done} is approved: later agents on it are given its text")
        else:
            self.print(f"skill {done} is {done.state}")
        return 0


def _repository(word: str, skill: str) -> Repository:
    """The one that was named, or the only one with a skill of this name."""
    if word:
        return one_repository(word)
    name = skill.partition("@")[0]
    found = list(Repository.objects.filter(skills__name=name).distinct()[:2])
    if len(found) == 1:
        return found[0]
    if not found:
        raise Refusal(f"there is no skill {visible(skill)!r}; sanduk skills list shows them")
    raise Refusal(f"several repositories have a skill {visible(name)!r}: say which with --repo")


def _cells(skill: Skill) -> tuple[str, ...]:
    return (
        f"{skill.name}@{skill.version}",
        skill.state,
        f"{skill.state_at:%Y-%m-%d %H:%M}",
        str(len(skill.found) + len(skill.could_not_check) or "-"),
        skill.attempt.change.uid,
        visible(skill.repository.name, limit=24),
        visible(skill.description, limit=60),
    )
