"""The link: forwards 127.0.0.1 in a run's network namespace to the relay's socket, and probes it.

One argument, a JSON object:

    socket          the relay's unix socket in this container
    port            where to listen on 127.0.0.1
    egress_socket   the egress door's socket, forwarded from 127.0.0.1:3128; null without one
    limit_s         seconds after which the link ends by itself
    host_addresses  addresses of the host, each tried with every port of host_ports
    host_ports      ports that are open on the host
    neighbours      [address, port] pairs of other containers
    name            a name that must not resolve; null where look-ups are allowed

The process becomes socat under a time limit. A process of its own prints one JSON line with what
it found and ends: see `probe.py`, which only that process loads, so that socat starts sooner.
"""

from __future__ import annotations

import json
import os
import sys

EGRESS_PORT = 3128
# A client may say everything and then listen, so a tunnel outlives its sending side; not for ever,
# as a client that is gone looks the same and costs a process.
EGRESS_PATIENCE_S = 60


class Order:
    """The argument, checked."""

    def __init__(self, text: str) -> None:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError("expected an object")
        self.socket = _path(data["socket"])
        self.port = _integer(data["port"], 1, 65535)
        self.limit_s = _integer(data["limit_s"], 1, 30 * 24 * 3600)
        egress = data.get("egress_socket")
        self.egress_socket = None if egress is None else _path(egress)
        self.name = None if data["name"] is None else str(data["name"])
        ports = [_integer(port, 1, 65535) for port in data["host_ports"]]
        addresses = [str(address) for address in data["host_addresses"]]
        self.host = [(address, port) for address in addresses for port in ports]
        self.neighbours = [
            (str(address), _integer(port, 1, 65535)) for address, port in data["neighbours"]
        ]


def _path(value: object) -> str:
    # socat gives `,`, `:`, `!` and quotes in an address a meaning of their own.
    plain = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")
    if isinstance(value, str) and value.startswith("/") and plain.issuperset(value):
        return value
    raise ValueError("a socket is an absolute path of letters, digits, dots, hyphens and _")


def _integer(value: object, low: int, high: int) -> int:
    if type(value) is int and low <= value <= high:
        return value
    raise ValueError(f"expected a whole number from {low} to {high}, not {value!r}")


def forward(port: int, path: str, limit_s: int, patience_s: float = 0.5) -> list[str]:
    """The command that forwards. Without nodelay every kept-alive call waits 43 ms.

    `patience_s`: how long one side may be silent once the other has said everything.
    """
    listen = f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,nodelay,backlog=512,max-children=512"
    socat = ["/usr/bin/socat", "-t", f"{patience_s:g}", listen, f"UNIX-CONNECT:{path}"]
    return ["/usr/bin/timeout", str(limit_s), *socat]


def in_own_process() -> bool:
    """Fork twice, so that init and not socat inherits the child. True in the grandchild."""
    if child := os.fork():
        os.waitpid(child, 0)
        return False
    if os.fork():
        os._exit(0)
    return True


def main(arguments: list[str]) -> None:
    try:
        (text,) = arguments
        order = Order(text)
    except (KeyError, TypeError, ValueError) as error:
        sys.exit(f"link: bad order: {type(error).__name__}: {error}")
    if in_own_process():
        sys.path.append(__file__.rpartition("/")[0])  # isolated, Python leaves it out
        from probe import probe  # type: ignore[import-not-found]

        found = probe(order.host, order.neighbours, order.name, order.port)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.exit()
    environment = {"PATH": "/usr/bin:/bin"}
    if order.egress_socket is not None and in_own_process():
        command = forward(EGRESS_PORT, order.egress_socket, order.limit_s, EGRESS_PATIENCE_S)
        os.execve(command[0], command, environment)  # noqa: S606
    command = forward(order.port, order.socket, order.limit_s)
    os.execve(command[0], command, environment)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
