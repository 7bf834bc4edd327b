//! `htb` with its one class, as `tc qdisc show` and `tc class show` show them.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value, json};

use super::counted;
use super::tbf::per_second;
use crate::disciplines::bucket::size;
use crate::disciplines::htb::{Config, Stats};

/// The class's options.
pub(super) fn write(f: &mut fmt::Formatter<'_>, config: &Config) -> fmt::Result {
    let Config { rate, ceil, .. } = config;
    let (burst, cburst) = (size(*rate, config.buffer), size(*ceil, config.cbuffer));
    write!(f, "prio 0 rate {rate} ceil {ceil} burst {burst} cburst {cburst}")
}

/// The discipline's own options, before those of the class.
pub(super) fn qdisc_text(config: &Config) -> String {
    format!("r2q 10 default 0x1 direct_packets_stat 0 direct_qlen {}", config.direct_queue_length)
}

pub(super) fn options(config: &Config) -> Value {
    json!({
        "r2q": 10,
        "default": "0x1",
        "direct_packets_stat": 0,
        "direct_qlen": config.direct_queue_length,
    })
}

/// The line of the class; `leaf` is the handle of what is in it.
pub(super) fn class_text(config: &Config, handle: u16, leaf: Option<u16>) -> String {
    let leaf = leaf.map_or(String::new(), |leaf| format!("leaf {leaf:x}: "));
    let mut text = format!("class htb {handle:x}:1 root {leaf}");
    let _ = write!(text, "{}", crate::Config::Htb(config.clone()));
    text
}

pub(super) fn class_stats(text: &mut String, own: &Stats) {
    text.push_str(&counted(&own.class));
    let Stats { lended, tokens, ctokens, .. } = own;
    let _ = write!(
        text,
        " lended: {lended} borrowed: 0 giants: 0\n tokens: {tokens} ctokens: {ctokens}\n\n"
    );
}

/// The object that `tc -j class show` has, with counters if there are any.
pub(super) fn class_json(
    config: &Config,
    handle: u16,
    leaf: Option<u16>,
    stats: Option<&Stats>,
) -> Value {
    let mut class = Map::new();
    let mut put = |key: &str, value: Value| class.insert(key.to_owned(), value);
    put("class", "htb".into());
    put("handle", format!("{handle:x}:1").into());
    put("root", true.into());
    if let Some(leaf) = leaf {
        put("leaf", format!("{leaf:#x}").into());
    }
    put("prio", 0.into());
    put("rate", per_second(config.rate).into());
    put("ceil", per_second(config.ceil).into());
    put("burst", size(config.rate, config.buffer).0.into());
    put("cburst", size(config.ceil, config.cbuffer).0.into());
    if let Some(own) = stats {
        let mut object = Map::new();
        super::put_counters(&mut object, &own.class);
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("lended", own.lended.into());
        put("borrowed", 0.into());
        put("giants", 0.into());
        put("tokens", own.tokens.into());
        put("ctokens", own.ctokens.into());
        class.insert("stats".to_owned(), object.into());
    }
    class.into()
}
