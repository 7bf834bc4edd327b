//! `netem` as tc shows it.

use std::fmt::{self, Write as _};
use std::time::Duration;

use dualq_units::number::format_g;
use serde_json::{Map, Value, json};

use super::{CERTAIN, Chance, Config, Distance, Framing, Loss, Slots, Stats};
use crate::grammar::write_option;
use crate::kinds::{Counted, Shown};
use crate::show::{self, format_nanos, per_second, six_digits};

fn fraction(loss: u32) -> f64 {
    f64::from(loss) / f64::from(u32::MAX)
}

/// A probability as text.
fn percent(share: u32) -> String {
    format!("{}%", format_g(100.0 * fraction(share), 6))
}

fn write_chance(f: &mut fmt::Formatter<'_>, name: &str, chance: Chance) -> fmt::Result {
    if chance.share == 0 {
        return Ok(());
    }
    write!(f, " {name} {}", percent(chance.share))?;
    write_correlation(f, chance.correlation)
}

fn write_correlation(f: &mut fmt::Formatter<'_>, correlation: u32) -> fmt::Result {
    if correlation > 0 { write!(f, " {}", percent(correlation)) } else { Ok(()) }
}

/// The names and values of a model of losses.
fn model(loss: Loss) -> (&'static str, Vec<(&'static str, u32)>) {
    match loss {
        Loss::Random(_) => ("random", Vec::new()),
        Loss::State { p13, p31, p32, p23, p14 } => {
            ("state", vec![("p13", p13), ("p31", p31), ("p32", p32), ("p23", p23), ("p14", p14)])
        }
        Loss::Gemodel { p, r, h, one_minus_k } => {
            ("gemodel", vec![("p", p), ("r", r), ("1-h", CERTAIN - h), ("1-k", one_minus_k)])
        }
    }
}

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limit {}", self.limit)?;
        if !self.delay.is_zero() {
            write!(f, " delay {}", format_nanos(self.delay))?;
            if !self.jitter.is_zero() {
                write!(f, "  {}", format_nanos(self.jitter))?;
                write_correlation(f, self.delay_correlation)?;
            }
        }
        match self.loss {
            None => {}
            Some(Loss::Random(chance)) => write_chance(f, "loss", chance)?,
            Some(loss) => {
                let (name, values) = model(loss);
                write!(f, " loss {name}")?;
                values
                    .iter()
                    .try_for_each(|(name, share)| write!(f, " {name} {}", percent(*share)))?;
            }
        }
        write_chance(f, "duplicate", self.duplicate)?;
        write_chance(f, "reorder", self.reorder)?;
        write_chance(f, "corrupt", self.corrupt)?;
        if let Some(rate) = self.rate {
            write!(f, " rate {rate}")?;
            let Framing { packet_overhead, cell_size, cell_overhead } = self.framing;
            write_option(f, "packetoverhead", Some(packet_overhead).filter(|bytes| *bytes != 0))?;
            write_option(f, "cellsize", Some(cell_size).filter(|bytes| *bytes != 0))?;
            write_option(f, "celloverhead", Some(cell_overhead).filter(|bytes| *bytes != 0))?;
        }
        if let Some(Slots { distance, packets, bytes }) = self.slots {
            match distance {
                Distance::Uniform(least, most) => {
                    write!(f, " slot {} {}", format_nanos(least), format_nanos(most))?;
                }
                Distance::Distributed(mean, deviation) => {
                    write!(
                        f,
                        " slot distribution {} {}",
                        format_nanos(mean),
                        format_nanos(deviation)
                    )?;
                }
            }
            write_option(f, "packets", Some(packets).filter(|packets| *packets != 0))?;
            write_option(f, "bytes", Some(bytes).filter(|bytes| *bytes != 0))?;
        }
        if let Some(seed) = self.seed {
            write!(f, " seed {seed}")?;
        }
        if self.ecn {
            f.write_str(" ecn")?;
        }
        match self.gap {
            0 => Ok(()),
            // tc ends the word before with a space.
            gap if self.ecn => write!(f, "  gap {gap}"),
            gap => write!(f, " gap {gap}"),
        }
    }

    fn leaf(&self) -> Option<&crate::Config> {
        self.leaf.as_deref()
    }

    fn leaf_mut(&mut self) -> Option<&mut Option<Box<crate::Config>>> {
        Some(&mut self.leaf)
    }

    fn ends_with_space(&self) -> bool {
        false
    }

    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| {
            options.insert(key.to_owned(), value);
        };
        put("limit", self.limit.into());
        let share = |share: u32| six_digits(fraction(share));
        let seconds = |time: Duration| six_digits(time.as_secs_f64());
        if !self.delay.is_zero() {
            let correlation = share(self.delay_correlation);
            let (delay, jitter) = (seconds(self.delay), seconds(self.jitter));
            put("delay", json!({ "delay": delay, "jitter": jitter, "correlation": correlation }));
        }
        let chance = |name: &str, chance: Chance| {
            let mut object = Map::new();
            object.insert(name.to_owned(), share(chance.share));
            object.insert("correlation".to_owned(), share(chance.correlation));
            Value::from(object)
        };
        match self.loss {
            None => {}
            Some(Loss::Random(random)) => put("loss-random", chance("loss", random)),
            Some(loss) => {
                let (name, values) = model(loss);
                let values =
                    values.into_iter().map(|(name, value)| (name.to_owned(), share(value)));
                put(&format!("loss-{name}"), Value::from(values.collect::<Map<_, _>>()));
            }
        }
        for (name, of) in
            [("duplicate", self.duplicate), ("reorder", self.reorder), ("corrupt", self.corrupt)]
        {
            if of.share > 0 {
                put(name, chance(name, of));
            }
        }
        if let Some(rate) = self.rate {
            let Framing { packet_overhead, cell_size, cell_overhead } = self.framing;
            put(
                "rate",
                json!({
                    "rate": per_second(rate),
                    "packetoverhead": packet_overhead,
                    "cellsize": cell_size,
                    "celloverhead": cell_overhead,
                }),
            );
        }
        if let Some(Slots { distance, packets, bytes }) = self.slots {
            let (names, times) = match distance {
                Distance::Uniform(least, most) => (["min-delay", "max-delay"], [least, most]),
                Distance::Distributed(mean, deviation) => {
                    (["distribution", "jitter"], [mean, deviation])
                }
            };
            let mut slot = Map::new();
            for (name, time) in names.into_iter().zip(times) {
                slot.insert(name.to_owned(), seconds(time));
            }
            slot.insert("packets".to_owned(), packets.into());
            slot.insert("bytes".to_owned(), bytes.into());
            put("slot", slot.into());
        }
        if let Some(seed) = self.seed {
            put("seed", seed.into());
        }
        put("ecn", self.ecn.into());
        put("gap", self.gap.into());
        options.into()
    }
}

impl Counted for Stats {
    fn write(&self, text: &mut String) {
        text.push(' ');
        for (name, count) in counts(self) {
            let _ = write!(text, " {name} {count}");
        }
        text.push('\n');
    }

    fn leaf(&self) -> Option<&show::Stats> {
        self.leaf.as_deref()
    }

    fn put(&self, object: &mut Map<String, Value>) {
        for (name, count) in counts(self) {
            object.insert(name.to_owned(), count.into());
        }
    }
}

/// tc's names.
fn counts(own: &Stats) -> [(&'static str, u64); 6] {
    [
        ("delayed", own.delayed),
        ("dropped", own.dropped),
        ("corrupted", own.corrupted),
        ("duplicated", own.duplicated),
        ("reordered", own.reordered),
        ("ecn_marked", own.ecn_marked),
    ]
}
