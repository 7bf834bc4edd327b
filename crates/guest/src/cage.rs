//! What a guest may do to the host: read its files, and write to folders that were given to it, nothing else.
//!
//! Root in a guest can mount any folder of the host's (`mount -t hostfs`), and the kernel then does with it what the user who
//! started it may do. So the process that is the guest's kernel is confined by the host's kernel, before it starts.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// The newest rules that are asked for; an older kernel enforces those that it knows.
const RULES: ABI = ABI::V9;

/// What User-Mode Linux opens for its console. A guest's own root cannot open them: in a guest, a device's file is that of the
/// guest's device.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/ptmx", "/dev/pts"];

/// What would change files past Landlock, which knows neither permissions nor, before Linux 6.2, a change of length by name; and
/// io_uring, which no filter of system calls sees into. User-Mode Linux needs none of them.
#[cfg(target_arch = "x86_64")]
const NEVER: &[libc::c_long] = &[
    libc::SYS_truncate,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_io_uring_setup,
    463, // setxattrat
    466, // removexattrat
    469, // file_setattr
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER: &[libc::c_long] = &[];

/// What changes permissions, owners and times of any file that is the user's: Landlock does not know of these.
#[cfg(target_arch = "x86_64")]
const ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    452, // fchmodat2
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_utimensat,
];
#[cfg(not(target_arch = "x86_64"))]
const ATTRIBUTES: &[libc::c_long] = &[];

/// Why guests are not kept from writing to the files of the user who starts them, if this host's kernel cannot do that.
#[must_use]
pub fn unconfined() -> Option<String> {
    // Nothing comes of rules that are made and not entered.
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(ABI::V1))
        .and_then(Ruleset::create);
    made.is_err().then(|| {
        "this host's kernel has no Landlock, or it is switched off: a command in the guest that mounts the host's files can write to all that you can write to"
            .to_owned()
    })
}

/// Confines this thread and what it starts: it writes to `writable` only, reaches no network of the host's, and is told that the
/// host has no random numbers, so that a kernel makes its own from its command line. Only with `attributes` it may change
/// permissions, owners and times of files.
pub(crate) fn enter(writable: &[&Path], attributes: bool) -> io::Result<()> {
    forbid_writing(writable).map_err(io::Error::other)?;
    filter(attributes)
}

fn forbid_writing(writable: &[&Path]) -> Result<(), RulesetError> {
    let writes = AccessFs::from_write(RULES);
    // Each is as strict as the kernel at hand can be; `unconfined` says if that is not at all.
    Ruleset::default()
        .handle_access(writes)?
        .handle_access(AccessNet::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?
        .add_rules(path_beneath_rules(writable, writes))?
        .add_rules(path_beneath_rules(DEVICES, AccessFs::WriteFile | AccessFs::IoctlDev))?
        .restrict_self()
        .map(drop)
}

fn filter(attributes: bool) -> io::Result<()> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_| io::Error::other("User-Mode Linux runs on x86-64 only"))?;
    let apply = |calls: &[libc::c_long], errno: libc::c_int| {
        let filter = SeccompFilter::new(
            calls.iter().map(|call| (*call, Vec::new())).collect(),
            SeccompAction::Allow,
            SeccompAction::Errno(errno.cast_unsigned()),
            architecture,
        );
        let program: BpfProgram =
            filter.and_then(SeccompFilter::try_into).map_err(io::Error::other)?;
        seccompiler::apply_filter(&program).map_err(io::Error::other)
    };
    apply(&[libc::SYS_getrandom], libc::ENOSYS)?;
    let attributes = if attributes { &[] } else { ATTRIBUTES };
    apply(&[NEVER, attributes].concat(), libc::EPERM)
}
