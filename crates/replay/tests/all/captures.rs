//! Captures of every kind that is read, made here byte by byte from their specifications.

use crate::common::{xz, zstd};
use dualq_qdisc::Ecn;
use dualq_replay::{Arrival, EventLog, Replay, Settings, trace};
use dualq_units::Rate;

const ETHERNET: u16 = 1;
const RAW: u16 = 101;
const LINUX_COOKED: u16 = 113;
const LINUX_COOKED_2: u16 = 276;

/// An IPv4 or IPv6 header with the given ECN field, and a little payload.
fn ip(version: u8, ecn: u8) -> Vec<u8> {
    let mut packet = vec![0; 60];
    if version == 4 {
        packet[0] = 0x45;
        packet[1] = 0b1010_1000 | ecn;
        packet[2..4].copy_from_slice(&60_u16.to_be_bytes());
        packet[8] = 64;
        packet[9] = 253;
    } else {
        packet[0] = 0x60 | 0b1010;
        packet[1] = (0b1000 | ecn) << 4;
        packet[4..6].copy_from_slice(&20_u16.to_be_bytes());
        packet[6] = 59;
    }
    packet
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

fn ethernet(tags: &[u16], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for tag in tags {
        frame.extend(tag.to_be_bytes());
        frame.extend(7_u16.to_be_bytes());
    }
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame
}

fn cooked(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 14];
    packet.extend(ether_type.to_be_bytes());
    packet.extend(payload);
    packet
}

fn cooked_2(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = ether_type.to_be_bytes().to_vec();
    packet.extend([0; 18]);
    packet.extend(payload);
    packet
}

/// A pcap file: `(seconds, fraction, length on the wire, what was captured)` each.
fn pcap(magic: u32, link: u16, packets: &[(u32, u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(magic.to_le_bytes());
    file.extend(2_u16.to_le_bytes());
    file.extend(4_u16.to_le_bytes());
    file.extend([0; 8]);
    file.extend(262_144_u32.to_le_bytes());
    file.extend(u32::from(link).to_le_bytes());
    for (seconds, fraction, length, data) in packets {
        for word in [*seconds, *fraction, data.len() as u32, *length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(data);
    }
    file
}

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// A block of a pcapng file.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut padded = body.to_vec();
    padded.resize(body.len().next_multiple_of(4), 0);
    let length = padded.len() as u32 + 12;
    [&kind.to_le_bytes()[..], &length.to_le_bytes(), &padded, &length.to_le_bytes()].concat()
}

fn section() -> Vec<u8> {
    let body = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    block(0x0a0d_0d0a, &body)
}

/// An interface whose times are in units of 10^-`exponent` s.
fn interface(link: u16, exponent: u8) -> Vec<u8> {
    described(link, &[9, 0, 1, 0, exponent, 0, 0, 0])
}

/// An interface with a name of four bytes, whose times are in microseconds.
fn named(link: u16, name: &str) -> Vec<u8> {
    described(link, &[&[2, 0, 4, 0], name.as_bytes()].concat())
}

fn described(link: u16, option: &[u8]) -> Vec<u8> {
    let mut body = link.to_le_bytes().to_vec();
    body.extend([0; 6]);
    body.extend(option);
    body.extend([0; 4]);
    block(1, &body)
}

fn enhanced(interface: u32, ticks: u64, length: u32, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for word in [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, length] {
        body.extend(word.to_le_bytes());
    }
    body.extend(data);
    block(6, &body)
}

fn read(file: &[u8]) -> Result<Vec<Arrival>, String> {
    let mut arrivals = trace::read(file, 1500).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    while let Some(arrival) = arrivals.next_arrival().map_err(|error| error.to_string())? {
        all.push(arrival);
    }
    Ok(all)
}

/// `(time, length, ECN)` of each packet.
fn outline(file: &[u8]) -> Vec<(u64, u32, Ecn)> {
    let arrivals = read(file).unwrap();
    arrivals.iter().map(|arrival| (arrival.at.as_nanos(), arrival.length, arrival.ecn)).collect()
}

#[test]
fn times_lengths_and_ecn_come_from_a_pcap() {
    let frame = |ecn| ethernet(&[], IPV4, &ip(4, ecn));
    let file = pcap(
        MICROSECONDS,
        ETHERNET,
        &[
            (100, 999_999, 1514, frame(0)),
            (101, 0, 74, frame(1)),
            (101, 250_000, 600, frame(2)),
            (102, 0, 74, frame(3)),
        ],
    );
    assert_eq!(
        outline(&file),
        [
            (0, 1514, Ecn::NotEct),
            (1_000, 74, Ecn::Ect1),
            (250_001_000, 600, Ecn::Ect0),
            (1_000_001_000, 74, Ecn::Ce),
        ]
    );
    let file = pcap(NANOSECONDS, ETHERNET, &[(1, 5, 74, frame(1)), (1, 12, 74, frame(1))]);
    assert_eq!(outline(&file)[1].0, 7);
    let memory = read(&file).unwrap()[0].memory;
    assert_eq!(memory, 74 + 768, "as the segments of an aggregate are counted");
}

#[test]
fn every_link_type_is_counted_as_ethernet() {
    for (link, data, length, expected) in [
        (ETHERNET, ethernet(&[], IPV6, &ip(6, 1)), 74, (74, Ecn::Ect1)),
        (ETHERNET, ethernet(&[0x8100], IPV4, &ip(4, 2)), 78, (78, Ecn::Ect0)),
        (ETHERNET, ethernet(&[0x88a8, 0x8100], IPV6, &ip(6, 3)), 82, (82, Ecn::Ce)),
        // Not IP: nothing can be marked on it.
        (ETHERNET, ethernet(&[], 0x0806, &[0; 28]), 42, (42, Ecn::NotEct)),
        (RAW, ip(4, 1), 60, (74, Ecn::Ect1)),
        (RAW, ip(6, 2), 60, (74, Ecn::Ect0)),
        (228, ip(4, 3), 60, (74, Ecn::Ce)),
        (229, ip(6, 3), 60, (74, Ecn::Ce)),
        (LINUX_COOKED, cooked(IPV4, &ip(4, 1)), 76, (74, Ecn::Ect1)),
        (LINUX_COOKED, cooked(IPV6, &ip(6, 1)), 76, (74, Ecn::Ect1)),
        (LINUX_COOKED_2, cooked_2(IPV4, &ip(4, 2)), 80, (74, Ecn::Ect0)),
        // Cut off by a short snaplen right behind the IP header, or within it.
        (ETHERNET, ethernet(&[], IPV4, &ip(4, 1)[..20]), 1514, (1514, Ecn::Ect1)),
        (ETHERNET, ethernet(&[], IPV4, &ip(4, 1)[..6]), 1514, (1514, Ecn::NotEct)),
    ] {
        let (_, length, ecn) = outline(&pcap(MICROSECONDS, link, &[(0, 0, length, data)]))[0];
        assert_eq!((length, ecn), expected, "link type {link}");
    }
    let unknown = read(&pcap(MICROSECONDS, 105, &[(0, 0, 60, ip(4, 0))])).unwrap_err();
    assert!(unknown.contains("link type 105 is not supported"), "{unknown}");
}

#[test]
fn flows_are_told_apart_by_addresses_protocol_and_ports() {
    let flow = |change: &dyn Fn(&mut Vec<u8>), version| {
        let mut packet = ip(version, 0);
        // UDP behind an IPv4 header of 20 bytes or an IPv6 header of 40.
        let (protocol_at, header) = if version == 4 { (9, 20) } else { (6, 40) };
        packet[protocol_at] = 17;
        packet[header..header + 6].copy_from_slice(&[0x30, 0x39, 0, 53, 0, 20]);
        change(&mut packet);
        read(&pcap(MICROSECONDS, RAW, &[(0, 0, 60, packet)])).unwrap()[0].flow
    };
    for (version, source, ecn, port) in [(4, 12, 1, 21), (6, 8, 1, 43)] {
        let plain = flow(&|_| (), version);
        assert_eq!(flow(&|packet| packet[ecn] ^= 0b11, version), plain, "the ECN field is no part");
        assert_ne!(flow(&|packet| packet[source] ^= 1, version), plain);
        assert_ne!(flow(&|packet| packet[port] ^= 1, version), plain);
    }
    let not_ip = pcap(MICROSECONDS, ETHERNET, &[(0, 0, 60, ethernet(&[], 0x0806, &[0; 28]))]);
    assert_eq!(read(&not_ip).unwrap()[0].flow, 0);
}

#[test]
fn a_pcapng_has_sections_and_interfaces_of_their_own_time() {
    let v4 = ethernet(&[], IPV4, &ip(4, 1));
    let file = [
        section(),
        interface(ETHERNET, 6),
        interface(RAW, 9),
        enhanced(0, 2_000_000, 74, &v4),
        enhanced(1, 2_000_000_123, 60, &ip(6, 2)),
        // Name resolution: of no interest.
        block(4, &[0; 4]),
        section(),
        interface(LINUX_COOKED, 3),
        enhanced(0, 2_500, 76, &cooked(IPV4, &ip(4, 3))),
    ]
    .concat();
    assert_eq!(
        outline(&file),
        [(0, 74, Ecn::Ect1), (123, 74, Ecn::Ect0), (500_000_000, 74, Ecn::Ce)]
    );
    let stray = [section(), interface(RAW, 6), enhanced(1, 0, 60, &ip(4, 0))].concat();
    assert!(read(&stray).unwrap_err().contains("interface 1"));
    let timeless = [section(), interface(RAW, 6), block(3, &[60, 0, 0, 0])].concat();
    assert!(read(&timeless).unwrap_err().contains("no time"));
}

#[test]
fn packets_of_one_interface_keep_their_numbers_and_no_other_hinders_them() {
    const BLUETOOTH: u16 = 187;
    let data = ip(4, 1);
    let other = enhanced(0, 0, 60, &[1, 2, 3]);
    let section = [section(), named(BLUETOOTH, "hci0"), named(RAW, "eth0")].concat();
    let packet = |length| enhanced(1, 0, length, &data);
    let only = |name: &str, file: &[u8]| {
        let mut arrivals = trace::read(file, 1500).unwrap().of_interface(name).unwrap();
        let mut count = 0;
        loop {
            match arrivals.next_arrival() {
                Ok(Some(_)) => count += 1,
                Ok(None) => return Ok((count, arrivals.notices())),
                Err(error) => return Err(error.to_string()),
            }
        }
    };
    // What is taken of both sections is of one interface.
    let file = [&section[..], &other, &packet(60), &section, &other, &packet(60)].concat();
    assert_eq!(only("eth0", &file), Ok((2, vec![])));
    assert!(only("wlan", &file).unwrap_err().ends_with("those of: hci0, eth0"));
    // Numbers are those that other programs show, which count all packets.
    let damaged = [&file[..], &other, &packet(0)].concat();
    assert!(only("eth0", &damaged).unwrap_err().starts_with("packet 6: "));
    let cut = [&file[..], &other, &packet(60)[..20]].concat();
    let (count, notices) = only("eth0", &cut).unwrap();
    assert_eq!(count, 2);
    assert!(notices[0].contains("in the middle of packet 6,"), "{notices:?}");
    assert!(only("wlan", &cut).unwrap_err().ends_with("those of: hci0, eth0"));
}

#[test]
fn interfaces_of_earlier_sections_are_told_too() {
    let data = ip(4, 1);
    let of = |name| [section(), named(RAW, name), enhanced(0, 0, 60, &data)].concat();
    let (packets, notices) = read_and_notices(&[of("eth0"), of("eth1"), of("eth0")].concat());
    assert_eq!(packets, 3);
    let told = "packets of 2 interfaces were taken for one stream: eth0, eth1; --interface takes one of these";
    assert_eq!(notices, [told]);
}

#[test]
fn long_packets_are_aggregates() {
    let data = ethernet(&[], IPV4, &ip(4, 1));
    let file = pcap(MICROSECONDS, ETHERNET, &[(0, 0, 1514, data.clone()), (0, 0, 29_026, data)]);
    let sizes: Vec<u32> = read(&file).unwrap().iter().map(|arrival| arrival.gso_size).collect();
    assert_eq!(sizes, [0, 1448]);
}

#[test]
fn a_little_disorder_is_mended_and_told() {
    let data = ip(4, 0);
    let packets = |late| [(10, 500, 60, data.clone()), (10, late, 60, data.clone())];
    let file = pcap(MICROSECONDS, RAW, &packets(400));
    let mut arrivals = trace::read(&file[..], 1500).unwrap();
    arrivals.next_arrival().unwrap();
    assert_eq!(arrivals.next_arrival().unwrap().unwrap().at.as_nanos(), 0);
    let notices = arrivals.notices();
    assert!(notices[0].contains("1 of 2 packets stand out of order by up to 100µs"), "{notices:?}");

    let far = [(12, 0, 60, data.clone()), (10, 0, 60, data)];
    let error = read(&pcap(MICROSECONDS, RAW, &far)).unwrap_err();
    assert!(error.starts_with("packet 2: time goes backwards by 2s"), "{error}");
}

#[test]
fn damage_is_told() {
    let data = ip(4, 0);
    let whole = pcap(MICROSECONDS, RAW, &[(0, 0, 60, data.clone()), (0, 1, 60, data.clone())]);
    for cut in [30, 50] {
        let error = read(&whole[..cut]).unwrap_err();
        assert!(error.contains("truncated: the capture ends in the middle of packet 1"), "{error}");
    }
    let error = read(&whole[..10]).unwrap_err();
    assert!(error.contains("truncated"), "{error}");
    let nothing = read(&pcap(MICROSECONDS, RAW, &[(0, 0, 0, Vec::new())])).unwrap_err();
    assert!(nothing.contains("length on the wire is 0"), "{nothing}");

    // A length that reaches over all packets behind it is damage, not an end.
    let mut packets = pcap(MICROSECONDS, RAW, &vec![(0, 0, 60, data); 5000]);
    packets[24 + 76 + 8..][..4].copy_from_slice(&1_000_000_u32.to_le_bytes());
    assert!(read(&packets).unwrap_err().contains("in the middle of packet 2"));
}

/// What is read before the stream ends, and what is said about it.
fn read_and_notices(file: &[u8]) -> (usize, Vec<String>) {
    let mut arrivals = trace::read(file, 1500).unwrap();
    let mut count = 0;
    while arrivals.next_arrival().unwrap().is_some() {
        count += 1;
    }
    (count, arrivals.notices())
}

#[test]
fn a_cut_record_loses_only_itself() {
    let data = ip(4, 0);
    let whole = pcap(MICROSECONDS, RAW, &[(0, 0, 60, data.clone()), (0, 1, 60, data.clone())]);
    for left in [1, 15, 16, 17, 75] {
        let (packets, notices) = read_and_notices(&whole[..24 + 76 + left]);
        assert_eq!(packets, 1);
        let expected = format!("ends in the middle of packet 2, of which {left} bytes are there");
        assert!(notices[0].contains(&expected), "{notices:?}");
    }
    assert_eq!(read_and_notices(&whole), (2, Vec::new()));

    let blocks = [section(), interface(RAW, 6), enhanced(0, 0, 60, &data)].concat();
    let cut = [&blocks[..], &enhanced(0, 9, 60, &data)[..50]].concat();
    let (packets, notices) = read_and_notices(&cut);
    assert_eq!(packets, 1);
    assert!(notices[0].contains("in the middle of packet 2"), "{notices:?}");
    assert!(read(&blocks[..blocks.len() - 6]).unwrap_err().contains("truncated"));
}

#[test]
fn compressed_data_that_end_too_early_lose_only_their_end() {
    use std::io::Write as _;
    // Frames that do not compress away.
    let packets: Vec<_> = (0..4000_u32)
        .map(|number| {
            let mut data = ip(4, 0);
            data[40..44].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_be_bytes());
            (number, 0, 60, data)
        })
        .collect();
    let capture = pcap(MICROSECONDS, RAW, &packets);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&capture).unwrap();
    // What xz has is stored as it is: three quarters of the packets are there, but for those of the last piece.
    let files = [(gzip.finish().unwrap(), 1000), (xz(&capture), 2900), (zstd(&capture), 1000)];
    for (file, least) in files {
        let (packets, notices) = read_and_notices(&file);
        assert_eq!((packets, notices.len()), (4000, 0));
        match trace::read(&file[..file.len() * 3 / 4], 1500) {
            // A decoder may keep what is there until its block is whole.
            Err(error) => assert!(error.to_string().starts_with("truncated: the compressed data")),
            Ok(_) => {
                let (packets, notices) = read_and_notices(&file[..file.len() * 3 / 4]);
                assert!((least..4000).contains(&packets), "{packets}");
                assert!(notices.last().unwrap().contains("end too early"), "{notices:?}");
            }
        }
    }
}

#[test]
fn a_malformed_block_is_named_and_left_out() {
    let data = ip(4, 0);
    let packet = |ticks| enhanced(0, ticks, 60, &data);
    // Decryption secrets of a length that does not fit into their block.
    let secrets = block(10, &[0x54, 0x4c, 0x53, 0x4b, 0xff, 0xff, 0, 0, 1, 2, 3, 4]);
    let around = |middle: &[u8]| {
        [&section()[..], &interface(RAW, 6), &packet(0), middle, &packet(5)].concat()
    };
    for (middle, more) in
        [(secrets.clone(), ""), ([&secrets[..], &secrets].concat(), ", the first of 2 such blocks")]
    {
        let (packets, notices) = read_and_notices(&around(&middle));
        assert_eq!(packets, 2);
        let told =
            format!("a block of type 0xa before packet 2 is malformed; it was left out{more}");
        assert_eq!(notices, [told]);
    }
    // A packet or an interface cannot be left out.
    for kind in [1, 6] {
        let error = read(&around(&block(kind, &[]))).unwrap_err();
        let told = format!("packet 2: corrupt: the block of type {kind:#x} that begins here");
        assert!(error.starts_with(&told), "{error}");
    }
}

/// A machine without a battery for its clock starts in 1970 and is then told the time.
#[test]
fn a_clock_that_was_set_meanwhile_is_told_and_costs_nothing() {
    let data = ethernet(&[], IPV4, &ip(4, 1));
    let burst = |second: u32| {
        let data = data.clone();
        (0..200).map(move |number| (second, number * 10, 1514, data.clone()))
    };
    let packets: Vec<_> = burst(100).chain(burst(1_790_000_000)).collect();
    let file = pcap(MICROSECONDS, ETHERNET, &packets);
    let (count, notices) = read_and_notices(&file);
    assert_eq!(count, 400);
    assert!(
        notices[0].starts_with("packet 201 comes 20717 days after the one before"),
        "{notices:?}"
    );

    let lines = ["dualpi2", "dualpi2 target 0ms", "pie", "htb rate 20mbit leaf pie", "pfifo"];
    let specs = lines.map(|line| dualq_qdisc::grammar::parse(line).unwrap().spec);
    let settings = Settings { rate: Rate::from_mbit(50), mtu: 1500, seed: Settings::DEFAULT_SEED };
    let mut replay = Replay::new(&specs, &settings, Some(EventLog::new(Vec::new())));
    let mut arrivals = trace::read(&file[..], 1500).unwrap();
    while let Some(arrival) = arrivals.next_arrival().unwrap() {
        replay.arrive(&arrival);
    }
    let (outcomes, events) = replay.finish().unwrap();
    for outcome in outcomes {
        assert_eq!(outcome.total.packets_in(), 400, "{}", outcome.spec);
    }
    let events = String::from_utf8(events.unwrap()).unwrap();
    assert!((4096..6000).contains(&events.lines().count()));
    assert_eq!(events.matches("\n# idle: no timer lines from ").count(), 1);
}
