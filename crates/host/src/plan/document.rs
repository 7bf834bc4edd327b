//! Plans as TOML.

use std::fmt::Display;
use std::str::FromStr;

use serde::Deserialize;
use toml::Spanned;

use super::{Aim, Change, FORMAT, Plan, PlanError, What};
use crate::facts::Os;

const HEADER: &str = "# A plan of dualq. Nothing of it is done until `dualq apply`.\n\n";

/// A plan as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    about: String,
    os: Os,
    kernel: String,
    #[serde(default)]
    aim: Aim,
    #[serde(default)]
    evidence: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    change: Vec<Spanned<Entry>>,
}

/// A change as it is written: the keys of all kinds. A table of one kind only would be read from a copy that has lost its
/// lines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    why: String,
    source: String,
    what: Kind,
    module: Option<String>,
    key: Option<String>,
    dev: Option<String>,
    parent: Option<String>,
    ifb: Option<String>,
    each: Option<bool>,
    to: Option<String>,
    mtu: Option<u32>,
    path: Option<String>,
    mode: Option<String>,
    before: Option<Lines>,
    after: Option<Lines>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Module,
    Sysctl,
    Qdisc,
    Ingress,
    Offload,
    Route,
    File,
    Lines,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    One(String),
    Many(Vec<String>),
}

impl Entry {
    fn change(self) -> Result<Change, String> {
        /// Takes a key that this kind of change must have.
        fn take<T>(key: &str, value: &mut Option<T>) -> Result<T, String> {
            value.take().ok_or_else(|| format!("this change lacks {key}"))
        }
        fn one(key: &str, value: &mut Option<Lines>) -> Result<String, String> {
            match take(key, value)? {
                Lines::One(text) => Ok(text),
                Lines::Many(_) => Err(format!("{key} is one string in a change of this kind")),
            }
        }
        fn many(key: &str, value: &mut Option<Lines>) -> Result<Vec<String>, String> {
            match take(key, value)? {
                Lines::Many(lines) => Ok(lines),
                Lines::One(_) => {
                    Err(format!("{key} is a list of strings in a change of this kind"))
                }
            }
        }
        /// Reads a text, once.
        fn read<T: FromStr<Err: Display>>(key: &str, text: &str) -> Result<T, String> {
            text.parse().map_err(|error| format!("{key}: {error}"))
        }
        let Self {
            mut module,
            mut key,
            mut dev,
            mut parent,
            mut ifb,
            mut each,
            mut to,
            mut mtu,
            mut path,
            mut mode,
            ..
        } = self;
        let (mut before, mut after) = (self.before, self.after);
        let what = match self.what {
            Kind::Module => What::Module { module: take("module", &mut module)? },
            Kind::Sysctl => What::Sysctl {
                key: take("key", &mut key)?,
                before: one("before", &mut before)?,
                after: one("after", &mut after)?,
            },
            Kind::Qdisc => What::Qdisc {
                dev: take("dev", &mut dev)?,
                parent: parent.take().map(|class| read("parent", &class)).transpose()?,
                before: many("before", &mut before)?,
                after: read("after", &one("after", &mut after)?)?,
                each: each.take().unwrap_or_default(),
            },
            Kind::Ingress => What::Ingress {
                dev: take("dev", &mut dev)?,
                ifb: take("ifb", &mut ifb)?,
                after: read("after", &one("after", &mut after)?)?,
            },
            Kind::Offload => What::Offload {
                dev: take("dev", &mut dev)?,
                key: read("key", &take("key", &mut key)?)?,
                before: one("before", &mut before)?,
                after: one("after", &mut after)?,
            },
            Kind::Route => {
                What::Route { to: read("to", &take("to", &mut to)?)?, mtu: take("mtu", &mut mtu)? }
            }
            Kind::File => What::File {
                path: take("path", &mut path)?,
                before: before.is_some().then(|| one("before", &mut before)).transpose()?,
                after: one("after", &mut after)?,
                mode: read("mode", &take("mode", &mut mode)?)?,
            },
            Kind::Lines => {
                What::Lines { path: take("path", &mut path)?, after: many("after", &mut after)? }
            }
        };
        let left = [
            ("module", module.is_some()),
            ("key", key.is_some()),
            ("dev", dev.is_some()),
            ("parent", parent.is_some()),
            ("ifb", ifb.is_some()),
            ("each", each.is_some()),
            ("to", to.is_some()),
            ("mtu", mtu.is_some()),
            ("path", path.is_some()),
            ("mode", mode.is_some()),
            ("before", before.is_some()),
            ("after", after.is_some()),
        ];
        match left.into_iter().find(|(_, left)| *left) {
            Some((key, _)) => Err(format!("{key} does not belong to a change of this kind")),
            None => Ok(Change { why: self.why, source: self.source, what }),
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

impl Plan {
    /// The longest plan that is read, in bytes: more than the largest that dualq makes, by far.
    pub const LONGEST: usize = 256 << 10;

    /// Reads a plan, and [checks](Self::check) it.
    ///
    /// # Errors
    /// If it is not TOML, has keys that are unknown or in the wrong place, or asks for what no plan of dualq's asks for:
    /// with the line, if one is at fault.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        if text.len() > Self::LONGEST {
            let message =
                format!("a plan has at most {} KiB, this file is longer", Self::LONGEST >> 10);
            return Err(PlanError::refused(message));
        }
        let document: Document = toml::from_str(text).map_err(|error| PlanError::Refused {
            line: error.span().map(|span| line_of(text, span.start)),
            message: error.message().replace('\n', " "),
        })?;
        if document.format != FORMAT {
            let message =
                format!("format {} is not known; this dualq reads {FORMAT}", document.format);
            return Err(PlanError::refused(message));
        }
        let mut plan = Self {
            format: document.format,
            about: document.about,
            os: document.os,
            kernel: document.kernel,
            aim: document.aim,
            evidence: document.evidence,
            notes: document.notes,
            changes: Vec::new(),
        };
        plan.check()?;
        for entry in document.change {
            let line = line_of(text, entry.span().start);
            let at_line = |message: String| PlanError::Refused { line: Some(line), message };
            let change = entry.into_inner().change().map_err(at_line)?;
            change.check(plan.os).map_err(at_line)?;
            plan.changes.push(change);
        }
        plan.check()?;
        Ok(plan)
    }

    /// The plan as a file: what [`read`](Self::read) reads back.
    #[must_use]
    pub fn write(&self) -> String {
        let text = toml::to_string_pretty(self).expect("a plan is strings, numbers and lists");
        format!("{HEADER}{text}")
    }
}
