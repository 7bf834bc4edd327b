#!/bin/sh
# A stock kernel in a virtual machine with a module of dualq's, and a program in it: by default the tests of dualq-netlink, which send recorded
# arrivals through the kernel's dualpi2 and compare what it says in tc's words.
#
#   machine.sh IMAGES MODULE [PROGRAM [ARGUMENT...]]
#
# IMAGES: a folder into which the kernel's packages were unpacked (boot/vmlinuz-*, lib/modules/*); MODULE: sch_dualpi2.ko. Needs qemu-system-x86_64,
# busybox (static; BUSYBOX names another) and xz. The exit status is the program's.
set -eu

images=$1 module=$2
shift 2
busybox=${BUSYBOX:-$(command -v busybox)}
here=$(cd "$(dirname "$0")/../.." && pwd)
if [ $# = 0 ]; then
    tests=$(ls -t "$here"/target/debug/deps/rtnetlink-* | grep -v '\.d$' | head -n 1)
    # Without `DUALQ_IN_GUEST`, what a kernel lacks is skipped and said.
    set -- "$tests" --test-threads=1 --nocapture dualpi2 recorded_arrivals
fi
program=$1
kernel=$(ls "$images"/boot/vmlinuz-* "$images"/usr/lib/modules/*/vmlinuz 2>/dev/null | head -n 1)
modules=$(ls -d "$images"/lib/modules/*/kernel "$images"/usr/lib/modules/*/kernel 2>/dev/null | head -n 1)

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/bin "$root"/proc "$root"/sys "$root"/dev "$root"/tmp "$root"/modules "$root$here/tests"
cp "$busybox" "$root/bin/busybox"
# The tests find their data where they were built.
cp -r "$here/tests/data" "$root$here/tests/"
mkdir -p "$root$here/crates/netlink" "$root$(dirname "$program")"
cp "$program" "$root$program"
ldd "$program" | grep -o '/[^ ]*' | sort -u | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done

# What the program wants of the kernel; veth and dummy stand for its network cards.
for name in veth dummy sch_htb sch_tbf sch_ingress; do
    found=$(find "$modules" -name "$name.ko*" | head -n 1)
    case $found in
        '') ;;
        *.xz) xz -dc "$found" > "$root/modules/$name.ko" ;;
        *) cp "$found" "$root/modules/$name.ko" ;;
    esac
done
cp "$module" "$root/modules/sch_dualpi2.ko"

cat > "$root/init" <<EOF
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t tmpfs tmp /tmp
for module in /modules/*.ko; do /bin/busybox insmod \$module || echo "cannot load \$module"; done
echo "Linux \$(/bin/busybox uname -r): \$(/bin/busybox grep -c sch_dualpi2 /proc/modules) dualpi2, tainted \$(/bin/busybox cat /proc/sys/kernel/tainted)"
cd $here/crates/netlink
$*
echo "exit status: \$?"
# What the kernel itself has to complain about.
/bin/busybox dmesg | /bin/busybox grep -E 'WARNING|BUG|Oops|dualpi2' | /bin/busybox grep -v 'taints kernel'
/bin/busybox poweroff -f
EOF
chmod +x "$root/init"

(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) > "$root.cpio.gz"
trap 'rm -rf "$root" "$root.cpio.gz"' EXIT
timeout "${LIMIT:-900}" qemu-system-x86_64 -accel tcg -cpu max -icount shift=0,sleep=off -m 2G -nographic -no-reboot -nic none \
    -kernel "$kernel" -initrd "$root.cpio.gz" \
    -append "console=ttyS0 quiet panic=-1" < /dev/null | tee "$root/console"
grep -q '^exit status: 0' "$root/console"
