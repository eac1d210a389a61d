#!/bin/sh
# Makes localhost/longthread-base, an image to build Longthread's on, where no registry of images is reached: Debian with
# Python, from packages alone, without manuals and translations, as Debian's own slim images are.
#
#     sh deploy/make-base.sh [SUITE [MIRROR]]
#
# A machine of Debian's gives its own suite and sources, which the image keeps. Another one takes trixie from Debian's
# servers, and needs its keys (debian-archive-keyring). MIRROR is an address, or a file such as sources.list.
set -eu
image=localhost/longthread-base
suite=${1:-}
mirror=${2:-}

command -v mmdebstrap >/dev/null || { echo "mmdebstrap is missing. On Debian and Ubuntu: apt-get install mmdebstrap" >&2; exit 1; }
. /etc/os-release
if [ -z "$suite" ] && [ "$ID" = debian ]; then suite=$VERSION_CODENAME; fi
suite=${suite:-trixie}
if [ -z "$mirror" ] && [ "$ID" = debian ] && [ "$suite" = "$VERSION_CODENAME" ]; then
    for file in /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list; do
        if [ -z "$mirror" ] && [ -s "$file" ]; then mirror=$file; fi
    done
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
# Without usr-is-merged comes usrmerge, and with it 50 MB of Perl.
mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3,python3-venv,usr-is-merged \
    --hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-include=/usr/share/locale/locale.alias' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt='path-exclude=/usr/share/groff/*' --dpkgopt='path-exclude=/usr/share/lintian/*' \
    "$suite" "$folder/base.tar" ${mirror:+"$mirror"}

for engine in docker podman; do
    if command -v "$engine" >/dev/null && "$engine" info >/dev/null 2>&1; then
        "$engine" import "$folder/base.tar" "$image"
        exit
    fi
done
container=$(buildah --storage-driver vfs from scratch)
buildah --storage-driver vfs add --quiet "$container" "$folder/base.tar" / >/dev/null
buildah --storage-driver vfs commit --quiet --rm "$container" "$image" >/dev/null
echo "$image"
