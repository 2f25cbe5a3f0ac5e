"""Settings, from the environment only. Every variable is described in docs/operations.md."""

from __future__ import annotations

import datetime as dt
import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from sanduk_site import env

PACKAGE = Path(__file__).resolve().parent
PROJECT = PACKAGE.parent

try:
    SANDUK_HOME = env.state_home()
    DEBUG = env.flag("SANDUK_DEBUG")
    _modes = ("open", "key-safe", "sealed")
    SANDUK_DEFAULT_MODE = env.choice(
        "SANDUK_MODE", env.choice("SANDUK_DEFAULT_MODE", "sealed", _modes), _modes
    )
    SANDUK_RUNTIME = env.text("SANDUK_RUNTIME")
    # where no flag, repository or assistant says otherwise
    SANDUK_AGENT = env.text("SANDUK_AGENT")
    SANDUK_PROVIDER = env.text("SANDUK_PROVIDER")
    SANDUK_MODEL = env.text("SANDUK_MODEL")
    SANDUK_BROWSER = env.flag("SANDUK_BROWSER")
    SANDUK_BASE_URL = env.base_url("SANDUK_BASE_URL", "http://127.0.0.1:8000")
    # addresses of reverse proxies: only they may say for whom they ask, and over which scheme
    SANDUK_TRUSTED_PROXIES = env.words("SANDUK_TRUSTED_PROXIES")
    SANDUK_LEASE_SECONDS = env.integer("SANDUK_LEASE_SECONDS", 30, low=5, high=600)
    # wakeups, and runs asked for by the web, at one time
    SANDUK_MAX_RUNS = env.integer("SANDUK_MAX_RUNS", 2, low=1, high=200)
    # a worker that is told to stop gives what it runs so long to end by itself
    SANDUK_DRAIN_SECONDS = env.integer("SANDUK_DRAIN_SECONDS", 60, low=0, high=7 * 86400)
    SANDUK_REPORT_MAX_BYTES = env.integer(
        "SANDUK_REPORT_MAX_BYTES", 2 * 2**20, low=1024, high=64 * 2**20
    )
    SANDUK_MIN_FREE_MB = env.integer("SANDUK_MIN_FREE_MB", 64, low=0)
    SANDUK_BODIES_MAX_DAYS = env.integer("SANDUK_BODIES_MAX_DAYS", 30, low=1, high=36500)
    SANDUK_BODIES_MAX_MB = env.integer("SANDUK_BODIES_MAX_MB", 10_000, low=1)
    # a backup that is older, or none at all, is told of; 0: never
    SANDUK_BACKUP_DAYS = env.integer("SANDUK_BACKUP_DAYS", 7, low=0, high=36500)
    # below these the web may choose where an agent works, and nowhere else
    SANDUK_WORK_ROOTS = env.directories("SANDUK_WORK_ROOTS")
    # patterns of workspace files that no run shows its agent, besides those of --hide
    SANDUK_HIDE = env.words("SANDUK_HIDE")
    # what tests a change to a repository whose own rules name no test_command
    SANDUK_TEST_COMMAND = env.text("SANDUK_TEST_COMMAND")
    # where draft pull requests are made: GitHub's API, or that of a GitHub Enterprise server
    SANDUK_GITHUB_API = env.api_base("SANDUK_GITHUB_API", "https://api.github.com")
    # addresses the egress door may reach although they are private: for tests of the door
    SANDUK_EGRESS_ADMIT = env.words("SANDUK_EGRESS_ADMIT")
    # on whatever was chosen; off switches nothing off: `sanduk user four-eyes off` does, audited
    SANDUK_FOUR_EYES = env.flag("SANDUK_FOUR_EYES") if env.text("SANDUK_FOUR_EYES") else None
    ALLOWED_HOSTS = env.words("SANDUK_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
    if env.text("SANDUK_BASE_URL"):
        ALLOWED_HOSTS.append(env.host_of(SANDUK_BASE_URL))
    TIME_ZONE = env.time_zone("SANDUK_TIME_ZONE", "UTC")
    _mail_server = env.mail_server("SANDUK_EMAIL_URL")
    DEFAULT_FROM_EMAIL = env.text(
        "SANDUK_EMAIL_FROM", f"sanduk@{env.host_of(SANDUK_BASE_URL).strip('[]')}"
    )
    _secret_key = env.secret("SANDUK_SECRET_KEY")
    _database_url = env.secret("DATABASE_URL")
except env.BadSetting as exc:
    raise ImproperlyConfigured(str(exc)) from None

# The file is written by `sanduk_site.home.prepare`; before that, a key that lives as long as
# this process is enough, because nothing has been signed yet.
_key_file = SANDUK_HOME / "secret_key"
try:
    _stored_key = _key_file.read_text().strip()
except FileNotFoundError:
    _stored_key = ""
except NotADirectoryError:
    raise ImproperlyConfigured(f"SANDUK_HOME {SANDUK_HOME} is not a directory") from None
except (OSError, UnicodeDecodeError) as exc:
    reason = exc.strerror if isinstance(exc, OSError) else "it is no text"
    raise ImproperlyConfigured(f"{_key_file} cannot be read: {reason}") from None
else:
    if not _stored_key:
        raise ImproperlyConfigured(f"{_key_file} is empty; remove it, and a new key is made")
SECRET_KEY = _secret_key or _stored_key or secrets.token_urlsafe(48)
SANDUK_KEY_IS_PASSING = not (_secret_key or _stored_key)

# immediate transactions: a reader that turns writer must wait instead of failing at once
_SQLITE = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}
try:
    DATABASES = {
        "default": dj_database_url.parse(
            _database_url or f"sqlite:///{quote(str(SANDUK_HOME / 'sanduk.sqlite3'))}",
            conn_health_checks=True,
        )
    }
except ValueError:
    # its value may hold a password
    raise ImproperlyConfigured("DATABASE_URL is no address of a database") from None
_DRIVERS = ("psycopg", "psycopg2")
if DATABASES["default"]["ENGINE"].endswith("postgresql") and not any(map(find_spec, _DRIVERS)):
    raise ImproperlyConfigured(
        "DATABASE_URL names PostgreSQL, and Python's driver for it is not installed: "
        "pip install 'sanduk[postgres]'"
    )
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {**_SQLITE, **DATABASES["default"].get("OPTIONS", {})}

INSTALLED_APPS = [
    # without autodiscovery, which would cost every command the import of all admin pages
    "sanduk_site.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "django_q",
    "runs",
    "assistants",
    "changes",
    "sanduk_site",
]
MIDDLEWARE = [
    "sanduk_site.hosts.KnownHosts",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "sanduk_site.sessions.EndedSessions",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "sanduk_site.urls"
ASGI_APPLICATION = "sanduk_site.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # a checkout keeps them at the top level, the wheel inside this package
        "DIRS": [d for d in (PROJECT / "templates", PACKAGE / "templates") if d.is_dir()],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
# runs/queue.py says why; sanduk_site/checks.py sees that what must hold does
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "queue": {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": str(SANDUK_HOME / "cache" / "queue"),
    },
}
Q_CLUSTER: dict[str, Any] = {
    "name": "sanduk",
    "orm": "default",
    "workers": 2,
    "timeout": 300,
    "retry": 360,
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "poll": 1,
    "bulk": 1,
    "guard_cycle": 0.5,
    "save_limit": 250,
    "cache": "queue",
    "log_level": "WARNING",
    "ALT_CLUSTERS": {
        "runs": {
            "workers": SANDUK_MAX_RUNS,
            "queue_limit": 1,
            "recycle": 1,
            "timeout": 8 * 86400,
            "retry": 9 * 86400,
            "scheduler": False,
        }
    },
}
# notices to people go through it; without one none is sent
SANDUK_SENDS_MAIL = bool(_mail_server)
globals().update(_mail_server)
EMAIL_TIMEOUT = 10
STATIC_URL = "static/"
# found where the packages keep them: nothing to collect, nothing to forget
WHITENOISE_USE_FINDERS = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

# who may come in
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS: list[dict[str, Any]] = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "/"
# five wrong guesses at one name from one address: a stranger locks out themselves alone
AXES_FAILURE_LIMIT = 5
AXES_LOCKOUT_CALLABLE = "sanduk_site.throttle.locked_out"
AXES_COOLOFF_TIME = dt.timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_ENABLE_ADMIN = False
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False

# what a browser may be told and may do
_IS_HTTPS = SANDUK_BASE_URL.startswith("https:")
# with https its cookies go nowhere else: no page is served under another name that was not given
SANDUK_HTTPS_HOSTS = (
    [env.host_of(SANDUK_BASE_URL), *env.words("SANDUK_ALLOWED_HOSTS")] if _IS_HTTPS else []
)
CSRF_TRUSTED_ORIGINS = [SANDUK_BASE_URL]
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "sanduk_session", "sanduk_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _IS_HTTPS
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = ["sanduk_site.formats"]

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "sanduk_site.logs.Line",
            "fmt": "{levelname} {name}: {message}",
            "style": "{",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
}
