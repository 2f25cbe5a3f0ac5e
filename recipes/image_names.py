"""Names of images, as engines read them: a wrong one fails only when the build has begun.

The grammar is that of https://github.com/distribution/reference.
"""

from __future__ import annotations

import re

_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
# what stands before the first slash is a registry only where it cannot be a part of the name
_REGISTRY = rf"(?:localhost|{_LABEL}(?:\.{_LABEL})+|{_LABEL}(?=:))(?::[0-9]{{1,5}})?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[+._-][A-Za-z][A-Za-z0-9]*)*:(?P<hash>[0-9a-f]{32,})"
_NAME = re.compile(
    rf"(?P<name>(?:{_REGISTRY}/)?{_PART}(?:/{_PART})*)(?P<tag>:{_TAG})?(?P<digest>@{_DIGEST})?"
)
_NAME_MAX = 255  # characters, without tag and digest
_ID = re.compile(r"sha256:[0-9a-f]{64}")
EXAMPLES = "node:22-slim or registry.example:5000/team/tool@sha256:..."


def is_image_name(text: str, *, digest: bool = True) -> bool:
    """Whether engines take this as the name of an image, or as the id of one.

    Args:
        digest: False for the name of something to be built, which nobody knows the digest of.
    """
    if _ID.fullmatch(text):
        return digest
    match = _NAME.fullmatch(text)
    if match is None or len(match["name"]) > _NAME_MAX:
        return False
    if match["digest"] is None:
        return True
    is_sha256 = match["digest"].startswith("@sha256:")
    return digest and (not is_sha256 or len(match["hash"]) == 64)
