//! Which sysctls, and why. What serves already is left alone.

use std::fmt::Write as _;
use std::time::Duration;

use dualq_units::Rate;

use super::linux::CC;
use super::queue::rate_words;
use super::{Profile, Requirements, boot};
use crate::Facts;
use crate::facts::Setting;
use crate::knowledge::{LEAST_UNSENT, WAKE};

/// A value that should be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    pub(super) key: &'static str,
    pub(super) value: String,
    pub(super) why: String,
    pub(super) source: &'static str,
    /// What somebody else's file makes of it at boot, if that does not serve.
    pub(super) against: Option<&'a Setting>,
}

impl<'a> Wanted<'a> {
    /// What a machine that has the sysctl should have: `value`, unless what is there `serves`.
    pub(super) fn of(
        facts: &'a Facts,
        key: &'static str,
        serves: &dyn Fn(&str) -> bool,
        value: &str,
        why: String,
        source: &'static str,
    ) -> Option<Self> {
        let now = plain(facts.sysctls.get(key)?);
        let value = if serves(&now) { now } else { value.to_owned() };
        let mut others = facts.settings.iter().filter(|setting| !boot::is_sysctl(&setting.file));
        let booted = others.rfind(|setting| setting.key == key);
        let against = booted.filter(|setting| {
            let booted = plain(&setting.value);
            booted != value && !serves(&booted)
        });
        Some(Self { key, value, why, source, against })
    }
}

/// A path, as far as it is known: what its bandwidth-delay product is.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) rate: Rate,
    pub(super) rtt: Duration,
    /// Where the round-trip time comes from.
    from: &'static str,
    /// Whose rate it is, if that is not the only one.
    of: &'static str,
}

/// The paths that socket buffers are for, which are the whole machine's: by the fastest of its interfaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    /// Of what leaves.
    pub(super) up: Option<Path>,
    /// Of what arrives.
    pub(super) down: Option<Path>,
    /// Whether the rate of what leaves is known of every interface: without that nobody knows the fastest, and nothing is limited by it.
    pub(super) all_up: bool,
}

/// What CoDel takes for most of the Internet (RFC 8289 §4.3).
const USUAL_RTT: Duration = Duration::from_millis(100);
/// And what is usual in a datacenter, generously.
const DATACENTER_RTT: Duration = Duration::from_millis(1);

/// A buffer holds two products, one that is in flight and one that waits behind a loss, and Linux takes as much again for its
/// own structures.
const PRODUCTS: u64 = 4;
/// tcp_mem counts in pages.
const PAGE: u64 = 4096;
/// What a buffer may be where nothing tells how much memory there is.
const UNKNOWN_MEMORY: u64 = 256 << 20;

impl Path {
    /// The path to plan for; `None` if no rate is known.
    pub(super) fn of(
        facts: &Facts,
        requirements: &Requirements,
        rate: Option<Rate>,
        of: &'static str,
    ) -> Option<Self> {
        let (rtt, from) = Self::rtt(facts, requirements);
        rate.filter(|rate| rate.as_bits_per_second() > 0).map(|rate| Self { rate, rtt, from, of })
    }

    /// The round-trip time to plan for, and where it is from.
    pub(super) fn rtt(facts: &Facts, requirements: &Requirements) -> (Duration, &'static str) {
        match (requirements.rtt, facts.min_rtt()) {
            (Some(rtt), _) => (rtt, "--rtt"),
            (None, Some(rtt)) => (rtt, "the median of the connections there are"),
            (None, None) if requirements.profile == Profile::Datacenter => {
                (DATACENTER_RTT, "assumed; give --rtt")
            }
            (None, None) => (USUAL_RTT, "assumed; give --rtt"),
        }
    }

    fn bytes_in(&self, time: Duration) -> u64 {
        let bits = u128::from(self.rate.as_bits_per_second()) * time.as_nanos() / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }

    /// The bandwidth-delay product in bytes.
    pub(super) fn product(&self) -> u64 {
        self.bytes_in(self.rtt)
    }

    fn says(&self) -> String {
        let rtt = self.rtt.as_secs_f64() * 1e3;
        format!(
            "{}{} x {rtt} ms ({}) = {} kB",
            rate_words(self.rate),
            self.of,
            self.from,
            self.product().div_ceil(1000)
        )
    }

    /// A buffer of so many products, no less than 64 KiB.
    pub(super) fn buffer(&self, products: u64) -> u64 {
        let step = 64 << 10;
        let needed = self.product().saturating_mul(products).max(step);
        needed.div_ceil(step).saturating_mul(step).min(i32::MAX as u64)
    }

    /// How large a buffer is, and why.
    pub(super) fn buffer_says(&self) -> String {
        format!("{}; it takes two of them, for one waits behind a loss", self.says())
    }
}

/// How much memory one socket's buffer may take, and why: half of what all of TCP may, which the kernel has taken from the
/// machine's memory.
fn memory(facts: &Facts) -> (u64, &'static str) {
    let pages = facts.sysctls.get("net.ipv4.tcp_mem").and_then(|value| {
        let most = plain(value);
        most.split(' ').nth(2)?.parse::<u64>().ok()
    });
    match pages {
        Some(pages) => {
            let bytes = pages.saturating_mul(PAGE) / 2;
            (bytes.max(64 << 10), "half of the memory that all of TCP may take (tcp_mem)")
        }
        None => (UNKNOWN_MEMORY, "for how much memory the machine has is not known"),
    }
}

fn rounded(bytes: u64) -> u64 {
    bytes.div_ceil(4096) * 4096
}

/// A value without the differences between tabs and spaces.
pub(super) fn plain(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What should be set on a Linux machine: only what it has, whatever it is now.
pub(super) fn wanted<'a>(
    facts: &'a Facts,
    requirements: &Requirements,
    cc: Option<&str>,
    paths: &Paths,
    one_flow: bool,
) -> Vec<Wanted<'a>> {
    let mut all = Vec::new();
    let mut want = |key, serves: &dyn Fn(&str) -> bool, value: String, why, source| {
        all.extend(Wanted::of(facts, key, serves, &value, why, source));
    };
    let never = |_: &str| false;
    let profile = requirements.profile;
    let now = facts.sysctls.get(CC).map(|now| plain(now));
    // Behind one queue it matters which it is, also to the next plan, which finds it running.
    let chosen = requirements.cc.is_some()
        || profile == Profile::Datacenter
        || now.as_deref() != cc
        || (one_flow && cc == Some("cubic") && profile.sends());
    if let Some(cc) = cc.filter(|_| chosen) {
        let (why, source) = match cc {
            "dctcp" => ("answers how much is marked, not whether", "RFC 8257"),
            "bbr" => (
                "sends at the rate that it measures, whatever is lost",
                "draft-cardwell-iccrg-bbr-congestion-control",
            ),
            "cubic" => ("fair to what the rest of the Internet uses", "RFC 9438"),
            _ => ("as it was asked for", "Documentation/networking/ip-sysctl.rst"),
        };
        want(CC, &never, cc.to_owned(), why.to_owned(), source);
    }
    if !profile.sends() {
        return all;
    }
    // BBR does not answer marks: it would only be spared the drops that everybody else gets.
    if cc != Some("bbr") {
        let (serving, why): (&[&str], _) = if profile == Profile::Datacenter {
            (&["1", "2", "3", "4", "5"], "DCTCP is nothing without ECN at both ends")
        } else {
            (&["1", "3", "4"], "asks for ECN, so that the queue can mark instead of drop")
        };
        let source = "RFC 3168 §6.1.1, RFC 8087 §2, Documentation/networking/ip-sysctl.rst";
        let serves = |now: &str| serving.contains(&now);
        want("net.ipv4.tcp_ecn", &serves, "1".to_owned(), why.to_owned(), source);
    }
    let limiting = paths.up.as_ref().filter(|_| paths.all_up);
    if let Some(path) = limiting.filter(|_| profile == Profile::LowLatency) {
        let least = path.bytes_in(WAKE).max(LEAST_UNSENT);
        let room = memory(facts).0 / (4 * PRODUCTS);
        let most = rounded((path.product() / 4).min(room).max(least));
        let serves = |now: &str| now.parse().is_ok_and(|now: u64| (least..=most).contains(&now));
        let wait = most as f64 * 8e3 / path.rate.as_bits_per_second() as f64;
        let what = if path.product() / 4 <= least {
            "what goes out while a sleeping program wakes up"
        } else if path.product() / 4 > room {
            "a sixteenth of the largest buffer that a socket may have here"
        } else {
            "a quarter of it"
        };
        let why = format!(
            "{}; {what} may wait unsent in a socket, {wait:.0} ms, so that programs decide late what goes next",
            path.says()
        );
        let source = "Documentation/networking/ip-sysctl.rst, tcp(7)";
        want("net.ipv4.tcp_notsent_lowat", &serves, most.to_string(), why, source);
    }
    let (room, from) = memory(facts);
    let buffers = [
        (
            "net.ipv4.tcp_rmem",
            &paths.down,
            "RFC 7323 §1.1, RFC 6182 §5.3, Documentation/networking/ip-sysctl.rst",
        ),
        ("net.ipv4.tcp_wmem", &paths.up, "RFC 7323 §1.1, Documentation/networking/ip-sysctl.rst"),
    ];
    for (key, path, source) in buffers {
        let Some(path) = path else { continue };
        let needed = path.buffer(PRODUCTS).min(room);
        let Some(now) = facts.sysctls.get(key) else { continue };
        let [least, usual, _] = *now.split_whitespace().collect::<Vec<_>>() else {
            continue;
        };
        let enough = |now: &str| {
            let most = now.split(' ').nth(2).and_then(|most| most.parse::<u64>().ok());
            most.is_some_and(|most| most >= needed)
        };
        let value = format!("{least} {usual} {needed}");
        let mut why = format!("{}, and half of a buffer is bookkeeping", path.buffer_says());
        if needed < path.buffer(PRODUCTS) {
            let _ = write!(why, "; no more than {} MiB, {from}", room >> 20);
        }
        want(key, &enough, value, why, source);
    }
    if profile != Profile::Datacenter {
        let serves = |now: &str| now != "0";
        let why =
            "finds the path's MTU where the ICMP messages that tell it are lost, as in tunnels"
                .to_owned();
        let source = "RFC 4821 §7.7, RFC 2923 §2.1";
        want("net.ipv4.tcp_mtu_probing", &serves, "1".to_owned(), why, source);
    }
    all
}
