#!/usr/bin/env bash
# Runs each fuzz target, or those that are named, for so many seconds, from the files that the project ships:
#
#   fuzz/run.sh SECONDS [TARGET...]
#
# What libFuzzer finds on the way is kept in fuzz/corpus and used by the next run; what breaks a target, in fuzz/artifacts.
# DUALQ_FUZZ_SEED makes a run start from that number; else each is another. Needs a nightly toolchain and a C++ compiler, not cargo-fuzz.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:?"usage: fuzz/run.sh SECONDS [TARGET...]"}
shift
mapfile -t all < <(sed -n 's|^path = "fuzz_targets/\(.*\)\.rs"$|\1|p' Cargo.toml)
targets=("${@:-${all[@]}}")

# seed TARGET NAME: standard input as a file that TARGET starts from.
seed() { mkdir -p "target/seeds/$1" && cat > "target/seeds/$1/$2"; }
# lines TARGET NAME: each line of standard input as one.
lines() {
    local line number=0
    mkdir -p "target/seeds/$1"
    while IFS= read -r line; do printf %s "$line" > "target/seeds/$1/$2-$((number += 1))"; done
}
# files TARGET FILE...
files() { local target=$1; shift; mkdir -p "target/seeds/$target" && cp "$@" "target/seeds/$target/"; }

rm -rf target/seeds
files sweep ../scenarios/*.toml
files scenario ../scenarios/*.toml
files results seeds/results/*.json
printf '%s\n' 'link.rate=10mbit,50mbit' 'link.rtt=5ms..50ms:log' 'link.qdisc=dualpi2 target {1ms..50ms} limit {1000,10000}' 'flow.1.cc=bbr' \
    'probe.p99 < 20ms, fairness > 0.8, max goodput' 'ci(probe.p99) < 5%' '3/16' | lines sweep_words word
printf "2\n4\n500\n" | seed rate_trace short
printf "0 0\n10000 0.15\n30000000 1\n" | seed sizes fractions
printf "1 1 0 # packets\n1460,50\n2e6\t100\n" | seed sizes percent
grep -hE '^(server|client)  ' ../docs/measure-protocol.md | sed 's/^[a-z]*  //' | lines measure_protocol message
files recipe ../tests/data/recipes/*.md
files machine_files ../tests/data/facts/*.json ../tests/data/facts/*.sysctl
# As `dualq plan --facts tests/data/facts/... --rate 48mbit -o -` wrote them.
files host_plan seeds/host_plan/*.toml
sed -n 's/^{"args": "\([^"\\]*\)".*/dualpi2 \1/p' ../tests/data/tc-dualpi2.jsonl | lines qdisc_line dualpi2
sed -n 's/^{"line":"\([^"\\]*\)".*/\1/p' ../tests/data/tc-cake.jsonl | lines qdisc_line cake
printf '%s\n' 'htb rate 9mbit leaf fq_codel' 'netem delay 20ms loss 1% limit 5000' 'fq maxrate 10mbit' \
    'tbf rate 10mbit burst 10kb latency 50ms leaf pie' 'codel target 5ms ecn' 'pfifo limit 5' | lines qdisc_line other
grep -oEh '[0-9.]+(k|m|g|kb|mb|kbit|mbit|gbit|bps|us|ms|s|h|min)\b' ../README.md ../docs/*.md | sort -u | lines units word
files trace ../tests/data/dualpi2-vectors/{steady_cbr,gso_memlimit}.trace.csv.xz
head -c 20000 ../examples/captures/two-hosts.pcap | seed trace two-hosts.pcap
printf 't_ns,len,truesize,ecn,class,gso_size\n0,1514,2282,1,-1,0\n100,9000,9999,0,2,1448\n' | seed trace lines.csv
# A pcapng of a section, an interface and a packet, whose numbers are little-endian.
printf '\n\r\r\n\x1c\0\0\0\x4d\x3c\x2b\x1a\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0'\
'\1\0\0\0\x14\0\0\0\x65\0\0\0\0\0\0\0\x14\0\0\0'\
'\6\0\0\0\x34\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x14\0\0\0\x14\0\0\0E\1\0\x14\0\0\0\0\x40\6\0\0\1\1\1\1\2\2\2\2\x34\0\0\0' \
    | seed trace packet.pcapng

# What cargo-fuzz would add for coverage; the sanitizers are left out, as the crates have no unsafe code.
export RUSTFLAGS="${RUSTFLAGS:-} --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
host=$(rustc -vV | sed -n 's/^host: //p')
# With a target given, build scripts are spared these flags.
cargo +nightly build --release --locked --quiet --target "$host" "${targets[@]/#/--bin=}"

# fuzz TARGET: whether nothing was found.
fuzz() {
    local target=$1 runs seeds
    mkdir -p "corpus/$target" "artifacts/$target" "target/seeds/$target"
    # A minute for one input is a hang.
    if "target/$host/release/$target" -seed="${DUALQ_FUZZ_SEED:-0}" -max_total_time="$seconds" -timeout=60 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="artifacts/$target/" "corpus/$target" "target/seeds/$target" > "artifacts/$target.log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "artifacts/$target.log")
        seeds=$(find "target/seeds/$target" -type f | wc -l)
        echo "$target: ${runs:-0} inputs, begun from $seeds shipped ones: nothing found"
    else
        echo "$target: FAILED; the input is in fuzz/artifacts/$target, what was said in fuzz/artifacts/$target.log:"
        grep -m 5 -E "panicked|ERROR|assertion|left:|right:" "artifacts/$target.log" || tail -5 "artifacts/$target.log"
        return 1
    fi
}
export host seconds
export -f fuzz
# One for each processor; all of them, also if one fails.
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'fuzz "$0"' || exit 1
