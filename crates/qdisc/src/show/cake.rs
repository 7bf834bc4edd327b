//! `cake` as tc shows it.

use std::fmt;

use dualq_units::tc_time::format_micros;
use serde_json::{Map, Value};

use super::whole_micros;
use crate::disciplines::cake::{AckFilter, Atm, Config};

pub(super) fn write(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    match config.bandwidth {
        Some(rate) => write!(f, "bandwidth {rate}")?,
        None => f.write_str("bandwidth unlimited")?,
    }
    if config.autorate {
        f.write_str(" autorate-ingress")?;
    }
    write!(
        f,
        " {} {} {} {}",
        config.diffserv.word(),
        config.flow_mode.word(),
        if config.nat { "nat" } else { "nonat" },
        if config.wash { "wash" } else { "nowash" },
    )?;
    if config.ingress {
        f.write_str(" ingress")?;
    }
    write!(
        f,
        " {} {} rtt {}",
        config.ack_filter.word(),
        if config.split_gso { "split-gso" } else { "no-split-gso" },
        format_micros(whole_micros(config.rtt)),
    )?;
    if config.raw {
        f.write_str(" raw")?;
    }
    if !(config.raw && config.atm == Atm::Noatm) {
        write!(f, " {}", config.atm.word())?;
    }
    write!(f, " overhead {}", config.overhead)?;
    if config.mpu > 0 {
        write!(f, " mpu {}", config.mpu)?;
    }
    if let Some(limit) = config.memory_limit {
        write!(f, " memlimit {limit}")?;
    }
    if config.fwmark > 0 { write!(f, " fwmark {:#x}", config.fwmark) } else { Ok(()) }
}

pub(super) fn options(config: &Config) -> Value {
    let mut options = Map::new();
    let mut put = |key: &str, value: Value| options.insert(key.to_owned(), value);
    let bandwidth = config.bandwidth.map(|rate| Value::from(rate.as_bits_per_second() / 8));
    put("bandwidth", bandwidth.unwrap_or_else(|| "unlimited".into()));
    if config.autorate {
        put("autorate", "autorate-ingress".into());
    }
    put("diffserv", config.diffserv.word().into());
    put("flowmode", config.flow_mode.word().into());
    put("nat", config.nat.into());
    put("wash", config.wash.into());
    put("ingress", config.ingress.into());
    let filter = match config.ack_filter {
        AckFilter::No => "disabled",
        AckFilter::Filter => "enabled",
        AckFilter::Aggressive => "aggressive",
    };
    put("ack-filter", filter.into());
    put("split_gso", config.split_gso.into());
    put("rtt", whole_micros(config.rtt).into());
    put("raw", config.raw.into());
    if !(config.raw && config.atm == Atm::Noatm) {
        put("atm", config.atm.word().into());
    }
    put("overhead", config.overhead.into());
    if config.mpu > 0 {
        put("mpu", config.mpu.into());
    }
    if let Some(limit) = config.memory_limit {
        put("memlimit", limit.0.into());
    }
    let mark = if config.fwmark > 0 { format!("{:#x}", config.fwmark) } else { "0".to_owned() };
    put("fwmark", mark.into());
    options.into()
}
