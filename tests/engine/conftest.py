"""Fixtures of the tests that need an engine."""

from tests.engine.engine_fixtures import bench, rootless_home, skiff
from tests.engine.running import (
    agent_images,
    docker,
    docker_ready,
    installation,
    needs_root,
    podman_ready,
)

__all__ = [
    "agent_images",
    "bench",
    "docker",
    "docker_ready",
    "installation",
    "needs_root",
    "podman_ready",
    "rootless_home",
    "skiff",
]
