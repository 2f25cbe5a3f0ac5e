"""The form that starts a run on the web: what it can name is all that the web can name."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms
from django.conf import settings

import recipes
from recipes.catalog import seen_once
from runs import agents, duration, keys, providers, work_roots, workspace
from runs.models import Run
from runs.order import Order, restored
from runs.plan import DEFAULT_AGENT, DEFAULT_PROVIDER, LINK_RECIPE, Plan
from runs.refusal import Refusal
from runs.visible import visible

TASK_MAX = 200_000
MODES = {
    "sealed": "no network but the relay to the provider; the key stays on the host",
    "key-safe": "the internet and the LAN are in reach; the key stays on the host",
}
REHEARSAL = "rehearsal"
NEW_DIRECTORY = "work"  # what is named in a root while there is nothing in it to choose
# what an order says that this form has a field for, or that follows from one
_SAID = frozenset(
    {"agent", "recipe", "provider", "mode", "model", "timeout_s", "budget_usd", "workdir",
     "within_roots"}
)  # fmt: skip
Choices = list[tuple[str, str]]


class StartForm(forms.Form):
    """Everything about a run that a person may say on the web."""

    task = forms.CharField(
        max_length=TASK_MAX,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "data-draft": "", "data-key": "w"}),
        help_text="What the agent is asked, word for word.",
    )
    agent = forms.ChoiceField()
    provider = forms.ChoiceField(required=False, help_text="Whose models it may call.")
    recipe = forms.ChoiceField(required=False, help_text="What its image holds.")
    mode = forms.ChoiceField(
        choices=[(name, f"{name}: {what}") for name, what in MODES.items()],
        help_text="What it can reach. Open mode is started at a terminal only.",
    )
    place = forms.ChoiceField(
        label="Workspace", help_text="The agent may read, change and delete everything in it."
    )
    below = forms.CharField(
        label="Directory in it",
        required=False,
        max_length=200,
        help_text="It is made when it is not there. Needed where the workspace above is a root.",
    )
    model = forms.CharField(
        required=False, max_length=200, help_text="Empty: the agent's or the provider's own."
    )
    timeout = forms.CharField(
        label="Time limit", initial="15m", max_length=10, help_text="Such as 90s, 15m or 2h."
    )
    budget = forms.FloatField(
        label="Budget in US dollars",
        required=False,
        min_value=0.01,
        max_value=1_000_000,
        help_text="Empty: no limit. The relay ends the run where it is reached.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.about_recipes = _recipes()
        places, self.closed = self.places()
        self.there_are_places = bool(places)
        self._roots = {str(root) for root in work_roots.roots()}
        marked = [(name, f"{name} (a root)" if name in self._roots else name) for name in places]
        names = [(name, name) for name in agents.agent_names()]
        more = [(name, name) for name, *_ in self.about_recipes]
        agent, provider = _usual()
        self._choose("agent", names, agent)
        self._choose("provider", [("", "the agent's usual one"), *_providers()], provider)
        self._choose("recipe", [("", "the agent's own"), *more], "")
        within = [name for name in places if name not in self._roots]
        self._choose("place", marked, next(iter([*within, *places]), ""))
        self.fields["below"].initial = "" if within else self.usual_below
        usual = settings.SANDUK_DEFAULT_MODE
        self.fields["mode"].initial = usual if usual in MODES else "sealed"

    usual_below = NEW_DIRECTORY

    def places(self) -> tuple[list[str], list[str]]:
        """What is offered, and what lies beside it and can not be."""
        return work_roots.workable()

    def check_place(self, path: str) -> None:
        """Raises Refusal where no agent can work, whoever asks."""
        workspace.check(path, state=settings.SANDUK_HOME)

    def clean(self) -> dict[str, Any]:
        """The directory is looked at here, so that what is wrong stands at its field."""
        said: dict[str, Any] = super().clean() or {}
        place, below = said.get("place"), said.get("below", "")
        if not place:
            return said
        if place in self._roots and not below:
            self.add_error("below", "Name a directory in it: a root itself is given to no agent.")
            return said
        try:
            path = work_roots.joined(place, below)
            work_roots.check(path)
            self.check_place(path)
        except workspace.WrongOwner as exc:
            asked = "Ask who looks after this host, or choose another."
            self.add_error("below" if below else "place", visible(f"{exc.path} {exc.why}. {asked}"))
        except Refusal as exc:
            self.add_error("below" if below else "place", visible(str(exc)))
        return said

    def _choose(self, name: str, choices: Choices, initial: str) -> None:
        field: Any = self.fields[name]
        field.choices, field.initial = choices, initial

    def clean_task(self) -> str:
        task: str = self.cleaned_data["task"].replace("\r\n", "\n")
        if not task.strip():
            raise forms.ValidationError("The task is empty.")
        return task

    def clean_timeout(self) -> int:
        try:
            return duration.seconds(self.cleaned_data["timeout"], what="The time limit")
        except Refusal as exc:
            raise forms.ValidationError(visible(str(exc))) from None

    def order(self) -> Order:
        """What a valid form amounts to. Raises Refusal for a directory the web may not name."""
        said = self.cleaned_data
        workdir = work_roots.joined(said["place"], said["below"])
        work_roots.check(workdir)
        return Order(workdir=workdir, within_roots=True, **self.particulars())

    def particulars(self) -> dict[str, Any]:
        """What a valid form says of the order, but for where the agent works."""
        said = self.cleaned_data
        same = ("task", "agent", "recipe", "provider", "mode", "model")
        limits = {"timeout_s": said["timeout"], "budget_usd": said["budget"]}
        return {name: said[name] for name in same} | limits


def filled_from(run: Run) -> tuple[dict[str, Any], list[str]]:
    """What the form says of an earlier run, and the parts of its order that it cannot say."""
    order, default = run.order, Order(task="").stored()
    left_out = sorted(
        name
        for name, value in _of_this_version(run).items()
        if name not in _SAID and value != default[name]
    )
    mode, workdir = str(order.get("mode", "")), str(order.get("workdir", ""))
    place, below = _place_of(workdir)
    where = {"place": place, "below": below} if place else {}
    if not place:
        left_out.append("workdir")
    if mode not in MODES:
        left_out.append("mode")
    timeout_s = order.get("timeout_s")
    found = {
        "task": run.task,
        "agent": order.get("agent") or run.agent,
        "provider": order.get("provider"),
        "recipe": order.get("recipe"),
        "mode": mode if mode in MODES else "sealed",
        "model": order.get("model"),
        "timeout": f"{timeout_s}s" if timeout_s else "15m",
        "budget": order.get("budget_usd"),
    }
    return found | where, left_out


def _of_this_version(run: Run) -> dict[str, Any]:
    try:
        return restored(run.order, run.task).stored()
    except msgspec.ValidationError:
        return {}


def _place_of(workdir: str) -> tuple[str, str]:
    """The nearest place that is offered, and what lies below it."""
    try:
        if work_roots.root_of(workdir) is None:
            return "", ""
    except Refusal:
        return "", ""
    above = [each for each in work_roots.workable()[0] if f"{workdir}/".startswith(f"{each}/")]
    place = max(above, key=len, default="")
    return place, workdir[len(place) :].strip("/")


def _providers() -> Choices:
    return [
        (name, name if has_key(provider) else f"{name} (the site knows no key)")
        for name, provider in providers.usable()[0].items()
    ]


def _usual() -> tuple[str, str]:
    """An agent and a provider that work together: the scripted model while there is no key."""
    known = providers.usable()[0]
    named = known.get(settings.SANDUK_PROVIDER)
    first = settings.SANDUK_AGENT or DEFAULT_AGENT
    if named is not None and has_key(named):
        return first, named.name
    usual = (known[DEFAULT_PROVIDER], *known.values())
    keyed = [each for each in usual if each.key_env and has_key(each)]
    for name in (first, *agents.agent_names()) if keyed else ():
        spoken = set(agents.get_agent(name).protocols)
        for provider in keyed:
            if spoken & set(provider.protocols):
                return name, provider.name
    return first, REHEARSAL


def has_key(provider: Any) -> bool:
    """Whether the site knows a key for it, or it needs none."""
    if not provider.needs_key:
        return True
    try:
        return bool(provider.key_env and keys.source_of(provider.key_env))
    except Refusal:
        return False


def lacking(plan: Plan) -> str:
    """The provider that a run would call with no key; "" when nothing is lacking."""
    provider = plan.provider
    return provider.name if provider is not None and not has_key(provider) else ""


def _recipes() -> list[tuple[str, str, str]]:
    """Name, agent and description of each recipe that can be read."""
    found = []
    with seen_once():
        for name in recipes.recipe_names():
            try:
                recipe = recipes.load(name)
            except recipes.RecipeError:
                continue  # the page of recipes says what is wrong with it
            if name != LINK_RECIPE:
                found.append((name, recipe.agent, visible(recipe.description)))
    return found
