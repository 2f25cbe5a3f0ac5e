"""Fixtures of the tests that need an engine."""

from tests.engine.engine_fixtures import bench, rootless_home

__all__ = ["bench", "rootless_home"]
