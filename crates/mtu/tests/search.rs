//! The search against paths that are only played: every MTU, with and without routers that say so, with loss.

use std::net::{IpAddr, Ipv4Addr};

use dualq_mtu::search::{Found, Limit, Refusal, Reply, SMALLEST, Search, Step};
use proptest::prelude::*;

const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// A path of which everything is known.
#[derive(Clone, Copy, Debug)]
struct Path {
    mtu: u16,
    /// Whether its router says what is too big.
    says: bool,
    /// Whether it says how much would fit.
    names: bool,
    /// The share of packets that are lost on the way there or back, whatever their size.
    loss: f64,
}

/// SplitMix64: the same losses in every run.
struct Dice(u64);

impl Dice {
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Runs a search, and counts its packets and rounds.
fn run(mut search: Search, path: Path, seed: u64) -> (Found, usize, usize) {
    let mut dice = Dice(seed);
    let (mut packets, mut rounds) = (0, 0);
    loop {
        let sizes = match search.step() {
            Step::Send(sizes) => sizes,
            Step::Done(found) => return (found, packets, rounds),
        };
        rounds += 1;
        packets += sizes.len();
        assert!(rounds < 10_000, "it does not end: {path:?}");
        for size in sizes {
            if dice.share() < path.loss {
                continue;
            }
            if size <= path.mtu {
                search.heard(size, Reply::Arrived);
            } else if path.says {
                let mtu = path.names.then_some(path.mtu);
                search.heard(size, Reply::TooBig(Refusal { size, mtu, by: Some(ROUTER) }));
            }
        }
        search.round_over();
    }
}

fn clean(mtu: u16, says: bool) -> Path {
    Path { mtu, says, names: says, loss: 0.0 }
}

#[test]
fn a_path_as_wide_as_the_interface_takes_two_packets() {
    let (found, packets, _) = run(Search::new(1500, None, 40), clean(1500, false), 0);
    assert_eq!((found.largest, found.limit), (Some(1500), Limit::Nothing));
    assert_eq!(packets, 2);
}

#[test]
fn a_router_that_names_the_mtu_is_believed_after_two_more() {
    let (found, packets, _) = run(Search::new(1500, None, 40), clean(1438, true), 0);
    assert_eq!((found.largest, found.limit), (Some(1438), Limit::Refused));
    assert_eq!(found.refusals.len(), 1);
    // The smallest, 1500 that is refused, 1438 that arrives, 1439 that is refused.
    assert_eq!(packets, 4);
}

#[test]
fn a_router_that_names_the_wrong_mtu_is_found_out() {
    // It says 1400, and behind it nothing above 1300 gets through.
    let mut search = Search::new(1500, None, 40);
    loop {
        match search.step() {
            Step::Done(found) => {
                assert_eq!(found.largest, Some(1300));
                assert!(matches!(found.limit, Limit::Silence(_)), "{found:?}");
                return;
            }
            Step::Send(sizes) => {
                for size in sizes {
                    if size > 1400 {
                        let refusal = Refusal { size, mtu: Some(1400), by: Some(ROUTER) };
                        search.heard(size, Reply::TooBig(refusal));
                    } else if size <= 1300 {
                        search.heard(size, Reply::Arrived);
                    }
                }
                search.round_over();
            }
        }
    }
}

#[test]
fn what_another_method_found_is_tried_first() {
    let (found, packets, _) = run(Search::new(1500, Some(1417), 40), clean(1417, true), 0);
    assert_eq!((found.largest, found.limit), (Some(1417), Limit::Refused));
    assert_eq!(packets, 3);
}

#[test]
fn who_does_not_answer_is_not_a_black_hole() {
    let path = Path { mtu: 1500, says: false, names: false, loss: 1.0 };
    let (found, packets, rounds) = run(Search::new(1500, None, 40), path, 0);
    assert_eq!((found.largest, found.limit), (None, Limit::NoAnswer));
    assert!(packets <= 9 && rounds <= 3, "{packets} packets, {rounds} rounds");
}

/// Losing most packets leaves nothing to be told: that is said, not guessed.
#[test]
fn hopeless_loss_is_no_black_hole_either() {
    let verdicts = (0..500).map(|seed| {
        let path = Path { mtu: 1500, says: false, names: false, loss: 0.8 };
        run(Search::new(1500, None, 40), path, seed).0.limit
    });
    let accused = verdicts.filter(|limit| matches!(limit, Limit::Silence(_))).count();
    assert_eq!(accused, 0);
}

/// The chance that the search allows itself is 1 in 100,000 for each size of which it is sure.
#[test]
fn loss_is_not_taken_for_a_black_hole() {
    let (mut wrong, mut unclear) = (0, 0);
    for seed in 0..6000_u32 {
        let loss = f64::from(seed % 6) * 0.1;
        let path = Path { mtu: 1500, says: false, names: false, loss };
        let (found, ..) = run(Search::new(1500, None, 40), path, seed.into());
        match found.limit {
            Limit::Nothing => assert_eq!(found.largest, Some(1500)),
            Limit::Unclear | Limit::NoAnswer => unclear += 1,
            _ => wrong += 1,
        }
    }
    assert!(wrong <= 2, "{wrong} of 6000");
    assert!(unclear <= 100, "{unclear} of 6000");
}

/// A black hole on a lossy path is found all the same, and not made larger or smaller.
#[test]
fn a_black_hole_is_found_through_loss() {
    let mut exact = 0;
    for seed in 0..2000 {
        let path = Path { mtu: 1404, says: false, names: false, loss: 0.1 };
        let (found, ..) = run(Search::new(1500, None, 40), path, seed);
        assert!(found.largest.is_none_or(|largest| largest <= 1404));
        exact += u32::from(found.largest == Some(1404) && matches!(found.limit, Limit::Silence(_)));
    }
    assert!(exact >= 1990, "{exact} of 2000");
}

proptest! {
    #[test]
    fn any_mtu_is_found_exactly(
        mtu in SMALLEST..=9100_u16,
        ceiling in prop_oneof![Just(1280_u16), Just(1500), Just(9000), Just(65_535)],
        says: bool,
        names: bool,
        hint in proptest::option::of(SMALLEST..=9000_u16),
    ) {
        let path = Path { mtu, says, names, loss: 0.0 };
        let (found, packets, rounds) = run(Search::new(ceiling, hint, 40), path, 0);
        prop_assert_eq!(found.largest, Some(mtu.min(ceiling)));
        let limit = match found.limit {
            Limit::Nothing => mtu >= ceiling,
            Limit::Refused => mtu < ceiling && says,
            Limit::Silence(_) => mtu < ceiling && !says,
            Limit::Unclear | Limit::NoAnswer => false,
        };
        prop_assert!(limit, "{:?}", found);
        prop_assert!(packets <= 90 && rounds <= 50, "{} packets, {} rounds", packets, rounds);
    }

    #[test]
    fn never_more_than_gets_through(
        mtu in SMALLEST..=1500_u16,
        says: bool,
        loss in 0.0..0.9,
        seed: u64,
    ) {
        let path = Path { mtu, says, names: says, loss };
        let (found, ..) = run(Search::new(1500, None, 40), path, seed);
        prop_assert!(found.largest.is_none_or(|largest| largest <= mtu));
    }
}
