#!/bin/sh
# First process of a shell's container: shell LIMIT_SECONDS [COMMAND...]. Exports what the host
# handed over by file and becomes the command, or a shell; at the limit everything here ends, even if
# nobody on the host is left.
[ -r /run/sanduk/env ] && . /run/sanduk/env
if [ ! -w "${HOME:-/nonexistent}" ]; then
    HOME=/tmp/home
    mkdir -p "$HOME"
    export HOME
fi
if [ -n "$SANDUK_SKILLS" ]; then
    mkdir -p "$HOME/$SANDUK_SKILLS"
    cp -R /run/sanduk/skills/. "$HOME/$SANDUK_SKILLS/"
fi
[ -r /run/sanduk/home ] && ( . /run/sanduk/home )
( sleep "$1"; kill -KILL -1 ) </dev/null >/dev/null 2>&1 &
shift
[ $# -gt 0 ] && exec "$@"
for shell in bash sh; do
    if command -v "$shell" >/dev/null 2>&1; then
        SHELL=$(command -v "$shell")
        export SHELL
        exec "$shell"
    fi
done
