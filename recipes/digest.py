"""Image tags: the hash of everything a build reads, so that a tag never means two images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from recipes.render import BuildContext


def image_tag(
    context: BuildContext, build_args: Mapping[str, str], base_id: str | None = None
) -> str:
    """`sanduk-<recipe>:<12 hex digits>`.

    Args:
        build_args: as given to the engine.
        base_id: the engine's id of the base image, when it can tell: a newer base is another tag.
    """
    read = [
        ["Containerfile", context.containerfile],
        *(
            [path, f"{file.mode:o}", hashlib.sha256(file.content).hexdigest()]
            for path, file in sorted(context.files.items())
        ),
        ["build args", dict(sorted(build_args.items()))],
        ["base", base_id],
    ]
    # JSON keeps the parts apart: no two inputs are written the same.
    digest = hashlib.sha256(json.dumps(read).encode()).hexdigest()
    return f"sanduk-{context.recipe}:{digest[:12]}"
