"""The boundary suite: hostile probes in boxes made as every run's, and what became of them.

The box is `sanduk shell`'s: the plan, the mounts, the limits, the relay and the seal of a run. What
a probe must not reach stands on this host for the length of the suite (`ground`); the probes are
tried from inside (`inside`), and this side looks at what arrived (`suite`).
"""
