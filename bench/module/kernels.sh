#!/bin/sh
# Builds the module for the kernels of Debian's and Ubuntu's packages, each in a chroot of its suite with its own compiler, and prints the table of docs/module.md.
# With `--machines` some of Debian's kernels are also started in a virtual machine with the module in it (machine.sh), for recorded arrivals and for a plan (plan.sh).
#
#   kernels.sh [--machines] SOURCE
#
# SOURCE: Linux's source, a tree or a tarball. Needs root, mmdebstrap, curl, xz and the program target/debug/dualq; for --machines what machine.sh needs. Chroots
# and packages are kept in $DUALQ_BENCH (~/.cache/dualq-bench/module), 1 GB, with --machines 3 GB; nothing else on this machine is changed.
set -eu

machines=
if [ "$1" = --machines ]; then
    machines=yes
    shift
fi
source=$(realpath "$1")
here=$(cd "$(dirname "$0")/../.." && pwd)
keep=${DUALQ_BENCH:-$HOME/.cache/dualq-bench/module}
debian=http://deb.debian.org/debian
mkdir -p "$keep"

# What a folder of the mirror has: package, version and file, a line each.
packages() { # MIRROR SUITE
    list=$keep/$(echo "$1-$2" | tr -c 'a-z0-9.\n' _)
    if [ ! -s "$list" ]; then
        curl -sSf "$1/dists/$2/main/binary-amd64/Packages.xz" | xz -dc |
            awk '$1 == "Package:" { p = $2 } $1 == "Version:" { v = $2 } $1 == "Filename:" { print p, v, $2 }' > "$list"
    fi
    cat "$list"
}

# The newest package whose name is like that.
newest() { # MIRROR SUITE PATTERN
    packages "$1" "$2" | grep -E "^$3 " | sort -V -k 1 | tail -n 1
}

of_name() { # MIRROR SUITE NAME
    packages "$1" "$2" | awk -v name="$3" '$1 == name' | tail -n 1
}

unpack() { # MIRROR FILE INTO
    archive=$keep/$(basename "$2")
    [ -s "$archive" ] || curl -sSf -o "$archive" "$1/$2"
    # Where /lib is a link it stays one, which dpkg -x would replace.
    mkdir -p "$3"
    dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$3"
}

chroot_of() { # SUITE COMPILER
    root=$keep/$1
    [ -e "$root/usr/bin/make" ] && return
    rm -rf "$root"
    # A mirror may stand still for longer than its signature is valid.
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
        --include="$2,make,libc6-dev,libelf1,libssl3,zlib1g,pahole,kmod,xz-utils" "$1" "$root" $debian >&2
}

# The program, its libraries (a chroot may be older) and the source go in, the module comes out.
build() { # CHROOT HEADERS RELEASE
    rm -rf "$1/module"
    mkdir -p "$1/module/libraries"
    cp "$here/target/debug/dualq" "$1/module/"
    ldd "$here/target/debug/dualq" | grep -o '/[^ ]*' | xargs -I{} cp -L {} "$1/module/libraries/"
    mkdir -p "$1/module/source/net/sched"
    cp "$sources/Makefile" "$1/module/source/"
    cp "$sources/net/sched/sch_dualpi2.c" "$1/module/source/net/sched/"
    unshare --mount sh -c "mount -t proc proc $1/proc
        exec chroot $1 /module/libraries/ld-linux-x86-64.so.2 --library-path /module/libraries \
            /module/dualq module build --source /module/source --headers $2 --out /module/out" > "$keep/$3.log" 2>&1
}

# The two files that are needed, out of whatever it is.
sources=$keep/source
rm -rf "$sources"
mkdir -p "$sources/net/sched"
if [ -d "$source" ]; then
    cp "$source/Makefile" "$sources/"
    cp "$source/net/sched/sch_dualpi2.c" "$sources/net/sched/"
else
    tar -xf "$source" -C "$sources" --strip-components=1 --wildcards --no-wildcards-match-slash '*/Makefile' '*/net/sched/sch_dualpi2.c'
fi
version=$(awk -F' = ' '/^(VERSION|PATCHLEVEL|SUBLEVEL) =/ { printf "%s%s", dot, $2; dot = "." }' "$sources/Makefile")

echo "The source of Linux $version; $(date +%F)."
echo
echo '| kernel | from | built by | module | recorded arrivals | a plan |'
echo '|---|---|---|---|---|---|'
# Where the headers are, their package, the suite whose compiler builds, that compiler, and where the kernel itself is.
while read -r mirror suite pattern in compiler images; do
    case $pattern in '' | '#'*) continue ;; esac
    line=$(newest "$mirror" "$suite" "linux-headers-$pattern")
    [ -n "$line" ] || { echo "no linux-headers-$pattern in $suite" >&2; continue; }
    release=$(echo "$line" | sed 's/^linux-headers-//; s/ .*//')
    package=$(echo "$line" | cut -d ' ' -f 2)
    chroot_of "$in" "$compiler"
    root=$keep/$in
    common=$(echo "$release" | sed -E 's/-(amd64|generic)$//')
    for name in "linux-headers-$release" "linux-headers-$common-common" "linux-headers-$common" "linux-kbuild-$common" "linux-kbuild-$(echo "$common" | cut -d. -f1,2)"; do
        of_name "$mirror" "$suite" "$name" | while read -r _ _ file; do
            unpack "$mirror" "$file" "$root"
        done
    done
    by=$(chroot "$root" "$compiler" -dumpfullversion)
    made=no
    if build "$root" "/usr/src/linux-headers-$release" "$release"; then
        made="yes$(grep -q warning "$keep/$release.log" && echo ', warnings' || true)"
    fi
    proof='not tried' plan='not tried'
    if [ "$made" != no ] && [ -n "$machines" ] && [ "$images" = yes ]; then
        for name in "linux-image-$release" "linux-base-$release" "linux-binary-$release" "linux-modules-$release"; do
            of_name "$mirror" "$suite" "$name" | while read -r _ _ file; do
                unpack "$mirror" "$file" "$keep/images-$release"
            done
        done
        machine() { # LOG [PROGRAM]
            log=$keep/$release.$1.log
            shift
            "$here/bench/module/machine.sh" "$keep/images-$release" "$root/module/out/sch_dualpi2.ko" "$@" > "$log" 2>&1
        }
        machine arrivals && proof='as the engine, within chance' || proof='they differ, or it failed'
        machine plan "$here/bench/module/plan.sh" && plan='applied, and undone' || plan='it failed'
    fi
    echo "| $release | $suite, $package | gcc $by | $made | $proof | $plan |"
done << EOF
$debian bullseye 5\.10\.[0-9.-]+-amd64 bookworm gcc-12 no
http://archive.ubuntu.com/ubuntu jammy-updates 5\.15\.[0-9.-]+-generic bookworm gcc-12 no
$debian-security bookworm-security 6\.1\.[0-9.-]+-amd64 bookworm gcc-12 yes
http://archive.ubuntu.com/ubuntu noble-updates 6\.8\.[0-9.-]+-generic trixie gcc-14 no
$debian bookworm-backports 6\.12\.[0-9.]+\+deb12-amd64 bookworm gcc-12 no
$debian trixie 6\.12\.[0-9.]+\+deb13-amd64 trixie gcc-14 yes
$debian sid 7\.2\.[0-9.]+\+deb14-amd64 sid gcc-16 yes
$debian trixie-backports 7\.3\.[0-9.]+\+deb13-amd64 trixie gcc-14 yes
EOF
