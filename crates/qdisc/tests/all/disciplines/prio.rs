use dualq_qdisc::{DropReason, Dropped, Qdisc, grammar};

use super::{Bench, Frame, full};

fn frame(id: u32, priority: u32) -> Frame {
    Frame { priority, ..full(id, 1) }
}

#[test]
fn the_first_band_goes_first() {
    let mut bench = Bench::new("prio bands 4 priomap 3 2 1 0 3 3 3 3 3 3 3 3 3 3 3 2");
    // The last one's priority counts by its four low bits.
    for (id, priority) in [0, 1, 2, 3, 3, 31].into_iter().enumerate() {
        bench.put(0, frame(id as u32, priority));
    }
    assert_eq!(bench.ids(0, 9), [3, 4, 2, 1, 5, 0]);
    assert_eq!(Qdisc::<Frame>::bands(&bench.discipline).len(), 4);
}

#[test]
fn each_band_holds_as_much_as_the_device() {
    let mut bench = Bench::new("prio");
    for id in 0..1003 {
        bench.put(0, frame(id, 0));
    }
    bench.put(0, frame(2000, 6));
    assert_eq!(bench.dropped.len(), 3);
    assert!(
        bench.dropped.iter().all(|lost| lost.band == 1 && lost.reason == DropReason::Overlimit)
    );
    assert_eq!(bench.ids(0, 2), [2000, 0]);
}

/// As `tc qdisc change`: what waits in a band that is no more is gone.
#[test]
fn fewer_bands_hold_less() {
    let mut bench = Bench::new("prio");
    bench.put(0, frame(1, 1));
    bench.put(0, frame(2, 6));
    let spec = grammar::parse("prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1").unwrap().spec;
    let mut gone = Vec::new();
    let change = |lost: Dropped<Frame>| gone.push((lost.packet.id, lost.reason));
    bench.discipline.change(&spec, &mut { change }).unwrap();
    assert_eq!(gone, [(1, DropReason::Flushed)]);
    bench.put(0, frame(3, 1));
    assert_eq!(bench.ids(0, 9), [2, 3]);
}
