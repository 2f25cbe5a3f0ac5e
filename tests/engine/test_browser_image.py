"""A browser in the box: the image has one, and it renders in a sealed run as every run is."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.engine.running import SCRIPTED, Installation, installed, told

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]
PAGE = """<html><body><p id="o">not run</p><script>
document.getElementById("o").textContent = "rendered " + 6 * 7
</script></body></html>"""
LOOK = f"""
cd /work
cat >page.html <<'END-OF-IT'
{PAGE}
END-OF-IT
python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 &
until python3 -c 'import socket; socket.create_connection(("127.0.0.1", 8123))' 2>/dev/null
do sleep 0.1; done
{{
    chromium --headless --dump-dom file:///work/page.html
    chromium --headless --dump-dom http://127.0.0.1:8123/page.html
    chromium --headless --screenshot=shot.png --window-size=390,844 file:///work/page.html
}} >seen 2>trouble
/usr/lib/chromium/chromium --headless --dump-dom file:///work/page.html >unboxed 2>&1
head -2 ~/.agents/skills/browser/SKILL.md | tail -1 >skill
df --output=size -k /dev/shm | tail -1 >shm
echo "$CHROME_BIN" >named
"""
END = """echo '{"type": "result", "ok": true, "text": "done"}'; exit"""


@pytest.fixture(scope="module")
def image(docker_ready: object) -> Iterator[str]:
    """The scripted agent's image with a browser. It stays: building it takes minutes."""
    with installed("docker") as made:
        done = made.sanduk(
            "image", "build", "--runtime", "docker", "-r", SCRIPTED, "--with-browser", "--json",
            limit_s=800,
        )  # fmt: skip
        assert done.code == 0, done
        tag: str = json.loads(done.out)["image"]
        yield tag


def test_it_renders_a_page_in_a_sealed_box(docker: Installation, image: str):
    done = docker.run(LOOK + END, "--browser", "--mode", "sealed")

    assert done.code == 0, done
    assert docker.row["image"] == image
    seen = (docker.work / "seen").read_text()
    assert seen.count('<p id="o">rendered 42</p>') == 2, (docker.work / "trouble").read_text()
    shot = (docker.work / "shot.png").read_bytes()
    assert (shot[:8], shot[16:24]) == (b"\x89PNG\r\n\x1a\n", bytes([0, 0, 1, 134, 0, 0, 3, 76]))
    # what the page of kits says: without the flag it does not start, and this is all the memory
    assert "No usable sandbox" in (docker.work / "unboxed").read_text()
    assert int((docker.work / "shm").read_text()) == 64 << 10
    assert (docker.work / "skill").read_text() == "name: browser\n"
    assert (docker.work / "named").read_text() == "/usr/bin/chromium\n"


def test_the_environment_is_enough_and_a_flag_goes_before_it(docker: Installation, image: str):
    assert docker.run(f"command -v chromium; {END}", SANDUK_BROWSER="1").code == 0
    assert docker.row["image"] == image
    assert docker.run(END, "--no-browser", SANDUK_BROWSER="1").code == 0
    without = docker.row["image"]
    assert docker.run(END, SANDUK_BROWSER="0").code == 0
    assert docker.row["image"] == without != image


def test_an_unset_variable_changes_nothing(docker: Installation):
    label = '{{index .Config.Labels "sanduk.kits"}}'
    assert docker.run(END).code == 0
    assert told("docker", "image", "inspect", "--format", label, docker.row["image"]).stdout == "\n"


def test_in_a_box_the_browser_reaches_no_more_than_the_box_does(docker: Installation, image: str):
    names = ("browser", "browser_reach", "browser_gone")
    done = docker.sanduk(
        "doctor", "--boundary", "--json", "--agent", "scripted-offline", "--engine", "docker",
        *(word for name in names for word in ("--probe", name)),
        limit_s=300, SANDUK_BROWSER="1",
    )  # fmt: skip

    assert done.code == 0, done
    found = {each["name"]: each["verdict"] for each in json.loads(done.out)["probes"]}
    assert found == dict.fromkeys(names, "held")
