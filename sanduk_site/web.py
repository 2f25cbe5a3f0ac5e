"""The process that answers browsers: uvicorn on a socket that the supervisor holds open."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import warnings

import uvicorn
from django.conf import settings
from django.db import DatabaseError, connection

from runs import host_states

GRACE_S = 5  # for answers under way; a page that follows a run never ends by itself
_PARENT_LOOK_S = 1.0
_WORKER_LOOK_S = 60.0
_log = logging.getLogger(__name__)


def serve(descriptor: int, parent: int) -> int:
    """Answer on an inherited listening socket until SIGTERM, or until `parent` is gone."""
    # whitenoise reads files in pieces that Django then gathers: small ones, each once per browser
    warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")
    proxies = settings.SANDUK_TRUSTED_PROXIES
    server = uvicorn.Server(
        uvicorn.Config(
            "sanduk_site.asgi:application",
            lifespan="off",
            log_config=None,
            access_log=False,  # an address may hold a one-time link
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies,
            timeout_graceful_shutdown=GRACE_S,
        )
    )
    watch = threading.Thread(target=_end_with_parent, args=(server, parent), daemon=True)
    watch.start()
    if settings.SANDUK_SENDS_MAIL:
        threading.Thread(target=_stand_in, daemon=True).start()
    server.run(sockets=[socket.socket(fileno=descriptor)])
    return 0 if server.started else 1


def _stand_in() -> None:
    """Send the notices while the worker, which does it else, is away: that it is, before all."""
    while True:
        time.sleep(_WORKER_LOOK_S)
        send_for_the_worker()
        connection.close()  # this thread's own; it is wanted once a minute


def send_for_the_worker() -> int:
    """Send what is due when the worker is away; how many people were told."""
    from assistants import noticing

    try:
        return noticing.send_due() if host_states.is_worker_away() else 0
    except DatabaseError as exc:
        _log.warning("notices cannot be sent: %s", type(exc).__name__)
        return 0


def _end_with_parent(server: uvicorn.Server, parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_LOOK_S)
    server.should_exit = True
    time.sleep(2 * GRACE_S)
    os._exit(1)  # a view that hangs must not hold the address
