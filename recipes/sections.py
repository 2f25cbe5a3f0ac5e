"""One section of a recipe as Containerfile instructions and context files.

The instructions are those every builder knows: the classic one, BuildKit and Buildah.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct

from recipes.files import FileContent
from recipes.placed import PlacedSection
from recipes.schema import Apt, Architecture, Archive, Binary, Copy, Npm, Pip, Run
from recipes.skills import MAIN, Download, PlacedSkill

SHARE = "/usr/local/share/sanduk"  # in the image; its `steps` are the scripts that made it

_PROLOGUE = """\
#!/bin/sh
set -eu
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
"""
_BY_MACHINE = """\
case "$(dpkg --print-architecture 2>/dev/null || uname -m)" in
"""
_NO_MACHINE = """\
*)
    echo "nothing to download for this architecture" >&2
    exit 1
    ;;
esac
"""
_FETCH = """\
curl --fail --silent --show-error --location --proto '=https' --proto-redir '=https' \\
    --retry 3 --output "$temporary/download" "$url"
found=$(sha256sum "$temporary/download")
found=${found%% *}
if [ "$found" != "$sha256" ]; then
    echo "$url: expected SHA-256 $sha256, found $found" >&2
    exit 1
fi
"""
_NO_ESCAPE = """\
if tar -tf "$temporary/download" | grep -Eq '^/|(^|/)\\.\\.(/|$)'; then
    echo "$url: holds a path that leaves the archive" >&2
    exit 1
fi
"""
_MACHINES: dict[Architecture, str] = {"amd64": "amd64 | x86_64", "arm64": "arm64 | aarch64"}


class Instructions(Struct, frozen=True):
    """Lines of a Containerfile, and the context files they read."""

    lines: tuple[str, ...]
    files: dict[str, FileContent] = {}


def instructions(placed: PlacedSection) -> Instructions:
    """What a section adds to the image."""
    section = placed.section
    if isinstance(section, Apt):
        return Instructions((_apt(section),))
    if isinstance(section, Npm):
        return Instructions((_npm(section),))
    if isinstance(section, Pip):
        words = ["pip", "install", "--no-cache-dir", *section.flags, *section.install]
        return Instructions(("RUN " + shlex.join(words),))
    if isinstance(section, Copy):
        return _copy(placed, section)
    if isinstance(section, Binary):
        script = _binary(section)
    elif isinstance(section, Archive):
        script = _archive(section)
    else:
        script = "\n".join(["#!/bin/sh", *section.lines, ""])
    return _step(placed, script)


def runs_as_agent(placed: PlacedSection) -> bool:
    return isinstance(placed.section, Run) and placed.section.user == "agent"


def exec_form(words: Sequence[str]) -> str:
    return json.dumps(list(words), ensure_ascii=False)


def _apt(section: Apt) -> str:
    return (
        "RUN apt-get update \\\n"
        " && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "
        f"{shlex.join(section.install)} \\\n"
        " && rm -rf /var/lib/apt/lists/*"
    )


def _npm(section: Npm) -> str:
    words = ["npm", "install", "--global", "--no-audit", "--no-fund", "--cache", "/tmp/npm-cache"]  # noqa: S108 in the image
    words += [*section.flags, *section.install]
    return f"RUN {shlex.join(words)} \\\n && rm -rf /tmp/npm-cache /root/.npm"


def _copy(placed: PlacedSection, section: Copy) -> Instructions:
    if placed.file is None:
        raise TypeError("a copy section is resolved together with its file")
    file = placed.file
    if isinstance(section.mode, str):
        file = FileContent(file.content, int(section.mode, 8))
    path = f"files/{placed.owner}/{section.name}"
    return Instructions((f"COPY {exec_form([path, section.to])}",), {path: file})


def fetched_skill(owner: str, skill: PlacedSkill, download: Download) -> Instructions:
    """Fetch and verify the one file of a skill that a kit does not hold."""
    place = f"{SHARE}/skills/{skill.name}"
    script = (
        f"{_PROLOGUE}url={shlex.quote(download.url)}\nsha256={download.sha256}\n{_FETCH}"
        f'mkdir -p {place}\ninstall -m 0644 "$temporary/download" {place}/{MAIN}\n'
    )
    path = f"steps/{owner}-skill-{skill.name}.sh"
    target = f"{SHARE}/{path}"
    return Instructions(
        (f"COPY {exec_form([path, target])}", f"RUN sh -eu {shlex.quote(target)}"),
        {path: FileContent(script.encode(), 0o755)},
    )


def held_skill(skill: PlacedSkill) -> Instructions:
    """The files of a skill that a kit holds: one COPY each, which every builder does right."""
    lines, files = [], {}
    for name, file in sorted(skill.files.items()):
        path = f"skills/{skill.name}/{name}"
        lines.append(f"COPY {exec_form([path, f'{SHARE}/{path}'])}")
        files[path] = file
    return Instructions(tuple(lines), files)


def _step(placed: PlacedSection, script: str) -> Instructions:
    name = f"{placed.owner}-{placed.section.name}.sh"
    path, target = f"steps/{name}", f"{SHARE}/steps/{name}"
    run = f"RUN sh -eu {shlex.quote(target)}"
    if runs_as_agent(placed):
        # What it leaves in the home is for the group 0 from the start: no second copy of it.
        run = f"RUN umask 0002 && sh -eu {shlex.quote(target)}"
    return Instructions(
        (f"COPY {exec_form([path, target])}", run), {path: FileContent(script.encode(), 0o755)}
    )


def _cases(rows: Mapping[Architecture, dict[str, str]]) -> str:
    """The branch of each architecture: its values as shell variables."""
    text = ""
    for architecture, values in sorted(rows.items()):
        text += f"{_MACHINES[architecture]})\n"
        text += "".join(f"    {key}={shlex.quote(value)}\n" for key, value in values.items())
        text += "    ;;\n"
    return _PROLOGUE + _BY_MACHINE + text + _NO_MACHINE + _FETCH


def _binary(section: Binary) -> str:
    rows = {
        architecture: {"url": artifact.url, "sha256": artifact.sha256}
        | ({"member": artifact.member} if isinstance(artifact.member, str) else {})
        for architecture, artifact in section.artifacts.items()
    }
    path = f"/usr/local/bin/{section.name}" if section.path is UNSET else str(section.path)
    install = f"mkdir -p {shlex.quote(path.rpartition('/')[0] or '/')}\n"
    if any("member" in row for row in rows.values()):
        unpack = '--extract --file "$temporary/download" --directory "$temporary/unpacked"'
        install += (
            'mkdir "$temporary/unpacked"\n'
            f'tar --no-same-owner {unpack} -- "$member"\n'
            f'install -m 0755 "$temporary/unpacked/$member" {shlex.quote(path)}\n'
        )
        return _cases(rows) + _NO_ESCAPE + install
    return _cases(rows) + install + f'install -m 0755 "$temporary/download" {shlex.quote(path)}\n'


def _archive(section: Archive) -> str:
    rows = {
        architecture: {
            "url": artifact.url,
            "sha256": artifact.sha256,
            "strip": str(artifact.strip),
        }
        for architecture, artifact in section.artifacts.items()
    }
    dest = shlex.quote(section.dest)
    text = (
        f"mkdir -p {dest}\n"
        'tar --no-same-owner --extract --file "$temporary/download" '
        f'--strip-components="$strip" --directory {dest}\n'
    )
    for link, target in section.links.items():
        parent = shlex.quote(link.rpartition("/")[0] or "/")
        text += f"mkdir -p {parent}\n"
        text += f"ln -s {shlex.quote(f'{section.dest}/{target}')} {shlex.quote(link)}\n"
    return _cases(rows) + _NO_ESCAPE + text
