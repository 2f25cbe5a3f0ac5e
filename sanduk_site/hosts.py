"""For which names the site answers, looked at before anything is: static files as well."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.utils.deprecation import MiddlewareMixin

HSTS = "max-age=31536000"
_ASKED_BY_MONITORS = ("/healthz", "/readyz")  # of this machine, by its own address


class KnownHosts(MiddlewareMixin):
    """Refuses every other name, and has browsers keep to https where the site's address is one."""

    def process_request(self, request: HttpRequest) -> None:
        host = request.get_host()  # raises DisallowedHost
        only = settings.SANDUK_HTTPS_HOSTS
        if not only or request.path in _ASKED_BY_MONITORS:
            return
        if not validate_host(split_domain_port(host)[0], only):
            raise DisallowedHost(f"pages are served at {settings.SANDUK_BASE_URL} alone")

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if settings.SANDUK_HTTPS_HOSTS:
            response.headers.setdefault("Strict-Transport-Security", HSTS)
        return response
