"""How much of a call is the relay: beside a direct call, nginx, and the first program.

    python -m tests.bench relay          all parts
    python -m tests.bench relay-calls    one of them; `python -m tests.bench --list` names them

Every subject, the client and the fake provider run in a process of their own, all on this
machine. Rounds are interleaved: each visits every subject once, in an order that rotates.
nginx neither parses nor meters; the first program is a black box of the package index.
"""
