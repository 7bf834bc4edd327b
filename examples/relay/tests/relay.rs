//! The relay between two sockets of this machine.

use std::io::IoSliceMut;
use std::time::Duration;

use dualq_relay::{Done, relay};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout};

const COUNT: u64 = 40;
const PAYLOAD: usize = 1000;
const RATE: u64 = 4_000_000;

/// Sends a burst with this ECN field through a relay; returns what that did, how long it took, and the fields that arrived.
async fn burst(ecn: Option<EcnCodepoint>) -> (Done, Duration, Vec<Option<EcnCodepoint>>) {
    let bind = || UdpSocket::bind("127.0.0.1:0");
    let (sender, middle, sink) =
        (bind().await.unwrap(), bind().await.unwrap(), bind().await.unwrap());
    let (into, target) = (middle.local_addr().unwrap(), sink.local_addr().unwrap());
    let begun = Instant::now();
    let relaying = tokio::spawn(relay(middle, target, RATE, Duration::from_secs(2)));
    let state = UdpSocketState::new((&sender).into()).unwrap();
    for number in 0..COUNT {
        let mut contents = [0; PAYLOAD];
        contents[..8].copy_from_slice(&number.to_be_bytes());
        let transmit = Transmit {
            destination: into,
            ecn,
            contents: &contents,
            segment_size: None,
            src_ip: None,
        };
        let send = || state.try_send((&sender).into(), &transmit);
        sender.async_io(Interest::WRITABLE, send).await.unwrap();
        // In bursts of half as much again as the rate.
        if number % 10 == 9 {
            tokio::time::sleep(Duration::from_millis(14)).await;
        }
    }
    let state = UdpSocketState::new((&sink).into()).unwrap();
    let (mut fields, mut last, mut took) = (Vec::new(), None, Duration::ZERO);
    let mut buffer = [0; 65536];
    loop {
        let mut meta = [RecvMeta::default()];
        let mut slices = [IoSliceMut::new(&mut buffer)];
        let receive = sink
            .async_io(Interest::READABLE, || state.recv((&sink).into(), &mut slices, &mut meta));
        let Ok(received) = timeout(Duration::from_secs(2), receive).await else { break };
        received.unwrap();
        took = begun.elapsed();
        for payload in buffer[..meta[0].len].chunks(meta[0].stride) {
            let number = u64::from_be_bytes(payload[..8].try_into().unwrap());
            assert!(last < Some(number), "{number} after {last:?}");
            last = Some(number);
            fields.push(meta[0].ecn);
        }
    }
    (relaying.await.unwrap().unwrap(), took, fields)
}

#[tokio::test]
async fn low_latency_traffic_is_marked() {
    let (done, took, fields) = burst(Some(EcnCodepoint::Ect1)).await;
    // A machine that is busy elsewhere for a while is an overloaded queue, where DualPI2 drops what is ECN-capable too (RFC 9332 §4.2.3).
    assert_eq!((done.received, done.sent + done.dropped), (COUNT, COUNT));
    // No faster than the rate.
    let least =
        Duration::from_secs_f64((done.sent - 1) as f64 * (PAYLOAD + 42) as f64 * 8.0 / RATE as f64);
    assert!(took >= least, "{took:?} {least:?}");
    let marked = fields.iter().filter(|field| **field == Some(EcnCodepoint::Ce)).count() as u64;
    assert_eq!(marked, done.marked);
    // All but the first of each burst wait longer than a millisecond.
    assert!(marked + done.dropped > COUNT / 2, "{done:?}");
    assert!(
        fields.iter().all(|field| matches!(field, Some(EcnCodepoint::Ce | EcnCodepoint::Ect1)))
    );
}

#[tokio::test]
async fn what_is_not_capable_of_ecn_is_never_marked() {
    let (done, _, fields) = burst(None).await;
    assert_eq!((done.received, done.marked), (COUNT, 0));
    assert_eq!((done.sent + done.dropped, fields.len() as u64), (COUNT, done.sent));
    assert!(fields.iter().all(Option::is_none));
}

#[tokio::test]
async fn a_rate_of_nothing_is_refused() {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let target = socket.local_addr().unwrap();
    let refused = relay(socket, target, 0, Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.to_string(), "a rate of 0 bits per second");
}
