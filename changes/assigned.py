"""A password, key or token written down in the open: `password = "…"`, `TOKEN=…`, `//user:…@host`.

Shapes only, with no list of issuers; so what is plainly a place-holder, a name or a reference to
somewhere else is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from changes.added import Added
from changes.flag import Flag, Severity
from changes.risky_shape import is_test

_PER_FILE = 50  # flags; the rest is told as a number
_LONGEST = 20_000  # bytes of a line that are looked at; nobody assigns by hand behind them
_WORD = re.compile(
    rb"(?i)(passw(?:or)?d|passphrase|pwd|secret|api[_-]?key|access[_-]?key|auth[_-]?key"
    rb"|private[_-]?key|signing[_-]?key|encryption[_-]?key|token|credential)"
)
_VALUE = re.compile(
    rb"""(?P<rest>[\w.-]{0,40})["']?\]?\s{0,8}(?P<sign>:=|=>|==?|:)\s{0,8}"""
    rb"""[bruBRUfF]{0,2}(?:"(?P<double>[^"\r\n]{1,300})"|'(?P<single>[^'\r\n]{1,300})'"""
    rb"""|(?P<bare>[^\s"'#;,(){}\[\]]{1,300})(?=[\s;,]|$))"""
)
_URL = re.compile(
    rb"""(?i)(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}://(?P<user>[^\s/:@"'<>]{0,100})"""
    rb""":(?P<password>[^\s/@"'<>]{3,200})@"""
)
# after the word: it names where, how long or what kind, and is no secret itself
_ABOUT = re.compile(
    rb"(?i)s?[_.-]?(?:url|uri|name|field|type|path|file|dir|id|env|var|header|length|len|size|ttl"
    rb"|expir|prefix|suffix|regex|pattern|label|hint|help|title|text|placeholder|column|class"
    rb"|count|limit|policy|store|provider|manager|param|arg|key_id|endpoint|scope|algorithm|cost"
    rb"|usage|format|version|min|max|error|message|validator|ref|kind|ize)"
)
_REFERENCE = re.compile(
    rb"^\$[a-z_]|\$[{(]|<[a-z _-]+>|\{\{|%\(|%[sd]$|\{[\w.!:\[\]-]*\}|^[*x._-]+$|\.\.\.|://"
)
_HOLDER = re.compile(
    rb"change[-_ ]?(?:me|this|it)|example|placeholder|dummy|redacted|replace|insert|your|xxx|\*\*\*"
    rb"|sample|to-?do|fixme|fake|mock|not[-_ ]?a[-_ ]|somesecret|mysecret|mypassword|hidden|masked"
)
_NO_VALUE = frozenset(
    b"""password passwd passphrase pass pwd secret secrets token apikey key none null nil true false
    string str text bytes bool boolean int integer number optional any required default undefined
    test tests testing admin root user guest foo bar baz foobar foobarbaz value values inherit empty
    unset unknown postgres mysql redis rabbitmq minio local localhost secretstr object""".split()
)
_PLAIN_FILES = (
    ".env", ".ini", ".cfg", ".conf", ".properties", ".yml", ".yaml", ".sh", ".bash", ".zsh",
    ".netrc", ".npmrc", ".pypirc", ".tfvars", ".envrc", ".cnf",
)  # fmt: skip


def assigned(file: Added) -> Iterator[Flag]:
    """At most _PER_FILE flags of one file's added lines, one a line."""
    if file.binary:
        return
    name = file.changed.path.rsplit(b"/", 1)[-1].decode(errors="replace").casefold()
    plain = name.endswith(_PLAIN_FILES) or name.startswith((".env", "dockerfile", "containerfile"))
    severity: Severity = "low" if is_test(file.changed.path) else "medium"
    many = 0
    for number, line in file.lines:
        why = _why(line[:_LONGEST], plain)
        if not why:
            continue
        many += 1
        if many <= _PER_FILE:
            yield Flag("secret", severity, file.changed.path, number, why)
    if many > _PER_FILE:
        why = f"{many - _PER_FILE} more lines that look as if they gave a secret"
        yield Flag("secret", severity, file.changed.path, 0, why)


def _why(line: bytes, plain: bool) -> str:
    for word in _WORD.finditer(line):
        found = _VALUE.match(line, word.end())
        if found and _is_given(line, word, found, plain):
            return f"{word[0].decode().casefold()} seems to be given here, in the open"
    for url in _URL.finditer(line):
        if url["password"] != url["user"] and not _is_holder(url["password"]):
            return "an address with a password in it"
    return ""


def _is_given(line: bytes, word: re.Match[bytes], found: re.Match[bytes], plain: bool) -> bool:
    if _ABOUT.match(found["rest"]):
        return False
    value = found["double"] or found["single"]
    if value is None:
        value = found["bare"]
        # what is not quoted is code in most languages
        shouted = word[0].isupper() and line[word.end() + len(found["rest"]) :][:1] == b"="
        if not (plain or shouted) or len(value) < 8 or found["sign"] not in (b"=", b":"):
            return False
        if value[:1] in b"/~." or b"(" in value:
            return False
    if len(value) < 6 or len(set(value)) < 4 or _is_holder(value):
        return False
    if b" " in value.strip():
        return False  # words for people
    if word[0].lower().startswith((b"pass", b"pwd")):
        return True
    # a key or a token is hardly ever one word of small letters, which is a name
    return re.fullmatch(rb"[a-z_.:/-]+|[A-Z_]+|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*", value) is None


def _is_holder(value: bytes) -> bool:
    """Whether a value stands for one: a reference, a word such as "changeme", or a type."""
    small = value.strip().lower()
    if _REFERENCE.search(small) or _HOLDER.search(small):
        return True
    return re.sub(rb"[^a-z]", b"", small) in _NO_VALUE and not re.search(rb"[0-9]{4}", small)
