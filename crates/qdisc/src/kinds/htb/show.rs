//! `htb` with its one class, as `tc qdisc show` and `tc class show` show them.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value, json};

use super::{Config, Stats};
use crate::bucket::size;
use crate::kinds::{Counted, Shown};
use crate::show::{self, OwnStats, Place, counted, per_second, put_counters};

impl Shown for Config {
    /// The class's options.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { rate, ceil, .. } = self;
        let (burst, cburst) = (size(*rate, self.buffer), size(*ceil, self.cbuffer));
        write!(f, "prio 0 rate {rate} ceil {ceil} burst {burst} cburst {cburst}")
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
        json!({
            "r2q": 10,
            "default": "0x1",
            "direct_packets_stat": 0,
            "direct_qlen": self.direct_queue_length,
        })
    }

    /// The discipline's own options, which stand before those of the class.
    fn line(&self) -> Option<String> {
        let length = self.direct_queue_length;
        Some(format!("r2q 10 default 0x1 direct_packets_stat 0 direct_qlen {length}"))
    }

    fn class_text(&self, place: Place, own: Option<&OwnStats>) -> String {
        let Place { handle, leaf } = place;
        let leaf = leaf.map_or(String::new(), |leaf| format!("leaf {leaf:x}: "));
        let options = crate::Config::Htb(self.clone());
        let mut text = format!("class htb {handle:x}:1 root {leaf}{options}\n");
        if let Some(OwnStats::Htb(Stats { class, lended, tokens, ctokens, .. })) = own {
            let _ = write!(
                text,
                "{} lended: {lended} borrowed: 0 giants: 0\n tokens: {tokens} ctokens: {ctokens}\n\n",
                counted(class)
            );
        }
        text
    }

    /// The object that `tc -j class show` has.
    fn class_json(&self, place: Place, own: Option<&OwnStats>) -> Option<Value> {
        let mut class = Map::new();
        let mut put = |key: &str, value: Value| class.insert(key.to_owned(), value);
        put("class", "htb".into());
        put("handle", format!("{:x}:1", place.handle).into());
        put("root", true.into());
        if let Some(leaf) = place.leaf {
            put("leaf", format!("{leaf:#x}").into());
        }
        put("prio", 0.into());
        put("rate", per_second(self.rate).into());
        put("ceil", per_second(self.ceil).into());
        put("burst", size(self.rate, self.buffer).0.into());
        put("cburst", size(self.ceil, self.cbuffer).0.into());
        if let Some(OwnStats::Htb(own)) = own {
            let mut object = Map::new();
            put_counters(&mut object, &own.class);
            let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
            put("lended", own.lended.into());
            put("borrowed", 0.into());
            put("giants", 0.into());
            put("tokens", own.tokens.into());
            put("ctokens", own.ctokens.into());
            class.insert("stats".to_owned(), object.into());
        }
        Some(class.into())
    }
}

impl Counted for Stats {
    fn leaf(&self) -> Option<&show::Stats> {
        Some(&self.leaf)
    }
}
