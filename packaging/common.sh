# What the scripts beside this share; they read it with `source`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
host=$(rustc -vV | sed -n 's/^host: //p')
target_dir=${CARGO_TARGET_DIR:-$root/target}
packages=${DUALQ_PACKAGES:-$target_dir/packages}
# Of the last commit: what is built again tomorrow has the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

refuse() { echo "error: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 0; }

# Debian's name of a target's machine.
architecture() {
    case $1 in
    x86_64-*) echo amd64 ;;
    aarch64-*) echo arm64 ;;
    *) refuse "$1 is no target that packages are made for: x86_64-unknown-linux-musl, aarch64-unknown-linux-musl" ;;
    esac
}

# Builds dualq for a target; prints where it is. No path of this machine is in it.
build() {
    local target=$1
    architecture "$target" >/dev/null
    rustup target list --installed 2>/dev/null | grep -qx "$target" || rustup target add "$target" >&2 \
        || refuse "the target $target is not there, and rustup cannot fetch it"
    local cargo_home=${CARGO_HOME:-$HOME/.cargo} sysroot
    sysroot=$(rustc --print sysroot)
    local flags="--remap-path-prefix=$root=/dualq --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$sysroot=/rust"
    # Rust brings the linker and C's start-up code for musl, so that no toolchain of the target is needed.
    [[ $target == "${host%-gnu}-musl" ]] || flags+=" -Clinker=rust-lld"
    RUSTFLAGS=$flags cargo build --quiet --locked --profile dist --target "$target" >&2
    echo "$target_dir/$target/dist/dualq"
}

# The program of this machine, which writes what all packages have: pages of the manual, completions, units.
native() {
    case $1 in
    "${host%%-*}"-*) build "$1" ;;
    *) build "${host%%-*}-unknown-linux-musl" ;;
    esac
}

# Puts what belongs beside the program into a folder: man/, completions/, units/, and the licences of all that is inside.
beside() {
    local dualq=$1 folder=$2
    mkdir -p "$folder"/{man,completions,units}
    "$dualq" man "$folder/man" >/dev/null
    local shell
    for shell in bash zsh fish; do "$dualq" completions "$shell" >"$folder/completions/dualq.$shell"; done
    "$dualq" completions nushell >"$folder/completions/dualq.nu"
    local unit
    for unit in service socket; do
        "$dualq" serve --unit "$unit" | sed 's,/usr/local/bin/dualq,/usr/bin/dualq,' >"$folder/units/dualq-serve.$unit"
    done
    cp LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$folder"
    packaging/sbom --licences >"$folder/LICENSES-OF-DEPENDENCIES"
}
