#!/bin/sh
# A stock kernel in a virtual machine with a module of dualq's installed, and a program in it: by default the tests of dualq-netlink, which send
# recorded arrivals through the kernel's dualpi2 and compare what it says in tc's words.
#
#   machine.sh IMAGES MODULE [PROGRAM [ARGUMENT...]]
#
# IMAGES: a folder into which the kernel's packages were unpacked (boot/vmlinuz-*, lib/modules/*); MODULE: sch_dualpi2.ko. A PROGRAM that ends in .sh is run
# by a shell in which `dualq` is a command. Needs qemu-system-x86_64, depmod, xz and a static busybox (BUSYBOX names it). The exit status is the program's.
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
kernel=$(ls "$images"/boot/vmlinuz-* "$images"/usr/lib/modules/*/vmlinuz 2>/dev/null | head -n 1)
modules=$(dirname "$(ls -d "$images"/lib/modules/*/kernel "$images"/usr/lib/modules/*/kernel 2>/dev/null | head -n 1)")
release=$(basename "$modules")

root=$(mktemp -d)
trap 'rm -rf "$root" "$root.cpio.gz"' EXIT
mkdir -p "$root"/bin "$root"/sbin "$root"/usr/bin "$root"/proc "$root"/sys "$root"/dev "$root"/tmp "$root"/run "$root"/etc "$root"/var/lib

program() { # FILE PATH
    mkdir -p "$root$(dirname "$2")"
    cp "$1" "$root$2"
    ldd "$1" | grep -o '/[^ ]*' | sort -u | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
}

cp "$busybox" "$root/bin/busybox"
for name in $("$busybox" --list | grep -vx busybox); do ln -s /bin/busybox "$root/bin/$name"; done
ln -s /bin/busybox "$root/sbin/modprobe"
program "$here/target/debug/dualq" /usr/bin/dualq
case $1 in
    *.sh)
        cp "$1" "$root/script"
        set -- sh /script
        ;;
    *) program "$1" "$1" ;;
esac
# The tests find their data where they were built.
mkdir -p "$root$here/tests" "$root$here/crates/netlink"
cp -r "$here/tests/data" "$root$here/tests/"

# What is wanted of the kernel beside the module; veth and dummy stand for network cards.
tree=$root/lib/modules/$release
mkdir -p "$tree/updates/dualq"
for list in "$modules"/modules.builtin* "$modules/modules.order"; do
    [ ! -e "$list" ] || cp "$list" "$tree/"
done
for name in veth dummy sch_htb sch_tbf sch_ingress sch_fq sch_cake sch_fq_codel; do
    found=$(cd "$modules" && find kernel -name "$name.ko*" | head -n 1)
    [ -n "$found" ] || continue
    mkdir -p "$tree/$(dirname "$found")"
    case $found in
        *.xz) xz -dc "$modules/$found" > "$tree/${found%.xz}" ;;
        *) cp "$modules/$found" "$tree/$found" ;;
    esac
done
cp "$module" "$tree/updates/dualq/sch_dualpi2.ko"
depmod -b "$root" "$release"

cat > "$root/init" <<EOF
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /run
for module in veth dummy; do modprobe \$module; done
echo "Linux \$(uname -r)"
cd $here/crates/netlink
$*
echo "exit status: \$?"
# What the kernel itself has to complain about.
dmesg | grep -E 'WARNING|BUG|Oops|dualpi2'
poweroff -f
EOF
chmod +x "$root/init"

(cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null | gzip -1) > "$root.cpio.gz"
# Its clock counts instructions: the host's load does not show, and waiting takes no time.
timeout "${LIMIT:-900}" qemu-system-x86_64 -accel tcg -cpu max -icount shift=0,sleep=off -m 2G -nographic -no-reboot -nic none \
    -kernel "$kernel" -initrd "$root.cpio.gz" -append "console=ttyS0 quiet panic=-1" < /dev/null | tee "$root/console"
grep -q '^exit status: 0' "$root/console"
