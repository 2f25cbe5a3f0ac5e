"""Delivers by e-mail, with Django's SMTP backend."""

from __future__ import annotations

import contextlib
import smtplib
import socket
import threading
from collections.abc import Iterator
from email.utils import format_datetime

from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend

from assistants.delivery.kinds import EmailSettings, secret_named
from assistants.delivery.parcel import Doubtful, Failed, Parcel
from runs.engines.process import printable


class _Handles(threading.local):
    """This thread's sockets, so that a server that says a letter a minute has its time, too."""

    def __init__(self) -> None:
        self.open: list[socket.socket] = []

    def append(self, handle: socket.socket) -> None:
        self.open.append(handle)

    @contextlib.contextmanager
    def shut_after(self, timeout_s: float) -> Iterator[None]:
        timer = threading.Timer(timeout_s, _shut, [self.open])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            while self.open:
                self.open.pop().close()


def _shut(handles: list[socket.socket]) -> None:
    for handle in handles:
        with contextlib.suppress(OSError):
            handle.shutdown(socket.SHUT_RDWR)


class _Kept(smtplib.SMTP):
    """Keeps a second handle of its socket: TLS takes the first one over."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        found: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]
        _handles.append(found.dup())
        return found


class _KeptSSL(smtplib.SMTP_SSL, _Kept):
    """The same, with TLS from the first byte on."""


_handles = _Handles()


class _Backend(EmailBackend):
    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        return _KeptSSL if self.use_ssl else _Kept


def send(parcel: Parcel, settings: EmailSettings, timeout_s: float) -> str:
    """Hand it to the mail server. Raises Failed, Doubtful.

    Every attempt has the same Message-ID, which mail programs tell doubles by.
    """
    connection = _Backend(
        host=settings.host,
        port=settings.port,
        username=settings.user,
        password=secret_named(settings.password_secret) if settings.password_secret else "",
        use_tls=settings.security == "starttls",
        use_ssl=settings.security == "tls",
        timeout=max(int(timeout_s), 1),
    )
    with _handles.shut_after(timeout_s):
        return _sent(parcel, settings, connection)


def _sent(parcel: Parcel, settings: EmailSettings, connection: EmailBackend) -> str:
    try:
        connection.open()
        if connection.connection is not None:
            connection.connection.ehlo_or_helo_if_needed()
    except smtplib.SMTPResponseException as exc:
        raise Failed(f"the mail server says {exc.smtp_code}", output=_said(exc)) from None
    except (OSError, smtplib.SMTPException) as exc:
        raise Failed(f"{settings.host}:{settings.port}: {printable(str(exc))}") from None
    try:
        connection.send_messages([_message(parcel, settings, connection)])
    except smtplib.SMTPRecipientsRefused as exc:
        code, said = next(iter(exc.recipients.values()))
        raise _refused(code, said.decode("utf-8", "replace")) from None
    except smtplib.SMTPResponseException as exc:
        raise _refused(exc.smtp_code, _said(exc)) from None
    except (OSError, smtplib.SMTPException) as exc:
        raise Doubtful(f"the mail server left in the middle: {printable(str(exc))}") from None
    finally:
        connection.close()
    return f"{settings.host} took it"


def _message(parcel: Parcel, settings: EmailSettings, connection: EmailBackend) -> EmailMessage:
    domain = settings.sender.rpartition("@")[2]
    return EmailMessage(
        subject=parcel.title,
        body=parcel.body,
        from_email=settings.sender,
        to=[settings.to],
        connection=connection,
        headers={
            "Message-ID": f"<{parcel.key}@{domain}>",
            "Date": format_datetime(parcel.created_at),
            "Auto-Submitted": "auto-generated",
            "X-Sanduk-Delivery": parcel.key,
        },
    )


def _refused(code: int, said: str) -> Failed:
    """5xx is for ever, 4xx for now (RFC 5321, section 4.2.1)."""
    return Failed(f"the mail server says {code}", output=said, lasting=code >= 500)


def _said(error: smtplib.SMTPResponseException) -> str:
    said = error.smtp_error
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else said
