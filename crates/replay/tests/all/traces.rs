//! CSV traces, good and bad, and what any bytes may not do.

use std::io::{self, Read};

use crate::common::{xz, zstd};

use dualq_qdisc::{Class, Ecn, grammar};
use dualq_replay::{Arrival, EventLog, Replay, Settings, trace};
use dualq_units::{Instant, Rate};
use proptest::prelude::*;

const HEADER: &str = "t_ns,len,truesize,ecn,class,gso_size";

fn read(stream: impl Read + Send) -> Result<Vec<Arrival>, String> {
    let mut arrivals = trace::read(stream, 1500).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    while let Some(arrival) = arrivals.next_arrival().map_err(|error| error.to_string())? {
        all.push(arrival);
    }
    Ok(all)
}

/// As editors on Windows save it.
#[test]
fn a_byte_order_mark_is_no_part_of_the_header() {
    for before in ["", "# of mine\n"] {
        let text = format!("\u{feff}{before}{HEADER}\n0,1514,2304,0,-1,0\n");
        assert_eq!(read(text.as_bytes()).unwrap().len(), 1, "{text}");
    }
    assert!(read(format!("\u{feff}\u{feff}{HEADER}\n").as_bytes()).is_err());
}

/// Others' compressors at their best do what ours do not: these files are of xz 5.4 (`-9e`) and zstd 1.5 (`-19`, with a checksum).
#[test]
fn what_others_compressed_is_read() {
    let text: String = (0..12_000_u64)
        .map(|number| {
            let (t_ns, length) =
                (number * 12_000 + number * number % 977, 60 + number * 7919 % 1455);
            format!("{t_ns},{length},2304,{},{},0\n", number % 4, number % 3)
        })
        .collect();
    let whole = read(format!("{HEADER}\n{text}").as_bytes()).unwrap();
    let file = |name: &str| {
        std::fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let [xz, zstd] = ["trace.csv.xz", "trace.csv.zst"].map(file);
    assert!(read(&xz[..]).unwrap() == whole && read(&zstd[..]).unwrap() == whole);

    // Frames one after the other, some to be skipped, are one stream; a wrong checksum is found.
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let second = crate::common::zstd(b"144000000000,100,100,0,0,0\n");
    let frames = [&zstd, &skipped, &second, &skipped].map(Vec::as_slice).concat();
    let all = read(&frames[..]).unwrap();
    assert!(all.len() == 12_001 && all[..12_000] == whole);
    let mut wrong = zstd.clone();
    *wrong.last_mut().unwrap() ^= 1;
    assert!(read(&wrong[..]).unwrap_err().contains("checksum"));
    let cut = [&zstd, &skipped[..9]].concat();
    let mut arrivals = trace::read(&cut[..], 1500).unwrap();
    while arrivals.next_arrival().unwrap().is_some() {}
    assert!(arrivals.notices().last().unwrap().contains("end too early"));
}

#[test]
fn a_line_is_a_packet() {
    let text =
        format!("# a comment\n{HEADER}\n\n7,1514,2282,1,-1,0\r\n# more\n9,9000,9999,3,2,1448");
    let expected = [
        Arrival {
            at: Instant::from_nanos(7),
            length: 1514,
            memory: 2282,
            ecn: Ecn::Ect1,
            class: None,
            gso_size: 0,
            flow: 0,
        },
        Arrival {
            at: Instant::from_nanos(9),
            length: 9000,
            memory: 9999,
            ecn: Ecn::Ce,
            class: Some(Class::LowLatency),
            gso_size: 1448,
            flow: 0,
        },
    ];
    assert_eq!(read(text.as_bytes()).unwrap(), expected);
}

#[test]
fn a_class_that_dualpi2_does_not_have_counts_as_none() {
    let text = format!("{HEADER}\n0,100,100,0,3,0\n0,100,100,0,0,0\n");
    let classes: Vec<_> = read(text.as_bytes()).unwrap().iter().map(|a| a.class).collect();
    assert_eq!(classes, [None, Some(Class::Classic)]);
}

#[test]
fn bad_lines_are_told_by_their_number() {
    for (lines, message) in [
        (
            "1,2,3,0,-1\n",
            "line 3: 5 fields instead of 6; expected t_ns,len,truesize,ecn,class,gso_size",
        ),
        (
            "1,2,3,0,-1,0,0\n",
            "line 3: 7 fields instead of 6; expected t_ns,len,truesize,ecn,class,gso_size",
        ),
        ("1,0,3,0,-1,0\n", "line 3: len is 0; a packet has at least 1 byte"),
        ("1,2,3,4,-1,0\n", "line 3: ecn is \"4\"; expected 0 to 3"),
        ("1,2,3,0,-2,0\n", "line 3: class is \"-2\"; expected -1 to 65535"),
        ("-1,2,3,0,-1,0\n", "line 3: t_ns is \"-1\"; expected 0 to 9223372036854775807"),
        ("1,x,3,0,-1,0\n", "line 3: len is \"x\"; expected 1 to 4294967295"),
        ("1,4294967296,3,0,-1,0\n", "line 3: len is \"4294967296\"; expected 1 to 4294967295"),
        ("9,2,3,0,-1,0\n\n8,2,3,0,-1,0\n", "line 5: time goes backwards: t_ns is 8 after 9"),
        (
            "1,66,3,0,-1,1448\n",
            "line 3: gso_size is 1448 and len 66; an aggregate is longer than its headers, 66 bytes, and has at most 65535 segments",
        ),
        (
            "1,70000,3,0,-1,1\n",
            "line 3: gso_size is 1 and len 70000; an aggregate is longer than its headers, 66 bytes, and has at most 65535 segments",
        ),
    ] {
        let text = format!("# comment\n{HEADER}\n{lines}");
        assert_eq!(read(text.as_bytes()).unwrap_err(), message);
    }
    let long = format!("{HEADER}\n{}1,2,3,0,-1,0\n", "0".repeat(300));
    assert_eq!(
        read(long.as_bytes()).unwrap_err(),
        "line 2: longer than 256 bytes; expected t_ns,len,truesize,ecn,class,gso_size"
    );
    assert_eq!(
        read(&b"time,size\n1,2\n"[..]).unwrap_err(),
        "line 1: expected the header t_ns,len,truesize,ecn,class,gso_size, found \"time,size\""
    );
    assert!(read(&b""[..]).unwrap_err().starts_with("empty"));
}

/// A stream that gives a few bytes at a time, as pipes may.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.1.min(buffer.len());
        Read::read(&mut self.0, &mut buffer[..most])
    }
}

fn arrival() -> impl Strategy<Value = (u32, u32, u32, u8, i32, u32)> {
    let gso = prop_oneof![3 => Just(0_u32), 1 => 100..3000_u32];
    (0..2_000_000_u32, 67..9_000_u32, 1..100_000_u32, 0..4_u8, -1..5_i32, gso)
}

fn csv(arrivals: &[(u32, u32, u32, u8, i32, u32)]) -> String {
    let mut text = format!("{HEADER}\n");
    let mut now = 0_u64;
    for (wait, length, memory, ecn, class, gso_size) in arrivals {
        now += u64::from(*wait);
        text += &format!("{now},{length},{memory},{ecn},{class},{gso_size}\n");
    }
    text
}

proptest! {
    /// However the stream is cut into pieces, and however it is compressed, it says the same.
    #[test]
    fn pieces_and_compression_change_nothing(
        arrivals in prop::collection::vec(arrival(), 0..300),
        piece in 1..500_usize,
    ) {
        let text = csv(&arrivals);
        let whole = read(text.as_bytes()).unwrap();
        prop_assert_eq!(whole.len(), arrivals.len());
        prop_assert_eq!(&read(Trickle(text.as_bytes(), piece)).unwrap(), &whole);

        let mut gzip = Vec::new();
        let level = flate2::Compression::fast();
        flate2::read::GzEncoder::new(text.as_bytes(), level).read_to_end(&mut gzip).unwrap();
        for compressed in [gzip, xz(text.as_bytes()), zstd(text.as_bytes())] {
            prop_assert_eq!(&read(&compressed[..]).unwrap(), &whole);
            // The last byte missing is noticed, and what is there is a beginning of the whole.
            let cut = &compressed[..compressed.len() - 1];
            match trace::read(cut, 1500) {
                Err(error) => prop_assert!(error.to_string().starts_with("truncated: "), "{error}"),
                Ok(mut arrivals) => {
                    let mut count = 0;
                    while let Some(arrival) = arrivals.next_arrival().unwrap() {
                        prop_assert_eq!(arrival, whole[count]);
                        count += 1;
                    }
                    let notices = arrivals.notices();
                    prop_assert!(notices.last().unwrap().contains("end too early"), "{notices:?}");
                }
            }
        }
    }

    #[test]
    fn no_bytes_upset_the_readers(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0..7_usize) {
        let pcapng = [&[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..],
            &[0xff; 8], &[28, 0, 0, 0]].concat();
        let pcap = [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 8], &[0, 0, 4, 0, 1, 0, 0, 0]].concat();
        let csv = format!("{HEADER}\n").into_bytes();
        let start: &[u8] = [&[][..], &[0x1f, 0x8b], &[0xfd, b'7', b'z', b'X', b'Z', 0], &[0x28, 0xb5, 0x2f, 0xfd],
            &pcap, &pcapng, &csv][kind];
        let _ = read(&[start, &bytes].concat()[..]);
    }

    /// Each packet, or each of its segments, leaves or is dropped, and the books say so.
    #[test]
    fn every_packet_is_accounted_for(
        arrivals in prop::collection::vec(arrival(), 0..300),
        rate in 100_000..1_000_000_000_u64,
        qdisc in prop::sample::select(vec!["dualpi2", "dualpi2 limit 5", "dualpi2 no_split_gso drop_enqueue",
            "pfifo limit 3", "bfifo limit 20kb"]),
    ) {
        let text = csv(&arrivals);
        let specs = [grammar::parse(qdisc).unwrap().spec];
        let settings = Settings { rate: Rate::from_bits_per_second(rate), mtu: 1500, seed: Settings::DEFAULT_SEED };
        let mut replay = Replay::new(&specs, &settings, Some(EventLog::new(Vec::new())));
        let mut expected = 0;
        for arrival in read(text.as_bytes()).unwrap() {
            replay.arrive(&arrival);
            let split = qdisc.starts_with("dualpi2") && !qdisc.contains("no_split") && arrival.gso_size > 0;
            let payload = arrival.length - 66;
            expected += if split { u64::from(payload.div_ceil(arrival.gso_size)) } else { 1 };
        }
        let (outcomes, log) = replay.finish().unwrap();
        let (outcome, log) = (&outcomes[0], String::from_utf8(log.unwrap()).unwrap());
        let counters = outcome.stats.counters;
        prop_assert_eq!(outcome.total.packets_in(), expected);
        prop_assert_eq!(outcome.total.packets_out, counters.sent_packets);
        prop_assert_eq!(outcome.total.bytes_out, counters.sent_bytes);
        prop_assert_eq!(outcome.total.drops.total(), counters.drops);
        prop_assert_eq!(counters.backlog_packets, 0);
        let events = |event: &str| log.lines().filter(|line| line.contains(event)).count() as u64;
        prop_assert_eq!(events(",out"), counters.sent_packets);
        prop_assert_eq!(events(",drop_"), counters.drops);
        if let Some(delays) = outcome.total.delays() {
            prop_assert!(delays.min <= delays.p50 && delays.p50 <= delays.p95);
            prop_assert!(delays.p95 <= delays.p99 && delays.p99 <= delays.max);
        }
        // The link carries no more than its rate, but for the rounding of each packet's time.
        prop_assert!(outcome.delivered() <= settings.rate);
    }
}
