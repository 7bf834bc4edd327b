//! Being able to make namespaces, as root or not.

use std::fs;
use std::path::Path;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, getegid, geteuid};

use crate::{Namespace, NamespaceError, addresses};

/// Debian's own switch, gone from its newer kernels.
const DEBIAN: &str = "kernel.unprivileged_userns_clone";
/// Ubuntu's, from 23.10 on.
const APPARMOR: &str = "kernel.apparmor_restrict_unprivileged_userns";
/// The kernel's own: how many user namespaces a user may have.
const MOST: &str = "user.max_user_namespaces";

/// Makes sure that this process can make network namespaces: as it is, or as the owner of a user namespace of its own. There the
/// user has the same number as outside, so that files belong to whom they should; what it executes has no privileges, not even
/// there. The process is then in an empty network namespace: to the one where it was started no way leads back, for that is not its
/// own.
///
/// Call it before any thread is started: the kernel lets no others into a user namespace.
///
/// # Errors
/// If this user may not; says which setting forbids it.
pub fn become_able() -> Result<(), NamespaceError> {
    let Err(refused) = Namespace::create() else { return Ok(()) };
    let (uid, gid) = (geteuid(), getegid());
    addresses::remember()?;
    // Who owns a user namespace may leave the machine's network, but not come back to it: home is a network of its own.
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)
        .map_err(|errno| not_permitted(errno, uid))?;
    map(uid, gid)?;
    // In some, such as those that AppArmor leaves without capabilities, this fails later than it should.
    Namespace::create().map(drop).map_err(|error| match forbidding() {
        Some(why) => NamespaceError::NotPermitted(why),
        None if uid.is_root() => refused,
        None => error,
    })
}

/// Whoever is outside is the same inside.
fn map(uid: Uid, gid: Gid) -> Result<(), NamespaceError> {
    let write = |file: &str, text: String| {
        let path = Path::new("/proc/self").join(file);
        fs::write(&path, text)
            .map_err(|error| NamespaceError::system(format!("write {}", path.display()), error))
    };
    write("uid_map", format!("{uid} {uid} 1"))?;
    // Else a group could be left that is meant to keep somebody out (CVE-2014-8989).
    write("setgroups", "deny".to_owned())?;
    write("gid_map", format!("{gid} {gid} 1"))
}

fn not_permitted(errno: Errno, uid: Uid) -> NamespaceError {
    let why = forbidding().unwrap_or_else(|| match errno {
        Errno::ENOSPC => format!("this user has all the user namespaces that {MOST} allows"),
        Errno::EINVAL if has_threads() => {
            "this process has threads already, which the kernel lets into no user namespace of its own; run as root".to_owned()
        }
        Errno::EINVAL | Errno::ENOSYS => {
            "this kernel has no user namespaces (CONFIG_USER_NS); run as root".to_owned()
        }
        Errno::EUSERS => "user namespaces are nested too deeply, 32 at most".to_owned(),
        _ if uid.is_root() => format!(
            "{}; root lacks CAP_SYS_ADMIN here, as in a container without --privileged",
            errno.desc()
        ),
        _ => format!("{}; user namespaces are forbidden here; run as root", errno.desc()),
    });
    NamespaceError::NotPermitted(why)
}

fn has_threads() -> bool {
    fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() > 1)
}

/// The setting that keeps ordinary users from having user namespaces, and what would allow it.
fn forbidding() -> Option<String> {
    let value = |name: &str| {
        let path = Path::new("/proc/sys").join(name.replace('.', "/"));
        fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    };
    let forbids = |name: &str, forbidden: u64, allowed: &str| {
        (value(name)? == forbidden).then(|| {
            format!("{name} = {forbidden} forbids user namespaces; run as root, or allow them: sudo sysctl {name}={allowed}")
        })
    };
    forbids(MOST, 0, "10000")
        .or_else(|| forbids(DEBIAN, 0, "1"))
        .or_else(|| forbids(APPARMOR, 1, "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_not_taken_for_a_kernel_without_user_namespaces() {
        // Another one than the first, which waits for it.
        let tried = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWUSER)).join();
        let errno = tried.unwrap().unwrap_err();
        assert_eq!(errno, Errno::EINVAL);
        let said = std::thread::spawn(move || not_permitted(errno, geteuid()).to_string()).join();
        let said = said.unwrap();
        assert!(forbidding().is_some() || said.contains("has threads already"), "{said}");
    }
}
