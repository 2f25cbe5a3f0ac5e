"""Agents: one module each, behind the contract of `base`."""
