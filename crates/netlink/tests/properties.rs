//! Whatever the bytes, reading them ends, and what was read can be shown.
#![cfg(target_os = "linux")]

use dualq_netlink::{Handle, Queue};
use dualq_qdisc::grammar::KINDS;
use dualq_qdisc::show;
use proptest::collection::vec;
use proptest::prelude::*;

const LINK: u32 = 3;
const RTM_NEWQDISC: u16 = 36;
const RTM_NEWTCLASS: u16 = 40;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_APP: u16 = 4;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(kind: u16, handle: Handle, parent: Handle, attributes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + 20 + attributes.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend([0; 4]);
    for number in [LINK, handle.as_raw(), parent.as_raw(), 0] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(attributes);
    bytes
}

fn read_and_show(answer: &[u8]) -> Vec<Queue> {
    let queues = Queue::read(answer, LINK, 1000);
    for queue in &queues {
        if let Some(config) = &queue.config {
            assert!(!show::text(config).is_empty() && !show::json(config).is_empty());
            if let Some(stats) = &queue.stats {
                assert!(show::text_with_stats(config, stats).ends_with('\n'));
                assert!(show::json_with_stats(config, stats).contains_key("qlen"));
            }
        }
    }
    queues
}

/// Numbers, at which structures are more often whole than bytes by chance are.
fn words(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![Just(0), Just(1), Just(3), Just(10), Just(u32::MAX), any::<u32>()];
    vec(word, 0..most).prop_map(|words| words.into_iter().flat_map(u32::to_ne_bytes).collect())
}

fn attributes() -> impl Strategy<Value = Vec<u8>> {
    let one = (0..20_u16, prop_oneof![words(12), vec(any::<u8>(), 0..50)]);
    vec(one, 0..40)
        .prop_map(|list| list.iter().flat_map(|(kind, value)| attribute(*kind, value)).collect())
}

fn entry() -> impl Strategy<Value = Vec<u8>> {
    let options = prop_oneof![
        attributes(),
        words(12),
        (words(7), attributes()).prop_map(|(head, rest)| [head, rest].concat())
    ];
    let class = prop::bool::weighted(0.2);
    (class, 0..KINDS.len(), 0..4_u16, 0..4_u16, options, words(40)).prop_map(
        |(class, kind, handle, parent, options, own)| {
            let body = [
                attribute(TCA_KIND, &[KINDS[kind].as_bytes(), &[0]].concat()),
                attribute(TCA_OPTIONS, &options),
                attribute(TCA_STATS2, &attribute(TCA_STATS_APP, &own)),
            ]
            .concat();
            if class {
                let handle = Handle::class(handle, 1);
                message(RTM_NEWTCLASS, handle, Handle::ROOT, &body)
            } else {
                // They may well be inside one another.
                message(RTM_NEWQDISC, Handle::qdisc(handle), Handle::class(parent, 1), &body)
            }
        },
    )
}

proptest! {
    #[test]
    fn any_bytes(answer in vec(any::<u8>(), 0..300)) {
        read_and_show(&answer);
    }

    #[test]
    fn any_attributes(entries in vec(entry(), 0..8)) {
        let of_qdiscs = entries.iter().filter(|bytes| bytes[4..6] == RTM_NEWQDISC.to_ne_bytes());
        let count = of_qdiscs.count();
        prop_assert_eq!(read_and_show(&entries.concat()).len(), count);
    }

    #[test]
    fn any_damage(
        entries in vec(entry(), 1..4),
        position in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        end in any::<prop::sample::Index>(),
    ) {
        let mut answer = entries.concat();
        let position = position.index(answer.len());
        answer[position] = byte;
        answer.truncate(end.index(answer.len()) + 1);
        read_and_show(&answer);
    }
}

#[test]
fn disciplines_inside_each_other_in_a_circle_come_to_an_end() {
    let body = attribute(TCA_KIND, b"tbf\0");
    let parameters = [[0; 32].as_slice(), &[1; 4]].concat();
    let body = [body, attribute(TCA_OPTIONS, &attribute(1, &parameters))].concat();
    let one = message(RTM_NEWQDISC, Handle::qdisc(1), Handle::class(2, 1), &body);
    let other = message(RTM_NEWQDISC, Handle::qdisc(2), Handle::class(1, 1), &body);
    let queues = read_and_show(&[one, other].concat());
    assert!(queues.iter().all(|queue| queue.config.is_some() && queue.stats.is_some()));
}
