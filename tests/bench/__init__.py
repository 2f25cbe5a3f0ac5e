"""Speed as ratios: every figure is measured beside its baseline, in the same run.

`make bench` prints them all; `python -m tests.bench NAME…` some of them, `--list` says which there
are. Absolute times mean nothing on a machine that others use too, so rounds are interleaved and
medians compared.
"""
