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
# The scenario, and which of its pictures tells most.
while read -r scenario picture; do
    rm -f "$drawn/$scenario"-*
    "$DUALQ" run "scenarios/$scenario.toml" --svg "$drawn" --quiet --no-progress
    cp "$drawn/$scenario-$picture.svg" docs/pictures/
done <<'END'
narrow-vps comparison
ten-flows shares
lossy-lan comparison
gso-1g probe-ccdf
gso-10g probe-ccdf
coexistence shares
l4s shares
prague-cubic queue-ccdf
recipe comparison
rtt-unfair shares
rrul comparison
web completions
satellite comparison
overload comparison
ipsec-mtu completions
lte probe-ccdf
incast completions
END
