#!/bin/sh
# Gets the headers of Debian's kernels 6.1 and 6.12, installs nothing, and prints their folders with a colon between, as DUALQ_MODULE_HEADERS has them.
#
#   headers.sh FOLDER
#
# Needs apt and Debian's keyring; to build with them, gcc, make, pahole and libelf. FOLDER is not there yet, and is 180 MB then.
set -eu

mkdir "$1"
folder=$(realpath "$1")
mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/packages"
key=/usr/share/keyrings/debian-archive-keyring.gpg
# Programs of bookworm's packages run on later releases too.
for suite in bookworm bookworm-backports; do
    echo "deb [signed-by=$key] http://deb.debian.org/debian $suite main"
done > "$folder/sources.list"

own() { # PROGRAM ARGUMENT...
    program=$1
    shift
    # A mirror may stand still for longer than its signature is valid.
    "$program" -o Dir::Etc::sourcelist="$folder/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder/cache" \
        -o Acquire::Languages=none -o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any "$@"
}

own apt-get update -qq >&2
architecture=$(dpkg --print-architecture)
found=
for series in 6\\.1 6\\.12; do
    name=$(own apt-cache search --names-only "^linux-headers-$series\.[^a-z]*(deb12)?-$architecture\$" | cut -d ' ' -f 1 | sort -V | tail -n 1)
    [ -n "$name" ] || { echo "there are no headers of Linux $series for $architecture" >&2; exit 1; }
    parts=$(own apt-cache depends "$name" | awk '$1 == "Depends:" && $2 ~ /^linux-(headers|kbuild)-/ { print $2 }')
    # shellcheck disable=SC2086 # Names have no spaces.
    (cd "$folder/packages" && own apt-get download -qq "$name" $parts >&2)
    found="$found:$folder/usr/src/$name"
done
for package in "$folder/packages"/*.deb; do
    dpkg-deb -x "$package" "$folder"
done
# They name each other by where they would be installed.
sed -i "s,/usr/src/,$folder/usr/src/," "$folder"/usr/src/linux-headers-*-"$architecture"/Makefile
rm -r "$folder/packages" "$folder/lists" "$folder/cache"
echo "${found#:}"
