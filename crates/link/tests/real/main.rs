//! Links between network namespaces, with this machine's own TCP and UDP across them.
#![cfg(target_os = "linux")]

mod behind;
#[allow(dead_code, reason = "they are read by others")]
#[path = "../engine/frames.rs"]
mod frames;
mod marks;
mod pair;
mod recorder;
mod segmentation;
mod transfers;

/// Whether a test can go on: it has root, if only of a user namespace, and there is TUN. Else it is run again as such root, or says why
/// it does nothing.
fn can_run() -> bool {
    if !tests_skipped::is_root() {
        tests_skipped::again_as_root("true");
        return false;
    }
    if std::fs::File::open("/dev/net/tun").is_err() {
        tests_skipped::skipped("there is no /dev/net/tun");
        return false;
    }
    true
}
