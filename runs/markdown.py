"""An agent's Markdown as HTML that can do nothing: no markup of its own, no image, no script.

Control, bidirectional and zero-width characters are made visible first. A link goes to a web or
mail address and nowhere else, and where it goes stands beside its words.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from runs.visible import visible

RENDERED_MAX = 50_000  # characters: the worst of them take a second; the cut is visible
_SCHEMES = {"http", "https", "mailto"}
_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li",
    "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


def rendered(text: str) -> SafeString:
    """`text` as safe HTML, cut at RENDERED_MAX characters with a visible mark."""
    is_cut = len(text) > RENDERED_MAX
    made = _clean(visible(text[:RENDERED_MAX], lines=True))
    mark = f"<p><strong>[cut by sanduk after {RENDERED_MAX:,} characters]</strong></p>"
    return mark_safe(made + mark if is_cut else made)  # noqa: S308 - the sanitiser's own output


@functools.lru_cache(maxsize=32)  # a page is looked at again and again before it is decided on
def _clean(shown: str) -> str:
    made = nh3.clean(
        _MARKDOWN.render(shown),
        tags=_TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        allowed_classes={"span": {"sk-goes"}},
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
        attribute_filter=_only_outside,
    )
    # an entity may have become such a character again
    return visible(made, lines=True)


def _only_outside(tag: str, name: str, value: str) -> str | None:
    """No address within this site: one click on an agent's words must not lead into it."""
    if name != "href":
        return value
    return value if value.partition(":")[0].lower() in _SCHEMES else None


def _image(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """A picture is never fetched: its address could carry something out."""
    source = str(tokens[index].attrGet("src") or "")
    words = f"{tokens[index].content}: " if tokens[index].content else ""
    return f"<code>{escape(f'{words}picture not loaded, {source}')}</code>"


def _link_close(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """The end of a link, with where it leads unless its words say that."""
    opening = next((at for at in range(index - 1, -1, -1) if tokens[at].type == "link_open"), None)
    if opening is None:
        return "</a>"
    address = str(tokens[opening].attrGet("href") or "")
    words = "".join(each.content for each in tokens[opening + 1 : index])
    if words == address:
        return "</a>"
    return f'</a><span class="sk-goes"> (<code>{escape(address)}</code>)</span>'


def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.add_render_rule("image", _image)
    made.add_render_rule("link_close", _link_close)
    return made


_MARKDOWN = _parser()
