"""prime-agent 0.9.5, from its documents: it was not run here.

It is made from pi: the same model file and the same records. What differs is how the model file
names the key's variable, and that no flag of ours has an equivalent its documents know.
"""

from __future__ import annotations

from relay import Provider
from runs.agents.base import Agent, Launch, Request
from runs.agents.pi import MODELS_ENV, PiReader, base_url, models_json

KEY_ENV = "PRIME_RELAY_KEY"
QUIET = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}


class Prime(Agent):
    name = "prime"
    recipe = "prime"
    protocols = ("openai-chat", "anthropic-messages", "openai-responses")
    honours = frozenset({"key_env", "base_url_env"})
    needs_model = True
    skills_dir = None  # its documents do not say where it looks for skills
    instructions_file = ".prime/agent/AGENTS.md"
    from_documents = True

    def task_argument(self, task: str) -> str:
        # pi takes @NAME for a file to read in, behind `--` too (measured at pi 1.6.0).
        return f"\n{task}" if task.startswith("@") else task

    def launch(
        self, request: Request, provider: Provider, *, task: str, root: str, credential: str
    ) -> Launch:
        model = request.model or provider.default_model
        argv = ["--print", "--mode", "json", "--no-session", "--model", f"sanduk/{model}"]
        argv += ["--", self.task_argument(task)]
        key_env, protocol = request.key_env or KEY_ENV, self.protocol(provider)
        env = {
            **QUIET,
            key_env: credential or "none",
            # The bare name: with `$` before it, as pi has it, the name itself was sent as the key.
            MODELS_ENV: models_json(provider, protocol, root, api_key=key_env, model={"id": model}),
        }
        if request.base_url_env:
            env[request.base_url_env] = base_url(provider, protocol, root)
        return Launch(tuple(argv), env)

    def reader(self) -> PiReader:
        return PiReader()
