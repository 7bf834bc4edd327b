//! Disk images of Debian, made with mmdebstrap from Debian's packages, and kept.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

const MIRROR: &str = "http://deb.debian.org/debian";
const AGENT: &str = include_str!("../guest/agent");
/// On all of them: the kernel that Debian installs, and what the scenarios call.
const PACKAGES: &str = "udev,dbus,kmod,procps,iproute2,iputils-ping,openssh-server,linux-image-amd64,initramfs-tools,zstd,nftables,wireguard-tools";
/// The disk's size, most of which is never written.
const SIZE: &str = "2G";
/// A newer kernel of Debian's, as apt fetches it but does not install it yet; and of Linux's source what `dualq module build` reads.
const UPDATE: &str = r#"root=$1
fetch() { # INTO PACKAGE...
    into=$1
    shift
    mkdir -p "$root$into/partial"
    chroot "$root" apt-get -qq --download-only --no-install-recommends -t trixie-backports -o Dir::Cache::archives="$into" install "$@"
    rm -r "$root$into/partial" "$root$into/lock"
}
sed 's/ trixie / trixie-backports /' "$root/etc/apt/sources.list" >"$root/etc/apt/sources.list.d/backports.list"
chroot "$root" apt-get -qq update
fetch /root/update linux-image-amd64 linux-headers-amd64
fetch /source linux-source
mkdir "$root/root/linux"
dpkg-deb --fsys-tarfile "$root"/source/linux-source-*.deb | tar -xO --wildcards '*.tar.xz' |
    tar -xJ -C "$root/root/linux" --strip-components=1 --wildcards --no-wildcards-match-slash '*/Makefile' '*/net/sched/sch_dualpi2.c'
rm -r "$root/source"
"#;

/// What manages a machine's network, and by which init system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    Networkd,
    NetworkManager,
    Ifupdown,
    /// ifupdown and sysvinit: Debian without systemd.
    Sysvinit,
    /// The same with OpenRC in the place of sysv-rc, as far as that is from Alpine: sysvinit's process 1 starts it.
    Openrc,
    /// networkd, what DKMS builds with, and a newer kernel that is not installed yet.
    Dkms,
}

impl Image {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Networkd => "networkd",
            Self::NetworkManager => "networkmanager",
            Self::Ifupdown => "ifupdown",
            Self::Sysvinit => "sysvinit",
            Self::Openrc => "openrc",
            Self::Dkms => "dkms",
        }
    }

    const fn packages(self) -> &'static str {
        match self {
            Self::Networkd => "systemd-sysv,systemd-resolved",
            Self::NetworkManager => "systemd-sysv,network-manager",
            Self::Ifupdown => "systemd-sysv,ifupdown,dhcpcd-base",
            // Its init scripts check the root before they make it writable, and without `fsck.ext4` ask at the console what to do.
            Self::Sysvinit => "sysvinit-core,initscripts,e2fsprogs,ifupdown,dhcpcd-base",
            Self::Openrc => "sysvinit-core,initscripts,openrc,e2fsprogs,ifupdown,dhcpcd-base",
            // With openssl DKMS makes a key, and signs.
            Self::Dkms => "systemd-sysv,systemd-resolved,dkms,gcc,make,openssl,linux-headers-amd64",
        }
    }

    /// Whether systemd is there.
    pub const fn has_systemd(self) -> bool {
        !matches!(self, Self::Sysvinit | Self::Openrc)
    }

    const fn suite(self) -> &'static str {
        "trixie"
    }

    /// What is done in the new system's folder, $1, as root.
    fn set_up(self) -> String {
        let own = match self {
            Self::Networkd | Self::Dkms => {
                "printf '[Match]\\nName=en*\\n[Network]\\nDHCP=yes\\n' >\"$1/etc/systemd/network/10-lan.network\"\n\
                 chroot \"$1\" systemctl enable systemd-networkd"
            }
            // It makes a connection for every card by itself.
            Self::NetworkManager => "",
            Self::Ifupdown | Self::Sysvinit | Self::Openrc => {
                "printf 'auto lo\\niface lo inet loopback\\nallow-hotplug enp0s1\\niface enp0s1 inet dhcp\\n' >\"$1/etc/network/interfaces\""
            }
        };
        let agent = match self {
            Self::Sysvinit | Self::Openrc => {
                "echo 'ag:2345:respawn:/usr/local/sbin/bench-agent' >>\"$1/etc/inittab\""
            }
            _ => {
                "printf '[Unit]\\nAfter=systemd-udev-settle.service\\n[Service]\\nExecStart=/usr/local/sbin/bench-agent\\nRestart=always\\nRestartSec=1\\n[Install]\\nWantedBy=multi-user.target\\n' >\"$1/etc/systemd/system/bench-agent.service\"\n\
                 chroot \"$1\" systemctl enable ssh bench-agent"
            }
        };
        let update = if self == Self::Dkms { UPDATE } else { "" };
        format!(
            "set -eu\n\
             echo bench >\"$1/etc/hostname\"\n\
             echo '/dev/vda / ext4 errors=remount-ro 0 1' >\"$1/etc/fstab\"\n\
             install -m 755 agent \"$1/usr/local/sbin/bench-agent\"\n\
             install -d -m 700 \"$1/root/.ssh\"\n\
             install -m 600 ../key.pub \"$1/root/.ssh/authorized_keys\"\n\
             {own}\n\
             {update}\
             {agent}\n\
             sed -i 's/^MODULES=.*/MODULES=list/' \"$1/etc/initramfs-tools/initramfs.conf\"\n\
             printf 'virtio_pci\\nvirtio_blk\\next4\\n' >>\"$1/etc/initramfs-tools/modules\"\n\
             chroot \"$1\" update-initramfs -u\n"
        )
    }

    /// Where it is, once it is made.
    fn folder(self, cache: &Path) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (PACKAGES, self.packages(), self.suite(), self.set_up(), AGENT, SIZE).hash(&mut hasher);
        cache.join(format!("{}-{}-{:08x}", self.suite(), self.name(), hasher.finish() as u32))
    }

    /// Finds it in the cache, or makes it, which takes a minute.
    pub fn get(self, cache: &Path) -> Result<Built> {
        let folder = self.folder(cache);
        if !folder.is_dir() {
            eprintln!("making the image {}", folder.display());
            self.make(cache, &folder).with_context(|| format!("make the image {}", self.name()))?;
        }
        let versions = fs::read_to_string(folder.join("versions")).context("read versions")?;
        Ok(Built { folder, versions: versions.trim().to_owned() })
    }

    fn make(self, cache: &Path, folder: &Path) -> Result<()> {
        let work = cache.join(format!("new-{}-{}", self.name(), std::process::id()));
        fs::create_dir_all(&work)?;
        let made = self.make_in(&work).and_then(|()| Ok(fs::rename(&work, folder)?));
        if made.is_err() {
            let _ = fs::remove_dir_all(&work);
        }
        made
    }

    fn make_in(self, work: &Path) -> Result<()> {
        fs::write(work.join("agent"), AGENT)?;
        fs::write(work.join("set-up"), self.set_up())?;
        let root = work.join("root");
        call(
            // In mounts of its own: whatever is left of it, nothing of this machine is mounted where the folder is removed.
            Command::new("unshare")
                .current_dir(work)
                .args(["--mount", "timeout", "900", "mmdebstrap", "--quiet"])
                .args(["--mode=root", "--variant=minbase"])
                .arg(format!("--include={PACKAGES},{}", self.packages()))
                .args(
                    ["man", "doc", "locale"]
                        .map(|what| format!("--dpkgopt=path-exclude=/usr/share/{what}/*")),
                )
                .arg("--customize-hook=sh set-up \"$1\"")
                .arg(self.suite())
                .arg(&root)
                .arg(MIRROR),
        )?;
        for (start, name) in [("vmlinuz-", "vmlinuz"), ("initrd.img-", "initrd")] {
            let found = fs::read_dir(root.join("boot"))?
                .flatten()
                .find(|entry| entry.file_name().to_string_lossy().starts_with(start));
            fs::copy(found.context("no kernel was installed")?.path(), work.join(name))?;
        }
        let wanted = [
            "base-files",
            "linux-image-amd64",
            "systemd",
            "sysvinit-core",
            "openrc",
            "network-manager",
            "ifupdown",
            "dkms",
        ];
        let versions = call(
            Command::new("dpkg-query")
                .arg(format!("--admindir={}", root.join("var/lib/dpkg").display()))
                .args(["-W", "-f", "${db:Status-Status} ${Package} ${Version}\\n"])
                .args(wanted),
        );
        // Of those that are not there it says so, and fails.
        let versions = versions.or_else(|error| Ok::<_, anyhow::Error>(error.to_string()))?;
        let there = versions.lines().filter_map(|line| line.strip_prefix("installed "));
        fs::write(work.join("versions"), there.collect::<Vec<_>>().join(", "))?;
        let raw = work.join("disk.raw");
        call(Command::new("mkfs.ext4").args(["-q", "-d"]).arg(&root).arg(&raw).arg(SIZE))?;
        call(
            Command::new("qemu-img")
                .args(["convert", "-O", "qcow2"])
                .arg(&raw)
                .arg(work.join("disk.qcow2")),
        )?;
        fs::remove_file(raw)?;
        fs::remove_dir_all(root)?;
        Ok(())
    }
}

/// An image that is there.
#[derive(Clone, Debug)]
pub struct Built {
    pub folder: PathBuf,
    /// Of what matters in it.
    pub versions: String,
}

/// Runs a program to its end and gives what it said.
pub fn call(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("start {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}{complaint}({}: {command:?})", output.status);
    Ok(said)
}
