"""Fixtures of the tests of engines without an engine."""

from tests.runs.engines.fake_cli import fake_cli

__all__ = ["fake_cli"]
