#!/bin/sh
# place-skills.sh SKILLS HOME DIRECTORY USER: put every skill below SKILLS into DIRECTORY, relative to
# the home. The directories that lead there are the user's own, so that it may add some; the skills
# are root's and read-only, so that it cannot change what a kit pins.
set -eu
skills=$1 home=$2 target=$2/$3 user=$4
mkdir -p "$target"
uid=$(id -u "$user")
cp -R "$skills/." "$target"
find "$home" ! -user "$uid" -exec chown -h "$uid" {} +
sh "${0%/*}/open-home.sh" "$home"
for skill in "$skills"/*; do
    placed=$target/${skill##*/}
    chown -R 0:0 "$placed"
    chmod -R a-w "$placed"
done
