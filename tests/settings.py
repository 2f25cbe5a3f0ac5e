"""The site's settings with a state directory of its own."""

import os
import tempfile

_home = os.environ.get("SANDUK_TEST_HOME") or tempfile.mkdtemp(prefix="sanduk-tests-")
os.environ["SANDUK_HOME"] = _home

from sanduk_site.settings import *  # noqa: E402, F403

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    # a file, as in real life: threads with connections of their own meet its real locks
    DATABASES["default"]["TEST"] = {"NAME": f"{_home}/test.sqlite3"}  # noqa: F405

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
