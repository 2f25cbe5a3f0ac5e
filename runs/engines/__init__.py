"""Engines: one module each, behind the contract of `base`."""

from runs.engines.registry import engine_names, get_engine

__all__ = ["engine_names", "get_engine"]
