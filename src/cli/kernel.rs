//! The arguments of `dualq kernel`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What is done with kernels.
#[derive(Subcommand)]
pub(crate) enum KernelCommand {
    /// Build a kernel from the distribution's sources or others; does nothing if it is there
    #[command(after_help = BUILD_EXAMPLES)]
    Build(BuildArgs),

    /// List the kernels that were built
    List(ListArgs),

    /// Remove kernels that were built
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(RemoveArgs),

    /// Run a command as root on a disposable machine with such a kernel, on this one's files
    #[command(after_help = EXEC_EXAMPLES)]
    Exec(ExecArgs),
}

const BUILD_EXAMPLES: &str = "\
Examples:
  The newest linux-source package of the distribution, on Debian also of a newer suite:
    dualq kernel build

  A release from kernel.org, a git tree:
    dualq kernel build --source linux-7.3.tar.xz
    dualq kernel build --source ~/src/linux

It takes some minutes and 3 GB of disk space meanwhile; the kernel itself has 8 MB. It is kept below $XDG_CACHE_HOME/dualq/kernels (~/.cache/dualq/kernels). No root privileges are needed.";

const REMOVE_EXAMPLES: &str = "\
Examples:
  dualq kernel remove 6.12.9
  dualq kernel remove --all";

const EXEC_EXAMPLES: &str = "\
Examples:
  What is there?
    dualq kernel exec -- ls /proc/sys/net/ipv4

  A real dualpi2, without root:
    dualq kernel exec -- sh -c 'ip link add d0 type dummy
      tc qdisc add dev d0 root dualpi2; tc -s qdisc'

  A folder that stands for /etc, as it is found again after a restart:
    mkdir -p etc/sysctl.d
    dualq kernel exec --etc ./etc -- sh -c \\
      'echo net.ipv4.tcp_ecn=1 > /etc/sysctl.d/90-ecn.conf'
    dualq kernel exec --etc ./etc -- sysctl --system

The machine sees this one's files, but can write only to /run, to that folder, and nowhere else. It has no network but what the command makes. Its clock begins in 1970 and jumps over all waiting. The exit status is the command's.";

#[derive(Args)]
pub(crate) struct ExecArgs {
    /// Which of the kernels that were built, by its version or name [default: the newest]
    #[arg(long, value_name = "VERSION")]
    pub(crate) kernel: Option<String>,

    /// A folder to be /etc, which may be written to
    #[arg(long, value_name = "DIR")]
    pub(crate) etc: Option<PathBuf>,

    /// What all that is random follows from; a start with another seed has another boot_id
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Args)]
pub(crate) struct BuildArgs {
    /// Linux sources: a tree, which is not written to, or a tarball
    #[arg(long, value_name = "DIR|TARBALL")]
    pub(crate) source: Option<PathBuf>,

    /// The version to build, or its first numbers: 7.3.4, 7.3
    #[arg(long, value_name = "V", value_parser = version)]
    pub(crate) version: Option<String>,

    /// Run so many compilers at once, or one for each CPU, if there are fewer [default: one for each CPU]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZero<usize>>,

    /// Show no progress bar, only a line a step
    #[arg(long)]
    pub(crate) no_progress: bool,
}

#[derive(Args)]
pub(crate) struct ListArgs {
    /// Print one JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RemoveArgs {
    /// The version, its first numbers, or the name of its folder
    #[arg(value_name = "VERSION", required_unless_present = "all")]
    pub(crate) version: Option<String>,

    /// Remove all of them
    #[arg(long, conflicts_with = "version")]
    pub(crate) all: bool,
}

fn version(text: &str) -> Result<String, String> {
    text.parse::<dualq_kernel::Version>()
        .map(|_| text.to_owned())
        .map_err(|()| "a version is numbers with points, such as 7.3 or 7.3.4".to_owned())
}
