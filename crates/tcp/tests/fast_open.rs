//! TCP Fast Open (RFC 7413): cookies, data in the SYN, and what happens where these are not taken.

use std::time::Duration;

use dualq_tcp::{
    Ack, COOKIE_BYTES, COOKIE_REQUEST_BYTES, Control, Data, ETHERNET_BYTES, EcnStyle, Receiver,
    ReceiverConfig, SYN_BYTES, Sender, SenderConfig,
};
use dualq_units::Instant;

/// How long each way takes.
const ONE_WAY: Duration = Duration::from_millis(20);
/// What a SYN has room for on a path of 1500 bytes: all options may be there (Linux: `tcp_send_syn_data`).
const IN_SYN: u32 = 1_420;

/// Both ends, and the time.
struct Ends {
    sender: Sender,
    receiver: Receiver,
    now: Instant,
}

impl Ends {
    /// `has_cookie` if the host of the sender had one before; `grants` if the receiver takes data of SYNs.
    fn new(has_cookie: bool, grants: bool, bytes: u64) -> Self {
        let ecn = EcnStyle::Off;
        let config = SenderConfig { fast_open: true, ecn, ..SenderConfig::default() };
        let mut sender = Sender::new(config);
        if has_cookie {
            sender.know_cookie();
        }
        sender.write(bytes);
        let config = ReceiverConfig { fast_open: grants, ..ReceiverConfig::default() };
        Self { sender, receiver: Receiver::new(config), now: Instant::ZERO }
    }

    fn sent(&mut self) -> Vec<Data> {
        let mut all = Vec::new();
        self.sender.transmit(self.now, &mut |transmission| all.push(transmission.data));
        for data in &all {
            self.sender.on_departure(data.payload);
        }
        all
    }

    /// Data arrive, and what is said of them.
    fn arrive(&mut self, data: &[Data]) -> Vec<Ack> {
        self.now = self.now + ONE_WAY;
        let mut acks = Vec::new();
        for data in data {
            self.receiver.on_data(self.now, data, &mut |ack| acks.push(ack));
        }
        acks
    }

    fn acknowledge(&mut self, acks: &[Ack]) -> Vec<Data> {
        self.now = self.now + ONE_WAY;
        for ack in acks {
            self.sender.on_ack(self.now, ack);
        }
        self.sent()
    }

    /// The sender's timer runs out.
    fn time_out(&mut self) -> Vec<Data> {
        self.now = self.sender.next_timer();
        self.sender.on_timer(self.now);
        self.sent()
    }
}

#[test]
fn the_first_connection_asks_for_a_cookie() {
    for grants in [true, false] {
        let mut ends = Ends::new(false, grants, 5_000);
        let syn = ends.sent();
        assert!(syn[0].asks_for_cookie() && syn[0].payload == 0);
        assert_eq!(syn[0].wire_bytes(), SYN_BYTES + COOKIE_REQUEST_BYTES + ETHERNET_BYTES);
        let answers = ends.arrive(&syn);
        assert_eq!((answers[0].has(Control::COOKIE), answers[0].ack), (grants, 0));
        let data = ends.acknowledge(&answers);
        assert_eq!(data.iter().map(|data| data.payload).sum::<u32>(), 5_000);
    }
}

/// What fits into the SYN is there a round trip sooner, and the rest follows its answer.
#[test]
fn with_a_cookie_the_first_data_leave_with_the_syn() {
    let mut ends = Ends::new(true, true, 1_000);
    let syn = ends.sent();
    assert!(syn[0].has_cookie() && syn[0].payload == 1_000 && syn.len() == 1);
    let answers = ends.arrive(&syn);
    assert_eq!(ends.receiver.received(), 1_000);
    let opening = ends.acknowledge(&answers);
    assert!(ends.sender.is_done() && ends.sender.in_flight() == 0);
    assert_eq!((opening.len(), opening[0].payload, opening[0].seq), (1, 0, 1_000));

    let mut ends = Ends::new(true, true, 100_000);
    let syn = ends.sent();
    assert_eq!(syn[0].payload, IN_SYN);
    assert_eq!(syn[0].wire_bytes(), SYN_BYTES + COOKIE_BYTES + IN_SYN + ETHERNET_BYTES);
    let answers = ends.arrive(&syn);
    assert_eq!((answers[0].ack, answers[0].has(Control::COOKIE)), (IN_SYN.into(), false));
    let data = ends.acknowledge(&answers);
    assert_eq!((data[1].seq, ends.sender.stats().retransmissions), (IN_SYN.into(), 0));
    assert_eq!(data.iter().map(|data| data.payload).sum::<u32>(), 14_480, "ten segments");
    assert!(ends.sender.cwnd() == 10 && ends.sender.stats().segments == 11);
    let acks = ends.arrive(&data);
    assert_eq!(acks.last().map(|ack| ack.ack), Some(14_480 + u64::from(IN_SYN)));
    assert!(!ends.acknowledge(&acks).is_empty());
}

/// A receiver that takes none of it acknowledges the SYN alone: the data are sent again at once (Linux: `tcp_rcv_fastopen_synack`).
#[test]
fn what_is_not_taken_is_sent_again_at_once() {
    let mut ends = Ends::new(true, false, 1_000);
    let syn = ends.sent();
    let answers = ends.arrive(&syn);
    assert_eq!((answers[0].ack, ends.receiver.received()), (0, 0));
    let again = ends.acknowledge(&answers);
    assert_eq!((again[0].seq, again[0].payload, again[0].has(Control::SYN)), (0, 1_000, false));
    assert_eq!((ends.sender.stats().retransmissions, ends.sender.ssthresh()), (1, None));
    let acks = ends.arrive(&again);
    ends.acknowledge(&acks);
    assert!(ends.sender.is_done());
}

/// A SYN that comes again is a plain one, whether the first was lost or its answer.
#[test]
fn a_lost_syn_or_answer_costs_a_timeout() {
    for answer_lost in [false, true] {
        let mut ends = Ends::new(true, true, 100_000);
        let syn = ends.sent();
        if answer_lost {
            ends.arrive(&syn);
        }
        let again = ends.time_out();
        assert_eq!(
            (again.len(), again[0].has(Control::SYN), again[0].payload, again[0].options),
            (1, true, 0, 0)
        );
        let answers = ends.arrive(&again);
        assert_eq!(answers[0].ack, if answer_lost { IN_SYN.into() } else { 0 });
        assert_eq!(ends.receiver.received(), answers[0].ack);
        let mut data = ends.acknowledge(&answers);
        let first = data.iter().find(|data| data.payload > 0).expect("it goes on");
        assert_eq!(first.seq, answers[0].ack);
        while !ends.sender.is_done() {
            let acks = ends.arrive(&data);
            data = ends.acknowledge(&acks);
            assert!(!data.is_empty() || ends.sender.is_done() || acks.is_empty());
            if acks.is_empty() {
                ends.now = ends.receiver.next_timer();
                let mut acks = Vec::new();
                ends.receiver.on_timer(ends.now, &mut |ack| acks.push(ack));
                data = ends.acknowledge(&acks);
            }
        }
        assert_eq!(ends.receiver.received(), 100_000);
    }
}

/// Too long for a router, the SYN goes on without its data.
#[test]
fn a_syn_that_is_too_long_is_sent_without_data() {
    let mut ends = Ends::new(true, true, 3_000);
    assert_eq!(ends.sent()[0].payload, IN_SYN);
    ends.now = ends.now + ONE_WAY;
    ends.sender.reduce_mtu(ends.now, 1_252);
    let syn = ends.sent();
    assert!(syn[0].has(Control::SYN) && syn[0].payload == 0);
    let answers = ends.arrive(&syn);
    let data = ends.acknowledge(&answers);
    assert_eq!((data[0].seq, data.iter().map(|data| data.payload).sum::<u32>()), (0, 3_000));
    assert!(data.iter().all(|data| u32::from(data.mss) <= 1_200), "{data:?}");
    let acks = ends.arrive(&data);
    ends.acknowledge(&acks);
    assert!(ends.sender.is_done());
}
