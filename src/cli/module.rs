//! The arguments of `dualq module`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What is done with the module.
#[derive(Subcommand)]
pub(crate) enum ModuleCommand {
    /// Build the module for a kernel; does nothing if it is there
    #[command(after_help = BUILD_EXAMPLES)]
    Build(BuildArgs),

    /// Put the module that was built where the kernel finds it; through DKMS where that is installed
    #[command(after_help = INSTALL_EXAMPLES)]
    Install(InstallArgs),

    /// Say for which kernels a module was built and installed, by whom, whether it is signed, and whether it is loaded
    Status(StatusArgs),

    /// Take away all that install has put on the machine
    Remove(RemoveArgs),
}

const BUILD_EXAMPLES: &str = "\
Examples:
  For the running kernel, of the newest Linux source that the distribution has:
    dualq module build

  Of a release from kernel.org:
    dualq module build --source linux-7.3.tar.xz

  For a kernel that is not running, of headers that are elsewhere:
    dualq module build --headers /usr/src/linux-headers-6.12.9-amd64 \\
      --out ./module

What stands in the way is said first: headers, compiler, Secure Boot. No root privileges are needed. The module is kept below $XDG_CACHE_HOME/dualq/modules (~/.cache/dualq/modules).";

const INSTALL_EXAMPLES: &str = "\
Examples:
  What a user built for the running kernel, loaded at once:
    sudo dualq module install --from ~/.cache/dualq/modules/$(uname -r) --load

  What was built elsewhere, for one kernel only:
    sudo dualq module install --from ./module --no-dkms

Nothing is loaded without --load: the kernel loads the module when the first queue asks for it. All that is put on the machine is recorded, and `dualq module remove` takes it away.";

#[derive(Args)]
pub(crate) struct BuildArgs {
    /// Linux sources: a tree, a tarball, or a folder that was built before
    #[arg(long, value_name = "DIR|TARBALL")]
    pub(crate) source: Option<PathBuf>,

    /// The kernel's headers [default: /lib/modules/VERSION/build]
    #[arg(long, value_name = "DIR")]
    pub(crate) headers: Option<PathBuf>,

    /// The kernel, as `uname -r` says it [default: that of the headers, else the running one]
    #[arg(long, value_name = "VERSION", value_parser = release)]
    pub(crate) kernel_release: Option<String>,

    /// Where the folder is made
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct InstallArgs {
    /// A folder that was built [default: the one for that kernel]
    #[arg(long, value_name = "DIR", conflicts_with = "kernel_release")]
    pub(crate) from: Option<PathBuf>,

    /// The kernel, as `uname -r` says it [default: the running one]
    #[arg(long, value_name = "VERSION", value_parser = release)]
    pub(crate) kernel_release: Option<String>,

    /// Install the one file for the one kernel, even if DKMS is there
    #[arg(long)]
    pub(crate) no_dkms: bool,

    /// Load the module too
    #[arg(long, conflicts_with = "root")]
    pub(crate) load: bool,

    /// A folder that stands for /, such as that of an image
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct StatusArgs {
    /// A folder that stands for /
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RemoveArgs {
    /// Only what was installed for this kernel
    #[arg(long, value_name = "VERSION", value_parser = release)]
    pub(crate) kernel_release: Option<String>,

    /// A folder that stands for /
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
}

/// It becomes a part of paths.
fn release(text: &str) -> Result<String, String> {
    if dualq_module::is_version(text) {
        return Ok(text.to_owned());
    }
    Err("a kernel's release is what `uname -r` says, such as 6.12.9-amd64".to_owned())
}
