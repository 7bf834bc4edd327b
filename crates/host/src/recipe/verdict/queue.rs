//! What a queue discipline's figures come to: as the doctor judges them once they are there.

use std::time::Duration;

use dualq_qdisc::Config;
use dualq_units::{Bytes, Rate, tc_time};

use super::Judge;
use crate::doctor::{LONG, late};
use crate::facts::Interface;

/// Segments with which a connection may begin (RFC 6928).
const FIRST_WINDOW: u64 = 10;

impl Judge<'_> {
    /// How a discipline makes something worse, if it does.
    pub(super) fn harmful_qdisc(
        &self,
        interface: Option<&Interface>,
        config: &Config,
    ) -> Option<String> {
        let mtu = interface.map_or(1500, |interface| interface.mtu);
        let packet = u64::from(mtu.saturating_add(14));
        let rate = self.link.map(|link| link.rate);
        match config {
            Config::Htb(htb) => {
                let leaf = htb.leaf.as_deref()?;
                self.harmful_leaf(leaf, packet, Some(htb.rate))
            }
            Config::Tbf(tbf) => {
                let leaf = tbf.leaf.as_deref()?;
                self.harmful_leaf(leaf, packet, Some(tbf.rate))
            }
            Config::Netem(_) => Some(
                "It is for experiments: what this machine sends it delays, loses or holds to a rate, without managing a queue."
                    .to_owned(),
            ),
            other => self.harmful_leaf(other, packet, rate),
        }
    }

    /// The same for a queue that is emptied at `rate`, if that is known.
    fn harmful_leaf(&self, config: &Config, packet: u64, rate: Option<Rate>) -> Option<String> {
        let packets = |limit: u32| u64::from(limit).saturating_mul(packet);
        let (aqm, limit) = match config {
            Config::Pfifo(pfifo) => return fifo(packets(pfifo.limit), packet, rate),
            Config::Bfifo(bfifo) => return fifo(bfifo.limit.0, packet, rate),
            Config::PfifoFast(config) => return fifo(packets(config.band_limit), packet, rate),
            Config::Codel(config) => (Some((config.target, Some(config.interval))), config.limit),
            Config::FqCodel(config) => (Some((config.target, Some(config.interval))), config.limit),
            Config::Pie(config) => (Some((config.target, None)), config.limit),
            Config::Dualpi2(config) => (Some((config.target, None)), config.limit),
            Config::Fq(config) => (None, config.limit),
            _ => return None,
        };
        if u64::from(limit) < FIRST_WINDOW {
            return Some(too_short(&format!("{limit} packets")));
        }
        let (target, interval) = aqm?;
        if let Some(interval) = interval {
            if target * 100 < interval {
                return Some(format!(
                    "A target of {} is less than a hundredth of the interval, {}. It should be 5 to 10 % of it: a smaller \
                     one drops where there is hardly a queue, and the link runs empty (RFC 8289 section 4.3).",
                    shown(target),
                    shown(interval)
                ));
            }
            if target * 2 > interval {
                return Some(format!(
                    "A target of {} is more than half of the interval, {}. It should be 5 to 10 % of it: what is below the \
                     target is left standing (RFC 8289 section 4.3).",
                    shown(target),
                    shown(interval)
                ));
            }
            if let Some(rtt) = self.link.map(|link| link.rtt).filter(|rtt| interval * 2 < *rtt) {
                return Some(format!(
                    "An interval of {} is less than half of a round trip of {}: the next drop comes before senders can have \
                     answered the last (RFC 8289 section 4.3).",
                    shown(interval),
                    shown(rtt)
                ));
            }
        }
        let (rate, one) = rate.map(|rate| (rate, rate.transmission_time(Bytes(packet))))?;
        (target < one).then(|| {
            format!(
                "A target of {} is less than one packet takes at {rate}, {}: every queue is above it.",
                shown(target),
                shown(one)
            )
        })
    }

    /// A shaper that is no slower than the bottleneck.
    pub(super) fn shaper_above(&self, config: &Config) -> Option<String> {
        let link = self.link?.rate;
        let shaped = match config {
            Config::Htb(htb) => htb.rate,
            Config::Tbf(tbf) => tbf.rate,
            Config::Cake(cake) => cake.bandwidth?,
            _ => return None,
        };
        (shaped > link).then(|| {
            format!(
                "{shaped} is more than the link's {link}: the queue stays there, where nobody here can manage it (RFC 7567 \
                 section 4.1)."
            )
        })
    }
}

/// A FIFO that holds so many bytes.
fn fifo(bytes: u64, packet: u64, rate: Option<Rate>) -> Option<String> {
    if bytes < FIRST_WINDOW * packet {
        return Some(too_short(&format!("{bytes} bytes")));
    }
    let time = rate.map(|rate| (rate, rate.transmission_time(Bytes(bytes))));
    match time {
        Some((rate, time)) if time >= late(rate, packet) => Some(format!(
            "A FIFO lets its queue grow until it is full, and everybody waits behind it: this one holds {} at {rate}.",
            shown(time)
        )),
        None if bytes >= LONG * packet => Some(format!(
            "A FIFO lets its queue grow until it is full, and everybody waits behind it: this one holds {} packets.",
            bytes / packet
        )),
        _ => None,
    }
}

fn too_short(limit: &str) -> String {
    format!(
        "It holds {limit}, less than the ten packets with which a connection may begin: it drops most of them (RFC 6928)."
    )
}

fn shown(time: Duration) -> String {
    tc_time::format_micros(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}
