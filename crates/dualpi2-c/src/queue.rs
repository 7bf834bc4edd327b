//! A queue behind an opaque pointer.
//!
//! Every `unsafe` here rests on what the header asks of its callers: a pointer is null or points to what its type says,
//! and one thread at a time uses a queue, callbacks not at all.

use std::ffi::c_void;
use std::ptr;

use dualpi2::{Dropped, DualPi2};

use crate::config::Config;
use crate::error::Error;
use crate::packet::{Departure, DropCallback, Packet};
use crate::random::{Random, Source};
use crate::stats::Stats;

/// A DualPI2 queue: made by `dualpi2_create`, given up by `dualpi2_destroy`.
pub struct Handle {
    engine: DualPi2<Packet, Source>,
    mtu: u32,
    owner: Owner,
}

/// Who takes lost packets back.
#[derive(Clone, Copy)]
struct Owner {
    drop: DropCallback,
    context: *mut c_void,
}

impl Owner {
    fn take_back(self, lost: &Dropped<Packet>) {
        if let Some(drop) = self.drop {
            // SAFETY: the caller of `dualpi2_create` vouches for the function and its context.
            unsafe { drop(self.context, lost.packet, lost.queue.into(), lost.reason.into()) };
        }
    }
}

/// Makes an empty queue at time `now_ns` and stores it in `*queue`, which becomes null on an error. The first probability
/// update is due one `tupdate_us` later.
///
/// `random` may be null: SplitMix64 from seed 0. `drop` may be null: lost packets are forgotten; `context` is given to it.
/// Needs `queue` and `config`. `random` and `config` are copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_create(
    queue: *mut *mut Handle,
    config: *const Config,
    random: *const Random,
    drop: DropCallback,
    context: *mut c_void,
    now_ns: u64,
) -> Error {
    // SAFETY: null or the caller's variable, of which nothing is read: it may be uninitialised.
    let Some(created) = (unsafe { queue.cast::<std::mem::MaybeUninit<*mut Handle>>().as_mut() })
    else {
        return Error::NullPointer;
    };
    created.write(ptr::null_mut());
    // SAFETY: null or the caller's structures.
    let (config, random) = unsafe { (config.as_ref(), random.as_ref()) };
    let Some(config) = config else { return Error::NullPointer };
    match create(*config, random, Owner { drop, context }, now_ns) {
        Ok(handle) => {
            created.write(Box::into_raw(Box::new(handle)));
            Error::Ok
        }
        Err(error) => error,
    }
}

fn create(
    config: Config,
    random: Option<&Random>,
    owner: Owner,
    now_ns: u64,
) -> Result<Handle, Error> {
    let source = random.map_or_else(|| Ok(Source::default()), Source::new)?;
    let engine = DualPi2::new(config.to_engine()?, config.mtu, source, now_ns)?;
    Ok(Handle { engine, mtu: config.mtu, owner })
}

/// Gives every waiting packet back through the drop callback, then the queue's memory. Null is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_destroy(queue: *mut Handle) {
    if !queue.is_null() {
        // SAFETY: made by `dualpi2_create`, and given up by the caller, who does not use it again.
        let mut handle = unsafe { Box::from_raw(queue) };
        handle.reset();
    }
}

impl Handle {
    fn reset(&mut self) {
        let owner = self.owner;
        self.engine.reset(&mut |lost| owner.take_back(&lost));
    }
}

/// Makes room for `packets` in each queue at once, so that nothing is allocated later; the configured limit is enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_reserve(queue: *mut Handle, packets: u32) {
    // SAFETY: null or a queue that nobody else uses now.
    if let Some(handle) = unsafe { queue.as_mut() } {
        let limit = handle.engine.config().limit;
        handle.engine.reserve(packets.min(limit) as usize);
    }
}

/// Enqueues a packet that arrived at `now_ns`. False if it was dropped; the drop callback has it back by then. With a null
/// `queue` the packet stays the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_enqueue(queue: *mut Handle, now_ns: u64, packet: Packet) -> bool {
    // SAFETY: null or a queue that nobody else uses now.
    let Some(handle) = (unsafe { queue.as_mut() }) else { return false };
    let owner = handle.owner;
    let queued = handle.engine.enqueue_with(now_ns, packet, Packet::fallback_class, &mut |lost| {
        owner.take_back(&lost);
    });
    queued != 0
}

/// Takes the next packet to send at `now_ns` and stores it in `*departure`. False, and `*departure` as it was, if none
/// waits. Packets that the AQM drops on the way go to the drop callback. If `departure` is null nothing leaves.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_dequeue(
    queue: *mut Handle,
    now_ns: u64,
    departure: *mut Departure,
) -> bool {
    // SAFETY: null or a queue that nobody else uses now.
    let Some(handle) = (unsafe { queue.as_mut() }) else { return false };
    if departure.is_null() {
        return false;
    }
    let owner = handle.owner;
    let Some(leaving) = handle.engine.dequeue(now_ns, &mut |lost| owner.take_back(&lost)) else {
        return false;
    };
    // SAFETY: not null, so the caller's structure; written as a whole, because it may be uninitialised.
    unsafe { departure.write(leaving.into()) };
    true
}

/// Shows in `*packet` what the next `dualpi2_dequeue` will return. The AQM decides about it now: what it drops on the way
/// goes to the drop callback, and the packet shown keeps its mark and its waiting time. False, and `*packet` as it was, if
/// none waits. If `packet` is null nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_peek(
    queue: *mut Handle,
    now_ns: u64,
    packet: *mut Packet,
) -> bool {
    // SAFETY: null or a queue that nobody else uses now.
    let Some(handle) = (unsafe { queue.as_mut() }) else { return false };
    if packet.is_null() {
        return false;
    }
    let owner = handle.owner;
    let Some(next) = handle.engine.peek(now_ns, &mut |lost| owner.take_back(&lost)) else {
        return false;
    };
    // SAFETY: not null, so the caller's structure; written as a whole, because it may be uninitialised.
    unsafe { packet.write(*next) };
    true
}

/// Runs each probability update that has come due up to `now_ns`, at the time when it was due. For callers without a timer:
/// to be called before each enqueue and dequeue. Costs one comparison if nothing is due.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_poll(queue: *mut Handle, now_ns: u64) {
    // SAFETY: null or a queue that nobody else uses now.
    if let Some(handle) = unsafe { queue.as_mut() } {
        handle.engine.poll(now_ns);
    }
}

/// Updates the probability. For callers with a timer, instead of `dualpi2_poll`: to be called when `dualpi2_next_update` has
/// come. The next update is due one `tupdate_us` after `now_ns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_update(queue: *mut Handle, now_ns: u64) {
    // SAFETY: null or a queue that nobody else uses now.
    if let Some(handle) = unsafe { queue.as_mut() } {
        handle.engine.update(now_ns);
    }
}

/// When the next probability update is due, in nanoseconds; `UINT64_MAX` if `queue` is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_next_update(queue: *const Handle) -> u64 {
    // SAFETY: null or a queue that nobody else changes now.
    unsafe { queue.as_ref() }.map_or(u64::MAX, |handle| handle.engine.next_update_ns())
}

/// Sets those parameters to the values in `*config` that `fields` names (`DUALPI2_CHANGE_*`, joined with |), while packets
/// wait. What a smaller limit leaves no room for goes to the drop callback at once. On an error nothing has changed.
/// Needs `queue` and `config`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_change(
    queue: *mut Handle,
    config: *const Config,
    fields: u32,
) -> Error {
    // SAFETY: null, or a queue that nobody else uses now and the caller's structure.
    let (Some(handle), Some(config)) = (unsafe { (queue.as_mut(), config.as_ref()) }) else {
        return Error::NullPointer;
    };
    let owner = handle.owner;
    let change = match config.change(fields, handle.engine.config().limit) {
        Ok(change) => change,
        Err(error) => return error,
    };
    match handle.engine.change(&change, &mut |lost| owner.take_back(&lost)) {
        Ok(()) => Error::Ok,
        Err(error) => error.into(),
    }
}

/// Gives every waiting packet back through the drop callback and forgets the probability, the scheduler's credit and the AQM's
/// counters. Parameters stay, and what was sent and dropped; the packets given back do not count as drops.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_reset(queue: *mut Handle) {
    // SAFETY: null or a queue that nobody else uses now.
    if let Some(handle) = unsafe { queue.as_mut() } {
        handle.reset();
    }
}

/// The parameters in force, with the kernel's rounding: a configured alpha of 41 reads back as 40.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_get_config(queue: *const Handle) -> Config {
    // SAFETY: null or a queue that nobody else changes now.
    unsafe { queue.as_ref() }.map_or_else(Config::default, |handle| {
        Config::from_engine(&handle.engine.config(), handle.mtu)
    })
}

/// The counters, and the queueing delays as they are at `now_ns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_get_stats(queue: *const Handle, now_ns: u64) -> Stats {
    // SAFETY: null or a queue that nobody else changes now.
    unsafe { queue.as_ref() }
        .map_or_else(Stats::default, |handle| handle.engine.stats(now_ns).into())
}

/// Packets waiting in both queues.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_length(queue: *const Handle) -> usize {
    // SAFETY: null or a queue that nobody else changes now.
    unsafe { queue.as_ref() }.map_or(0, |handle| handle.engine.len())
}

/// Whether the caller is to take an aggregate (GSO) apart and enqueue its segments one after the other, each with the
/// aggregate's ECN field and class, rather than enqueue it whole. Small flows then need not wait behind 64 KB of another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dualpi2_splits_gso(queue: *const Handle) -> bool {
    // SAFETY: null or a queue that nobody else changes now.
    unsafe { queue.as_ref() }.is_some_and(|handle| handle.engine.config().split_gso)
}
