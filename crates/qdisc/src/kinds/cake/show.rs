//! `cake` as tc shows it.

use std::fmt;

use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::{AckFilter, Atm, Config};
use crate::kinds::Shown;
use crate::show::whole_micros;

impl Shown for Config {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bandwidth {
            Some(rate) => write!(f, "bandwidth {rate}")?,
            None => f.write_str("bandwidth unlimited")?,
        }
        if self.autorate {
            f.write_str(" autorate-ingress")?;
        }
        write!(
            f,
            " {} {} {} {}",
            self.diffserv.word(),
            self.flow_mode.word(),
            if self.nat { "nat" } else { "nonat" },
            if self.wash { "wash" } else { "nowash" },
        )?;
        if self.ingress {
            f.write_str(" ingress")?;
        }
        write!(
            f,
            " {} {} rtt {}",
            self.ack_filter.word(),
            if self.split_gso { "split-gso" } else { "no-split-gso" },
            format_micros(whole_micros(self.rtt)),
        )?;
        if self.raw {
            f.write_str(" raw")?;
        }
        if !(self.raw && self.atm == Atm::Noatm) {
            write!(f, " {}", self.atm.word())?;
        }
        write!(f, " overhead {}", self.overhead)?;
        if self.mpu > 0 {
            write!(f, " mpu {}", self.mpu)?;
        }
        if let Some(limit) = self.memory_limit {
            write!(f, " memlimit {limit}")?;
        }
        if self.fwmark > 0 { write!(f, " fwmark {:#x}", self.fwmark) } else { Ok(()) }
    }

    fn json(&self) -> Value {
        let mut options = Map::new();
        let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
        let bandwidth = self.bandwidth.map(|rate| Value::from(rate.as_bits_per_second() / 8));
        put("bandwidth", bandwidth.unwrap_or_else(|| "unlimited".into()));
        if self.autorate {
            put("autorate", "autorate-ingress".into());
        }
        put("diffserv", self.diffserv.word().into());
        put("flowmode", self.flow_mode.word().into());
        put("nat", self.nat.into());
        put("wash", self.wash.into());
        put("ingress", self.ingress.into());
        let filter = match self.ack_filter {
            AckFilter::No => "disabled",
            AckFilter::Filter => "enabled",
            AckFilter::Aggressive => "aggressive",
        };
        put("ack-filter", filter.into());
        put("split_gso", self.split_gso.into());
        put("rtt", whole_micros(self.rtt).into());
        put("raw", self.raw.into());
        if !(self.raw && self.atm == Atm::Noatm) {
            put("atm", self.atm.word().into());
        }
        put("overhead", self.overhead.into());
        if self.mpu > 0 {
            put("mpu", self.mpu.into());
        }
        if let Some(limit) = self.memory_limit {
            put("memlimit", limit.0.into());
        }
        let mark = if self.fwmark > 0 { format!("{:#x}", self.fwmark) } else { "0".to_owned() };
        put("fwmark", mark.into());
        options.into()
    }
}
