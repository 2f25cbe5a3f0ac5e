#!/bin/sh
# First process of every agent's container: entry LIMIT_SECONDS COMMAND...
# Exports what the host handed over by file, gives the command the task as its standard input, and
# ends it at the limit even if nobody on the host is left to do so.
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
limit=$1
shift
if command -v timeout >/dev/null 2>&1; then
    exec timeout -k 10 "$limit" "$@" </run/sanduk/stdin
fi
( sleep "$limit"; kill -KILL -1 ) >/dev/null 2>&1 &
exec "$@" </run/sanduk/stdin
