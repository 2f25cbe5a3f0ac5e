"""The site's settings with a state directory of its own."""

import os
import tempfile

_home = os.environ.get("SANDUK_TEST_HOME") or tempfile.mkdtemp(prefix="sanduk-tests-")
os.environ["SANDUK_HOME"] = _home

from sanduk_site.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
