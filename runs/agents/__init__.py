"""Agents: one module each, behind the contract of `base`."""

from runs.agents.registry import agent_names, get_agent, plugin_problems

__all__ = ["agent_names", "get_agent", "plugin_problems"]
