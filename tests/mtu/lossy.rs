//! A path that loses packets of all sizes must not be taken for one that eats large ones.

use std::thread;

use tests_skipped::is_root;

use crate::HOSTS;
use crate::network::{Network, again_as_root};
use crate::switch::{self, Carrier};

/// Loses so many of 100 packets, whatever their size, in an order that is always the same; and all that are larger than `mtu`.
struct Lossy {
    percent: u64,
    mtu: usize,
    state: u64,
}

impl Carrier for Lossy {
    fn carry(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        // Marsaglia's xorshift64.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let lost = self.state % 100 < self.percent || packet.len() > self.mtu;
        (!lost).then(|| packet.to_vec())
    }
}

/// What becomes of three surveys, each of a path of its own: verdict, path MTU, and how many packets that fit were lost.
fn surveys(percent: u64, mtu: usize) -> Vec<(String, u64, u64)> {
    if !is_root() {
        again_as_root();
        return Vec::new();
    }
    let survey = |network: &Network| {
        let (survey, _) = network.survey(&[HOSTS[0], "--timeout", "300ms"]);
        let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
        let verdict = survey["verdict"].as_str().unwrap().to_owned();
        (verdict, number(&survey["path_mtu"]), number(&survey["echo"]["fitting_lost"]))
    };
    thread::scope(|scope| {
        let one = |state| {
            scope.spawn(move || switch::behind(move || Lossy { percent, mtu, state }, survey))
        };
        let three = [0x9e37_79b9, 0x3c6e_f372, 0xdaa6_6d2b].map(one);
        three.into_iter().filter_map(|one| one.join().unwrap()).collect()
    })
}

/// On the way there and back, this is half of all.
#[test]
fn a_lossy_path_is_no_black_hole() {
    let surveys = surveys(30, 1500);
    for (verdict, ..) in &surveys {
        assert!(["whole", "lossy"].contains(&verdict.as_str()), "{surveys:?}");
    }
    let lost: u64 = surveys.iter().map(|(.., lost)| lost).sum();
    assert!(surveys.is_empty() || lost > 0, "nothing was lost, so nothing was tested: {surveys:?}");
}

#[test]
fn a_black_hole_is_found_through_loss() {
    let surveys = surveys(10, 1400);
    for (verdict, mtu, _) in &surveys {
        assert_eq!((verdict.as_str(), *mtu), ("black-hole", 1400), "{surveys:?}");
    }
    let lost: u64 = surveys.iter().map(|(.., lost)| lost).sum();
    assert!(surveys.is_empty() || lost > 0, "nothing was lost, so nothing was tested: {surveys:?}");
}
