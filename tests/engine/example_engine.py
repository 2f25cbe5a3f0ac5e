"""An engine of somebody's own, whole: docs/engines.md shows this file.

skiff speaks docker's language but for a few words, as such tools do.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from runs.engines.base import ContainerSpec, EngineFacts, EngineUnavailable
from runs.engines.cli import CliEngine


class Skiff(CliEngine):
    name = "skiff"
    cli = "skiff"

    async def ready(self) -> EngineFacts:
        if shutil.which(self.cli) is None:
            raise EngineUnavailable("skiff is not installed: `sudo apt-get install skiff`")
        done = await self.call("version", "--format", "{{.Server.Version}}", timeout_s=10)
        if done.code != 0:
            raise EngineUnavailable(f"skiff does not answer: {done.stderr}")
        return EngineFacts(done.text, identity="skiff", rootless=False, operating_system="Linux")

    async def require_local(
        self, *, directory: Path | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        """skiff only ever starts containers on this machine."""

    def create_words(self, spec: ContainerSpec) -> list[str]:
        runtime = ["--runtime", spec.oci_runtime] if spec.oci_runtime else []
        return ["make", "--log-opt", "max-size=10m", *runtime]

    def network_words(self) -> list[str]:
        return ["--opt", "com.docker.network.bridge.enable_icc=false"]

    def build_words(self) -> list[str]:
        return ["assemble"]

    def remove_words(self) -> list[str]:
        return ["drop", "--now", "--volumes"]
