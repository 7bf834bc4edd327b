//! What C may get wrong, and what it gets back.
#![expect(unsafe_code, reason = "the functions under test are those that C calls")]

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr;

use dualpi2_c::*;

type Lost = Vec<(usize, Queue, DropReason)>;

unsafe extern "C" fn remember(
    context: *mut c_void,
    packet: Packet,
    queue: Queue,
    reason: DropReason,
) {
    // SAFETY: the context is the list that `create` was given.
    let lost = unsafe { &mut *context.cast::<Lost>() };
    lost.push((packet.user.addr(), queue, reason));
}

fn create(config: &Config, lost: *mut Lost) -> *mut Handle {
    let mut queue = ptr::null_mut();
    // SAFETY: pointers to variables, and a list that the tests keep until the queue is gone.
    let error =
        unsafe { dualpi2_create(&mut queue, config, ptr::null(), Some(remember), lost.cast(), 0) };
    assert_eq!(error, Error::Ok);
    queue
}

fn packet(user: usize, ecn: Ecn) -> Packet {
    let user = ptr::without_provenance_mut(user);
    Packet { user, length: 1_000, memory: 2_000, ecn: ecn as u8, priority_class: 0 }
}

#[test]
fn null_pointers_do_nothing() {
    let config = dualpi2_config_default(1514);
    let none = ptr::null_mut::<Handle>();
    let mut lost = Lost::new();
    let queue = create(&config, &raw mut lost);
    // SAFETY: null is what each of them has to bear; the queue is alive.
    unsafe {
        let error = dualpi2_create(ptr::null_mut(), &config, ptr::null(), None, ptr::null_mut(), 0);
        assert_eq!(error, Error::NullPointer);
        let mut untouched = ptr::dangling_mut();
        let error =
            dualpi2_create(&mut untouched, ptr::null(), ptr::null(), None, ptr::null_mut(), 0);
        assert_eq!(error, Error::NullPointer);
        assert!(untouched.is_null(), "an error leaves null behind");

        assert!(!dualpi2_enqueue(none, 0, packet(1, Ecn::Ect0)));
        assert!(!dualpi2_dequeue(none, 0, ptr::null_mut()));
        assert!(!dualpi2_peek(none, 0, ptr::null_mut()));
        dualpi2_poll(none, 0);
        dualpi2_update(none, 0);
        dualpi2_reset(none);
        dualpi2_reserve(none, 10);
        dualpi2_destroy(none);
        assert_eq!(dualpi2_next_update(none), u64::MAX);
        assert_eq!(dualpi2_change(none, &config, 0), Error::NullPointer);
        assert_eq!(dualpi2_change(queue, ptr::null(), 0), Error::NullPointer);
        assert_eq!(dualpi2_get_config(none), Config::default());
        assert_eq!(dualpi2_get_stats(none, 0), Stats::default());
        assert_eq!(dualpi2_length(none), 0);
        assert!(!dualpi2_splits_gso(none));

        assert!(dualpi2_enqueue(queue, 1, packet(1, Ecn::Ect0)));
        assert!(!dualpi2_dequeue(queue, 1, ptr::null_mut()));
        assert!(!dualpi2_peek(queue, 1, ptr::null_mut()));
        assert_eq!(dualpi2_length(queue), 1, "nowhere to put it, so it stays");
        dualpi2_destroy(queue);
    }
    assert_eq!(lost, [(1, Queue::Classic, DropReason::Flushed)]);
}

#[test]
fn each_error_has_its_cause_and_its_words() {
    let good = dualpi2_config_default(1514);
    let cases = [
        (Config { mtu: 0, ..good }, "mtu must be 1 byte or more"),
        (Config { limit: 0, ..good }, "limit must be 1 packet or more"),
        (Config { tupdate_us: 0, ..good }, "tupdate_us must be 1 us or more"),
        (Config { alpha_256ths: 0, ..good }, "alpha_256ths must be 1 to 2147483647"),
        (Config { beta_256ths: 1 << 31, ..good }, "beta_256ths must be 1 to 2147483647"),
        (Config { coupling_factor: 0, ..good }, "coupling_factor must be 1 to 255"),
        (Config { classic_protection: 101, ..good }, "classic_protection must be 0 to 100 percent"),
    ];
    let text = |error: i32| {
        // SAFETY: the texts are C strings that live for ever.
        unsafe { CStr::from_ptr(dualpi2_error_text(error)) }.to_str().unwrap()
    };
    let mut lost = Lost::new();
    let running = create(&good, &raw mut lost);
    for (config, words) in cases {
        let mut queue = ptr::null_mut();
        // SAFETY: pointers to variables; no callback.
        let error =
            unsafe { dualpi2_create(&mut queue, &config, ptr::null(), None, ptr::null_mut(), 0) };
        assert_eq!(text(error as i32), words);
        assert!(queue.is_null());
        // SAFETY: the queue is alive.
        let change = unsafe { dualpi2_change(running, &config, DUALPI2_CHANGE_ALL) };
        // The MTU is no field of a change.
        let expected = if error == Error::Mtu { Error::Ok } else { error };
        assert_eq!(change, expected);
    }
    // SAFETY: as above; not used again.
    unsafe {
        assert_eq!(dualpi2_change(running, &good, 1 << 14), Error::Fields);
        dualpi2_destroy(running);
    }
    assert_eq!(text(99), "unknown error");
    assert_eq!(text(-1), "unknown error");
}

#[test]
fn random_sources_are_checked_and_used() {
    unsafe extern "C" fn always_lowest(calls: *mut c_void) -> u32 {
        // SAFETY: the test's counter.
        unsafe { *calls.cast::<u32>() += 1 };
        0
    }
    let config = dualpi2_config_default(1514);
    let mut calls = 0_u32;
    let calls = &raw mut calls;
    let source = |kind, seed, next| Random { kind, seed, next, context: calls.cast() };
    let attempt = |random: Random| {
        let mut queue = ptr::null_mut();
        // SAFETY: pointers to variables; the counter outlives the queue.
        let error =
            unsafe { dualpi2_create(&mut queue, &config, &random, None, ptr::null_mut(), 0) };
        (error, queue)
    };
    assert_eq!(attempt(source(3, 1, None)).0, Error::RandomKind);
    assert_eq!(attempt(source(RandomKind::Xorshift64 as u32, 0, None)).0, Error::RandomSeed);
    assert_eq!(attempt(source(RandomKind::Callback as u32, 0, None)).0, Error::RandomCallback);
    let (error, queue) = attempt(source(RandomKind::Callback as u32, 0, Some(always_lowest)));
    assert_eq!(error, Error::Ok);
    // SAFETY: the queue is alive.
    unsafe {
        for user in 0..10 {
            assert!(dualpi2_enqueue(queue, 1, packet(user, Ecn::Ect0)));
        }
        let mut departure = MaybeUninit::uninit();
        assert!(dualpi2_dequeue(queue, 1, departure.as_mut_ptr()));
        let departure = departure.assume_init();
        assert!(departure.ce && departure.marked_by_probability && !departure.marked_by_step);
        assert_eq!(departure.packet.ecn, Ecn::Ce as u8);
        assert_eq!(*calls, 2, "classic rolls twice");
        dualpi2_destroy(queue);
    }
}

#[test]
fn every_class_and_every_tos_byte_has_its_place() {
    let mut lost = Lost::new();
    let queue = create(&dualpi2_config_default(1514), &raw mut lost);
    for (user, tos, priority_class, place) in [
        (1, 0, Class::Classic as u8, Some(Queue::Classic)),
        (2, 0, Class::L4s as u8, Some(Queue::LowLatency)),
        (3, 0, Class::LowLatency as u8, Some(Queue::LowLatency)),
        (4, 0, 77, Some(Queue::Classic)),
        (5, 0, Class::Refuse as u8, None),
        (6, 0xb8 | Ecn::Ect1 as u8, Class::Refuse as u8, Some(Queue::LowLatency)),
        (7, 0xb8 | Ecn::Ect0 as u8, 0, Some(Queue::Classic)),
        (8, 0xff, 0, Some(Queue::LowLatency)),
    ] {
        let packet = Packet { ecn: tos, priority_class, ..packet(user, Ecn::NotEct) };
        // SAFETY: the queue is alive.
        unsafe {
            assert_eq!(dualpi2_enqueue(queue, 1, packet), place.is_some(), "packet {user}");
            let mut departure = MaybeUninit::uninit();
            let left = dualpi2_dequeue(queue, 1, departure.as_mut_ptr());
            let queue = left.then(|| departure.assume_init().queue);
            assert_eq!(queue, place, "packet {user}");
            if left {
                assert_eq!(departure.assume_init().packet, packet, "came back as it went in");
            }
        }
    }
    // SAFETY: not used again.
    unsafe { dualpi2_destroy(queue) };
    assert_eq!(lost, [(5, Queue::Classic, DropReason::Refused)]);
}

#[test]
fn a_change_touches_the_fields_it_names() {
    let config = Config { limit: 100, ..dualpi2_config_default(1514) };
    let mut lost = Lost::new();
    let queue = create(&config, &raw mut lost);
    // SAFETY: the queue is alive, and the list is read only when no call is under way.
    unsafe {
        let before = dualpi2_get_config(queue);
        assert_eq!(before.memory_limit, 100 * 2 * 1514, "the default for 100 packets");
        assert_eq!((before.alpha_256ths, before.beta_256ths), (40, 818), "as the kernel rounds");

        let garbage = Config { limit: 3, target_us: 5_000, tupdate_us: 0, ..Config::default() };
        assert_eq!(dualpi2_change(queue, &garbage, DUALPI2_CHANGE_TARGET), Error::Ok);
        assert_eq!(dualpi2_get_config(queue), Config { target_us: 5_000, ..before });

        for user in 0..5 {
            dualpi2_enqueue(queue, 1, packet(user, Ecn::Ect0));
        }
        assert_eq!(dualpi2_change(queue, &garbage, DUALPI2_CHANGE_LIMIT), Error::Ok);
        assert_eq!(dualpi2_get_config(queue).memory_limit, 3 * 2 * 1514);
        assert_eq!(dualpi2_length(queue), 3);
        let fields = DUALPI2_CHANGE_MEMORY_LIMIT;
        let roomy = Config { memory_limit: 99_999, ..config };
        assert_eq!(dualpi2_change(queue, &roomy, fields), Error::Ok);
        assert_eq!(dualpi2_get_config(queue).memory_limit, 99_999);
        assert_eq!(dualpi2_change(queue, &config, fields), Error::Ok);
        assert_eq!(dualpi2_get_config(queue).memory_limit, 3 * 2 * 1514, "0 is the default");

        let mut shown = MaybeUninit::uninit();
        assert!(dualpi2_peek(queue, 2, shown.as_mut_ptr()));
        assert_eq!(shown.assume_init().user.addr(), 2);
        assert_eq!(dualpi2_get_stats(queue, 2).backlog_packets, 3, "a shown packet still waits");
        dualpi2_reset(queue);
        assert_eq!(dualpi2_length(queue), 0);
        dualpi2_destroy(queue);
    }
    let flushed = (0..5).map(|user| (user, Queue::Classic, DropReason::Flushed));
    assert_eq!(lost, flushed.collect::<Lost>());
}
