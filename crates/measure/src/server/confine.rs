//! What a server gives up before its first connection: it needs no files, no other programs, no more sockets.

use std::io;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetError, RulesetStatus,
    Scope,
};
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// The newest rules that are asked for; an older kernel enforces those that it knows.
const RULES: ABI = ABI::V9;
/// The user and group that own nothing.
const NOBODY: u32 = 65534;

/// What holds of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// It is no longer root, or never was; otherwise why it still is.
    pub unprivileged: Result<(), String>,
    /// Landlock keeps it from all files and from new TCP connections; otherwise why not.
    pub landlock: Result<(), String>,
    /// Seccomp lets it make only the system calls that it needs; otherwise why not.
    pub seccomp: Result<(), String>,
}

/// What a server's threads call, with those calls that Rust's and C's libraries make for it.
const CALLS: &[libc::c_long] = &[
    libc::SYS_accept4,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_futex,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_ioctl,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_read,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_write,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// Gives all of that up, for this thread and those that it starts.
pub(super) fn enter() -> Held {
    Held {
        unprivileged: drop_root().map_err(|errno| {
            format!("it stays root, for here it cannot become nobody ({})", errno.desc())
        }),
        landlock: forbid_files().map_err(|error| error.to_string()).and_then(
            |status| match status {
                RulesetStatus::NotEnforced => Err("this kernel has no Landlock".to_owned()),
                RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
            },
        ),
        seccomp: filter().map_err(|error| error.to_string()),
    }
}

fn drop_root() -> nix::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    setgroups(&[])?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)
}

fn forbid_files() -> Result<RulesetStatus, RulesetError> {
    // Each is as strict as the kernel at hand can be.
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(RULES))?
        .handle_access(AccessNet::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset)
}

fn filter() -> io::Result<()> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    // As if the kernel had no such call: libraries then try another.
    let filter = SeccompFilter::new(
        CALLS.iter().map(|call| (*call, Vec::new())).collect(),
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        SeccompAction::Allow,
        architecture,
    );
    let program: BpfProgram = filter.and_then(SeccompFilter::try_into).map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}
