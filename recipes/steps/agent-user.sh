#!/bin/sh
# agent-user.sh USER HOME UID GID [INSTRUCTIONS TARGET]: make the agent's user, or give an existing
# one these ids (another account may have them too), its home and /work. With two more words, the
# file INSTRUCTIONS is put read-only at TARGET, relative to the home.
# The account files are written directly: not every base image has useradd.
set -eu
user=$1 home=$2 uid=$3 gid=$4
case "$uid$gid" in
'' | *[!0-9]*)
    echo "agent-user.sh: AGENT_UID and AGENT_GID must be numbers" >&2
    exit 1
    ;;
esac
if [ "$uid" = 0 ]; then
    echo "agent-user.sh: an agent never runs as uid 0" >&2
    exit 1
fi

awk -F: -v OFS=: -v name="$user" -v gid="$gid" '
    $1 == name { $3 = gid; seen = 1 }
    { print }
    END { if (!seen) print name, "x", gid, "" }' /etc/group >/etc/group.new
cat /etc/group.new >/etc/group
awk -F: -v OFS=: -v name="$user" -v uid="$uid" -v gid="$gid" -v home="$home" '
    $1 == name { $3 = uid; $4 = gid; $6 = home; seen = 1 }
    { print }
    END { if (!seen) print name, "x", uid, gid, "", home, "/bin/sh" }' /etc/passwd >/etc/passwd.new
cat /etc/passwd.new >/etc/passwd
rm -f /etc/group.new /etc/passwd.new

mkdir -p "$home" /work
if [ "$#" -gt 4 ]; then
    target=$home/$6
    mkdir -p "${target%/*}"
    cp "$5" "$target"
    chmod 0444 "$target"
fi
find "$home" /work ! -user "$uid" -exec chown -h "$uid" {} +
sh "${0%/*}/open-home.sh" "$home"
sh "${0%/*}/open-home.sh" /work
