"""The hostile texts: what an agent may write, meant to act, to hide or to lead elsewhere."""

from __future__ import annotations

PWN = "window.__pwned=1;alert(1)"
ELSEWHERE = "http://203.0.113.7"
MARKUP = f"""<script>{PWN}</script><img src=x onerror="{PWN}"><svg onload="{PWN}"></svg>
# <b onmouseover="{PWN}">title</b> </title></textarea></script><script>{PWN}</script>

[go](javascript:{PWN}) [data](data:text/html,<script>{PWN}</script>) <javascript:{PWN}>
[vb](vbscript:x) [in](/admin/logout/) ![picture]({ELSEWHERE}/p.png) <img src="{ELSEWHERE}/q.png">
<style>* {{ display: none !important; background: url({ELSEWHERE}/s) }}</style>
<iframe src="{ELSEWHERE}"></iframe><form action="{ELSEWHERE}"><input autofocus onfocus="{PWN}">
<meta http-equiv="refresh" content="0;url={ELSEWHERE}"><base href="{ELSEWHERE}/">
<link rel="stylesheet" href="{ELSEWHERE}/l.css"><object data="{ELSEWHERE}"></object>
{{{{ settings.SECRET_KEY }}}} {{% debug %}} {{{{ 987000000|add:654321 }}}} ${{7*7}}
<!-- --> ]]> &lt;script&gt;
"""
UNSEEN = (
    "\x1b[2J\x1b]0;pwned\x07\x1b[31mred\x08\r\u202egnp.exe\u202c\u2066x\u2069 zero\u200bwidth\ufeff"
)
HOSTILE = MARKUP + UNSEEN
NAMES = [
    "two\nlines.md", f"<img src=x onerror={PWN.partition(';')[0]}>", "\x1b[31mred\u202e.md",
    "{{ 987000000|add:654321 }}", "'\"><script>alert(1)<",
]  # fmt: skip
