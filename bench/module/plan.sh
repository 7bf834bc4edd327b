# In a machine (machine.sh): a plan that relies on the module, applied and rolled back. All is as it was, but for dualq's own records.
set -e

state() {
    lsmod | sort | cut -d ' ' -f 1
    find /etc /lib -type f | sort | xargs sha256sum
    for key in net/core net/ipv4; do grep -r . /proc/sys/$key 2>/dev/null; done | grep -vE 'random|fib_|icmp_ratelimit|inet_peer' | sort
    dualq doctor | sed -n '/^interface/,/^$/p'
}

ip link add d0 type dummy
ip link set d0 up
ip addr add 10.0.0.1/24 dev d0
ip route add default via 10.0.0.2
dualq module status
dualq doctor --json | grep '"dualpi2": "module"'
dualq plan --dev d0 --rate 50mbit --rtt 40ms --tunnel -o /tmp/plan.toml 2> /dev/null | grep '^+root htb .* leaf dualpi2'
state > /tmp/before
dualq apply /tmp/plan.toml
lsmod | grep sch_dualpi2
dualq rollback
state > /tmp/after
diff /tmp/before /tmp/after
echo 'all is as it was'
