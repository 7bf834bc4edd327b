//! TCP connections to other machines.

use std::collections::BTreeMap;

use dualq_netlink::{Connection, Netlink};
use dualq_units::tc_time;

use super::Connections;
use super::reader::Reader;

pub(super) fn read(reader: &mut Reader<'_>, netlink: &mut Netlink) -> Option<Connections> {
    match netlink.connections() {
        Ok(connections) => Some(summary(&connections)),
        Err(error) => {
            reader.unread("TCP connections", &error.to_string());
            None
        }
    }
}

fn summary(connections: &[Connection]) -> Connections {
    let elsewhere: Vec<&Connection> =
        connections.iter().filter(|connection| connection.leaves_the_machine()).collect();
    let mut by_congestion_control = BTreeMap::new();
    for name in elsewhere.iter().filter_map(|connection| connection.congestion_control.clone()) {
        *by_congestion_control.entry(name).or_default() += 1;
    }
    let mut times: Vec<_> = elsewhere.iter().filter_map(|connection| connection.min_rtt).collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2);
    Connections {
        established: u32::try_from(elsewhere.len()).unwrap_or(u32::MAX),
        by_congestion_control,
        min_rtt: median.map(|time| {
            tc_time::format_micros(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dualq_netlink::Sent;

    use super::*;

    #[test]
    fn connections_to_the_machine_itself_do_not_count() {
        let connection = |remote: &str, control: &str, millis| Connection {
            cookie: [0; 8],
            local: "192.0.2.2".parse().unwrap(),
            remote: remote.parse().unwrap(),
            congestion_control: Some(control.to_owned()),
            rtt: None,
            min_rtt: Some(Duration::from_millis(millis)),
            sent: Sent::default(),
        };
        let all = [
            connection("127.0.0.1", "cubic", 1),
            connection("192.0.2.2", "cubic", 1),
            connection("198.51.100.1", "bbr", 48),
            connection("198.51.100.2", "bbr", 9),
            connection("2001:db8::1", "cubic", 80),
        ];
        let summary = summary(&all);
        assert_eq!(summary.established, 3);
        assert_eq!(summary.min_rtt.as_deref(), Some("48ms"));
        let expected = BTreeMap::from([("bbr".to_owned(), 2), ("cubic".to_owned(), 1)]);
        assert_eq!(summary.by_congestion_control, expected);
    }
}
