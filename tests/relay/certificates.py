"""Certificates that only a test trusts."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


def make_certificate(directory: Path, *names: str) -> Path:
    """Write `cert.pem` and `key.pem` for host names, and return their directory."""
    alternatives = ",".join(f"DNS:{name}" for name in names)
    command = (
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={names[0]} "
        f"-addext subjectAltName={alternatives} -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=directory, check=True, capture_output=True, timeout=60)
    return directory


def server_context(directory: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    return context
