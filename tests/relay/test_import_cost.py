from __future__ import annotations

import subprocess
import sys

HEAVY = ("uvicorn", "uvloop", "ssl", "msgspec", "zstandard", "brotli", "httptools", "asyncio")


def loaded(code: str) -> set[str]:
    program = f"import sys; {code}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    return set(done.stdout.split())


def test_importing_the_package_and_reading_a_provider_loads_nothing_heavy():
    assert loaded("import relay; relay.get_provider('anthropic'); relay.Ledger()") == set()


def test_every_public_name_can_be_imported():
    import relay

    for name in relay.__all__:
        assert getattr(relay, name) is not None


def test_decoders_are_loaded_only_for_answers_that_need_them():
    assert not {"brotli", "zstandard"} & loaded("import relay; relay.create_app")
