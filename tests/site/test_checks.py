"""What `manage.py check` finds, and that each id stands in the operations page."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sanduk_site import checks

ROOT = Path(__file__).resolve().parents[2]


def ids(found) -> list[str]:
    return [message.id for message in found]


@pytest.fixture
def home(tmp_path, settings) -> Path:
    settings.SANDUK_HOME = tmp_path / "home"
    settings.SANDUK_HOME.mkdir(mode=0o700)
    return settings.SANDUK_HOME


def test_a_private_home_on_a_local_disk_is_fine(home):
    assert checks.check_home() == []


def test_a_home_that_does_not_exist_yet_is_fine(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "later"
    assert checks.check_home() == []


def test_a_home_others_can_read_is_a_warning_with_the_command(home):
    home.chmod(0o755)
    (found,) = checks.check_home()
    assert found.id == "sanduk.W001"
    assert f"chmod 700 {home}" in found.hint


def test_a_file_where_the_home_should_be_is_an_error(tmp_path, settings):
    settings.SANDUK_HOME = tmp_path / "file"
    settings.SANDUK_HOME.touch()
    assert ids(checks.check_home()) == ["sanduk.E001"]


def test_sqlite_on_a_network_file_system_is_an_error(home, settings, monkeypatch):
    monkeypatch.setattr(checks, "file_system", lambda path: "nfs4")
    settings.DATABASES["default"]["ENGINE"] = "django.db.backends.sqlite3"
    assert ids(checks.check_home()) == ["sanduk.E002"]


def test_the_file_system_of_proc_is_known():
    assert checks.file_system(Path("/proc/self")) == "proc"


def test_a_misspelt_variable_is_named_with_its_neighbour(monkeypatch):
    for name in [name for name in os.environ if name.startswith("SANDUK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SANDUK_HOEM", "/somewhere")
    (found,) = checks.check_variables()
    assert found.id == "sanduk.W002"
    assert found.hint == "Did you mean SANDUK_HOME?"


def test_an_unknown_engine_is_an_error(settings):
    settings.SANDUK_RUNTIME = "dokcer"
    (found,) = checks.check_engine()
    assert found.id == "sanduk.E003"
    settings.SANDUK_RUNTIME = "docker"
    assert checks.check_engine() == []


def test_debug_pages_on_a_reachable_site_are_an_error(settings):
    settings.DEBUG, settings.ALLOWED_HOSTS = True, ["box.example.com"]
    assert ids(checks.check_exposure()) == ["sanduk.E004"]
    settings.ALLOWED_HOSTS = ["localhost"]
    assert checks.check_exposure() == []


def test_a_secret_file_others_can_read_is_a_warning(tmp_path, monkeypatch):
    file = tmp_path / "key"
    file.write_text("not a real key")
    file.chmod(0o644)
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(file))
    assert "sanduk.W003" in ids(checks.check_secret_files())
    file.chmod(0o600)
    assert "sanduk.W003" not in ids(checks.check_secret_files())


def test_every_check_id_and_every_variable_stands_in_the_operations_page():
    page = (ROOT / "docs" / "operations.md").read_text()
    source = (ROOT / "sanduk_site" / "checks.py").read_text()
    for found in re.findall(r'id="(sanduk\.[EW]\d+)"', source):
        assert found in page, found
    for name in checks.VARIABLES:
        assert name in page or name.removesuffix("_FILE") in page, name


def test_every_variable_the_code_reads_is_known_to_the_check():
    read = set()
    for folder in ("sanduk_site", "runs", "relay", "recipes", "assistants", "changes"):
        for file in (ROOT / folder).rglob("*.py"):
            read |= set(re.findall(r'"(SANDUK_[A-Z_]+)"', file.read_text()))
    in_a_box = {"SANDUK_MODELS_JSON", "SANDUK_HERMES_CONFIG", "SANDUK_SKILLS"}
    in_a_destination = {
        f"SANDUK_{name}" for name in ("ASSISTANT", "RUN_ID", "DELIVERY_ID", "ITEM_ID")
    }
    assert read - in_a_box - in_a_destination <= checks.VARIABLES
