# What the scripts beside this share; they read it with `source`.
set -euo pipefail
# What a script begins with says how it is called.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \?//p' "$0"; exit ;; esac
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

# Makes sure that Rust can build for a target.
wants() {
    rustup target list --installed 2>/dev/null | grep -qx "$1" || rustup target add "$1" >&2 \
        || refuse "the target $1 is not there, and rustup cannot fetch it"
}

# What keeps paths of this machine out of what is built.
nameless() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo} sysroot
    sysroot=$(rustc --print sysroot)
    echo "--remap-path-prefix=$PWD=/dualq --remap-path-prefix=$cargo_home=/cargo --remap-path-prefix=$sysroot=/rust"
}

# Builds dualq for a target; prints where it is.
build() {
    local target=$1 flags
    architecture "$target" >/dev/null
    wants "$target"
    flags=$(nameless)
    # Rust brings the linker and C's start-up code for musl, so that no toolchain of the target is needed.
    [[ $target == "${host%-gnu}-musl" ]] || flags+=" -Clinker=rust-lld"
    RUSTFLAGS=$flags cargo build --quiet --locked --profile dist --target "$target" >&2
    echo "$target_dir/$target/dist/dualq"
}

# Builds the page, and the npm package with the engine, into a folder.
playground() {
    wants wasm32-unknown-unknown
    RUSTFLAGS=$(nameless) cargo run --quiet --locked --manifest-path playground/Cargo.toml -- "$1" >&2
}

# The program of this machine, which writes what all packages have: pages of the manual, completions, units.
native() {
    case $1 in
    "${host%%-*}"-*) build "$1" ;;
    *) build "${host%%-*}-unknown-linux-musl" ;;
    esac
}

# Puts what belongs beside the program into a folder: man/, completions/, units/, the engine for pages, and the licences of all that is inside.
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
    local page
    page=$(mktemp -d)
    playground "$page"
    install -m 644 "$page/npm/dualq.wasm" "$folder"
    rm -r "$page"
    cp LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$folder"
    packaging/sbom --licences >"$folder/LICENSES-OF-DEPENDENCIES"
}
