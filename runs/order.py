"""`Order`: everything a person asked of a run. It is stored with the run and holds no secret."""

from __future__ import annotations

from typing import Any

import msgspec

MODES = ("open", "key-safe", "sealed")


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What to run and how. Every field is plain data, so a worker can execute it later.

    `env` holds values that were typed in the clear; `env_names` are variables whose values the
    executing process takes from its own environment and which are never stored.
    """

    task: str
    workdir: str = "work"
    agent: str = ""
    recipe: str = ""
    kits: tuple[str, ...] = ()
    browser: bool | None = None  # whether the image has one; None: as is usual here
    image: str = ""
    containerfile: str = ""
    rebuild: bool = False
    runtime: str = ""
    oci_runtime: str = ""
    mode: str = "sealed"
    no_network: bool = False
    provider: str = ""  # empty: the usual one for the agent
    upstream: str = ""
    insecure_upstream: bool = False
    base_url: str = ""
    network: str = ""
    model: str = ""
    effort: str = ""
    max_turns: int | None = None
    allowed_tools: str = ""
    permission_mode: str = ""
    bare: bool = False
    agent_key_env: str = ""
    agent_base_url_env: str = ""
    report_instruction: bool = True
    mounts: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    env: dict[str, str] = {}
    env_names: tuple[str, ...] = ()
    cpus: float = 4
    memory: str = "4g"
    allow_models: tuple[str, ...] = ()
    max_tokens_cap: int | None = None
    allow_paths: tuple[str, ...] = ()
    max_calls: int | None = None
    max_body_mb: int | None = None
    budget_usd: float | None = None
    token_budget: int | None = None
    budget_strict: bool = False
    unpriced: str = ""
    allow_hosts: tuple[str, ...] = ()
    egress: str = "refuse"
    log_bodies: bool = False
    log_dir: str = ""
    upstream_key_env: str = ""
    upstream_idle_timeout_s: int | None = None
    skip_key_check: bool = False
    timeout_s: int = 900
    idle_timeout_s: int | None = None
    keep: bool = False
    key_of: int = 0  # the site user whose own key it is; 0: this installation's
    within_roots: bool = False  # named on the web: `workdir` must lie below SANDUK_WORK_ROOTS
    # instead of the agent: "tty", on the terminal of the executing process, or "pipe"; "agent" is
    # the agent's own interface on that terminal
    shell: str = ""
    seed: str = ""  # the first message there, as if it had been typed
    asks: bool = False  # there it asks before it acts, as it would by itself

    @property
    def mode_name(self) -> str:
        """The mode as pages and commands show it."""
        return "no-network" if self.no_network else self.mode

    @property
    def relayed(self) -> bool:
        return not self.no_network and self.mode != "open"

    def stored(self) -> dict[str, Any]:
        """What the run's row keeps; the task has a column of its own."""
        kept: dict[str, Any] = msgspec.to_builtins(self)
        del kept["task"]
        return kept


def restored(stored: dict[str, Any], task: str) -> Order:
    """The order of a stored run. Raises msgspec.ValidationError when it is of another version."""
    return msgspec.convert({**stored, "task": task}, Order)
