//! Once the queues have their size, no packet costs an allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use dualpi2::{Config, DualPi2, Ecn, Packet, SplitMix64};

struct Counting;

thread_local! {
    /// Of this thread: the one that runs tests allocates when it likes.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "a global allocator cannot be written without")]
// SAFETY: every call goes unchanged to the system's allocator; the counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Frame(Ecn);

impl Packet for Frame {
    fn length(&self) -> u32 {
        1514
    }
    fn memory(&self) -> u32 {
        2282
    }
    fn ecn(&self) -> Ecn {
        self.0
    }
    fn set_ce(&mut self) {
        self.0 = Ecn::Ce;
    }
}

#[test]
fn the_steady_state_allocates_nothing() {
    let mut queue = DualPi2::new(Config::for_mtu(1514), 1514, SplitMix64::new(7), 0).unwrap();
    queue.reserve(1_000);
    let (mut now, mut lost) = (0, 0_u64);
    let before = ALLOCATIONS.get();
    assert!(before > 0, "nothing is counted");
    // Bursts of 100 at 1.1 times the rate at which packets leave: marks, drops and a queue that comes and goes.
    for round in 0..5_000_u64 {
        for number in 0..100 {
            let frame = Frame([Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][(round + number) as usize % 3]);
            queue.enqueue(now, frame, &mut |_| lost += 1);
        }
        for _ in 0..90 {
            now += 100_000;
            queue.poll(now);
            queue.dequeue(now, &mut |_| lost += 1);
        }
    }
    let allocations = ALLOCATIONS.get() - before;
    let stats = queue.stats(now);
    assert_eq!(allocations, 0, "in {} packets", stats.sent_packets);
    assert!(lost > 1_000 && stats.ecn_marks > 1_000, "nothing was exercised: {stats:?}");
    assert!(stats.max_queue_length < 1_000, "the queue outgrew what was reserved");
}
