#!/usr/bin/env bash
# Makes two-hosts.pcap anew: real Linux TCP, recorded where it arrives at a bottleneck.
#
#   sudo ./make-two-hosts.sh [OUTPUT]
#
# Needs root, iproute2, ethtool, tcpdump, ping, taskset and python3. All traffic stays inside three network namespaces that the
# script makes under names of its own and removes again, however it ends.
set -euo pipefail

output=$(realpath -m "${1:-$(dirname "$0")/two-hosts.pcap}")
seconds=3.2
rate=30mbit       # the bottleneck, between router and client
buffer=112500     # bytes: 30 ms of that rate
server=dualq-$$-server router=dualq-$$-router client=dualq-$$-client

if [[ $EUID -ne 0 ]]; then
    echo "${0##*/}: making network namespaces needs root" >&2
    exit 1
fi
for tool in ip tc ethtool tcpdump ping python3 taskset; do
    if ! command -v "$tool" >/dev/null; then
        echo "${0##*/}: $tool is not installed" >&2
        exit 1
    fi
done

work=$(mktemp -d)
cleanup() {
    trap - EXIT INT TERM HUP
    for namespace in "$server" "$router" "$client"; do
        if [[ -e /run/netns/$namespace ]]; then
            ip netns pids "$namespace" | xargs -r kill 2>/dev/null || true
            ip netns del "$namespace"
        fi
    done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# server --- router ===(30 Mbit/s)=== client
for namespace in "$server" "$router" "$client"; do
    ip netns add "$namespace"
    ip -n "$namespace" link set lo up
done
ip -n "$server" link add eth0 type veth peer name eth0 netns "$router"
ip -n "$client" link add eth0 type veth peer name eth1 netns "$router"
ip -n "$server" address add 10.1.0.1/24 dev eth0
ip -n "$router" address add 10.1.0.254/24 dev eth0
ip -n "$router" address add 10.2.0.254/24 dev eth1
ip -n "$client" address add 10.2.0.1/24 dev eth0
ip -n "$client" address add 10.2.0.2/24 dev eth0
for end in "$server eth0" "$router eth0" "$router eth1" "$client eth0"; do
    read -r namespace device <<<"$end"
    # One packet in the capture is to be one packet on the wire, checksums included.
    ip netns exec "$namespace" ethtool -K "$device" tso off gso off gro off tx off >/dev/null
    ip -n "$namespace" link set "$device" up
done
ip netns exec "$router" sysctl -qw net.ipv4.ip_forward=1
ip -n "$server" route add default via 10.1.0.254
ip -n "$client" route add default via 10.2.0.254
# One of the client's addresses asks for ECN, the other does not.
ip -n "$server" route add 10.2.0.2 via 10.1.0.254 features ecn
tc -n "$router" qdisc add dev eth1 root tbf rate "$rate" burst 3028 limit "$buffer"

cat >"$work/traffic.py" <<'PYTHON'
"""Everything that server and client send. Usage: traffic.py server SECONDS, or traffic.py client (runs until killed)"""
import signal
import socket
import sys
import threading
import time

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a word

SECONDS = float(sys.argv[2]) if sys.argv[1] == "server" else float("inf")
SERVER, CLIENT, CLIENT_ECN = "10.1.0.1", "10.2.0.1", "10.2.0.2"
BULK, VIDEO, FETCH = 5001, 5002, 5003


def bulk(destination, start):
    """A CUBIC download as fast as it goes."""
    time.sleep(start)
    with socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        sender.connect((destination, BULK))
        while True:
            sender.send(bytes(16384))


def video():
    """60 frames a second of 8 to 9 ECT(1) packets each, 5 Mbit/s, as a cloud game sends them."""
    with socket.socket(type=socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 1)
        due = time.monotonic()
        for frame in range(int(SECONDS * 60)):
            time.sleep(max(0.0, due - time.monotonic()))
            due += 1 / 60
            for _ in range(8 + frame % 2):
                sender.sendto(bytes(1200), (CLIENT, VIDEO))


def discard():
    with socket.create_server(("", BULK)) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=drain, args=(connection,), daemon=True).start()


def drain(connection):
    while connection.recv(1 << 16):
        pass


def answer():
    """A web server of few words: 20 kB for each connection."""
    with socket.create_server((SERVER, FETCH)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(bytes(20_000))


def fetch():
    time.sleep(0.6)  # until the server listens
    while True:
        try:
            with socket.create_connection((SERVER, FETCH)) as connection:
                connection.sendall(b"please")
                drain(connection)
        except ConnectionError:
            pass  # the server has ended
        time.sleep(0.08)


def listen_to_video():
    with socket.socket(type=socket.SOCK_DGRAM) as listener:
        listener.bind(("", VIDEO))
        while True:
            listener.recv(2000)


if sys.argv[1] == "server":
    tasks = [(answer,), (bulk, CLIENT, 0.1), (bulk, CLIENT_ECN, 0.6), (video,)]
else:
    tasks = [(discard,), (listen_to_video,), (fetch,)]
threads = [threading.Thread(target=task, args=rest, daemon=True) for task, *rest in tasks]
for thread in threads:
    thread.start()
threads[-1].join()  # the video ends after SECONDS, fetching never; what still runs then ends with the program
PYTHON

# Headers only (Ethernet, IPv4, TCP with timestamps): lengths are read from them. Only what goes towards the client.
# -Z root: tcpdump would become another user, who may not write into the temporary directory.
ip netns exec "$router" tcpdump -i eth0 -Q in -s 66 -n -U -Z root --time-stamp-precision=nano \
    -w "$work/two-hosts.pcap" ip 2>"$work/tcpdump.log" &
recorder=$!
until grep -q 'listening on' "$work/tcpdump.log"; do
    kill -0 "$recorder" 2>/dev/null || { cat "$work/tcpdump.log" >&2; exit 1; }
    sleep 0.05
done
# All senders share one processor: on two, packets could be stamped out of order.
ip netns exec "$client" taskset -c 0 python3 "$work/traffic.py" client &
sink=$!
sleep 0.4 # until the client listens
ip netns exec "$server" taskset -c 0 ping -q -i 0.05 -w 4 10.2.0.1 >/dev/null &
ip netns exec "$server" taskset -c 0 python3 "$work/traffic.py" server "$seconds"
kill -INT "$recorder"
wait "$recorder"
cat "$work/tcpdump.log"
if ! grep -q '^0 packets dropped by kernel' "$work/tcpdump.log"; then
    echo "${0##*/}: the recording has gaps; try again on a machine with less to do" >&2
    exit 1
fi
kill "$sink" 2>/dev/null || true
mv "$work/two-hosts.pcap" "$output"
chmod 644 "$output"
echo "wrote $output"
