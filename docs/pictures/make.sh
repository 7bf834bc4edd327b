#!/usr/bin/env bash
# Draws the pictures of the README and of the gallery anew; CI calls it and looks whether anything changed.
# DUALQ names a program to draw them with; else it is built here.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [[ ! -v DUALQ ]]; then
    cargo build --release --quiet
    DUALQ=target/release/dualq
fi
# Its name stands in the pictures, as a part of the command.
drawn=target/pictures
mkdir -p "$drawn"
# The scenario, and which of its pictures tell most: the gallery shows the first, its page all of them.
while read -r scenario pictures; do
    rm -f "$drawn/$scenario"-*
    "$DUALQ" run "scenarios/$scenario.toml" --svg "$drawn" --quiet --no-progress
    for picture in $pictures; do
        cp "$drawn/$scenario-$picture.svg" docs/pictures/
    done
done <<'END'
narrow-vps comparison
ten-flows shares
lossy-lan comparison
gso-1g probe-ccdf
gso-10g probe-ccdf
coexistence shares
l4s shares sweep
prague-cubic queue-ccdf
recipe comparison sweep
rtt-unfair shares
rrul comparison
web completions completions-cdf
satellite comparison
overload comparison
ipsec-mtu completions
lte probe-ccdf
incast completions completions-cdf
END
