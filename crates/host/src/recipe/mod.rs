//! A recipe from somewhere else, and what each of its settings would do on a machine.
//!
//! [`Recipe::read`] takes the settings out of any text: a sysctl.conf, a script, an article. [`check`] says of
//! each what it does where certain [`Facts`](crate::Facts) hold, why, and who says so.
//!
//! ```
//! use dualq_host::Facts;
//! use dualq_host::recipe::{Recipe, Verdict, check};
//!
//! let recipe = Recipe::read("a.conf", "net.ipv4.tcp_fack = 1\n");
//! let mut facts = Facts::default();
//! facts.kernel.release = "6.12.9-amd64".to_owned();
//! assert_eq!(check(&recipe, &facts, None)[0].verdict, Verdict::Obsolete);
//! ```

mod read;
mod verdict;

use serde::Serialize;

pub use verdict::{Finding, Link, Verdict, check};

/// More settings than any recipe has.
pub const MOST_STEPS: usize = 2000;

/// What a text asks for, in the order in which it does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recipe {
    /// What the text is called: a file's name, or `-`.
    pub name: String,
    /// Its settings.
    pub steps: Vec<Step>,
    /// Lines that look like commands for the network and were not understood, or that are too long to be read.
    pub not_understood: Vec<Line>,
    /// The line from which on nothing is read, because there are more settings before it than a recipe has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<u32>,
    /// Where the text calls 5 ms the target that a queue discipline has by itself: its line.
    pub target_claim: Option<u32>,
}

impl Recipe {
    /// Reads the settings out of `text`. What it does not know is passed over; of that, what looks like a command is kept.
    ///
    /// The text may be anybody's: it takes time and memory in proportion to its length, whatever is in it, and gives
    /// [`MOST_STEPS`] settings at most.
    #[must_use]
    pub fn read(name: &str, text: &str) -> Self {
        read::read(name, text)
    }
}

/// A line of the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its number, from 1.
    pub line: u32,
    /// What is on it.
    pub text: String,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The line that it is on, from 1.
    pub line: u32,
    /// The column in characters, from 1, of its line's first word.
    pub column: u32,
    /// The setting as it was found, without what is around it.
    pub text: String,
    /// The file that it goes to, if the text says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What it sets.
    pub what: What,
}

/// What a step sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum What {
    /// A sysctl.
    Sysctl {
        /// `net.ipv4.tcp_ecn`.
        key: String,
        /// Its value, without quotes and without a comment behind it.
        value: String,
        /// Whether a comment stands behind the value in a file in which it is no comment.
        commented: bool,
    },
    /// A queue discipline.
    Qdisc {
        /// The interface, unless it is a variable that nothing sets or the file does not tell.
        #[serde(skip_serializing_if = "Option::is_none")]
        dev: Option<String>,
        /// Whether it is the interface's root.
        root: bool,
        /// Its kind and options in tc's words.
        words: String,
    },
    /// A kernel module.
    Module {
        /// `sch_dualpi2`.
        name: String,
        /// Whether it is to be loaded whenever the machine starts.
        at_boot: bool,
    },
    /// An interface's MTU or length of its transmit queue.
    Interface {
        /// The interface, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        dev: Option<String>,
        /// `mtu` or `txqueuelen`.
        property: String,
        /// Its value.
        value: String,
    },
    /// An offload of an interface.
    Offload {
        /// The interface, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        dev: Option<String>,
        /// `gso`.
        feature: String,
        /// Whether it is to be on.
        on: bool,
    },
    /// A route with properties of its own.
    Route {
        /// The operating system's own notation: FreeBSD's rc.conf or Linux's `ip route`.
        freebsd: bool,
        /// Where to: `default`, `10.4.0.0/16`.
        to: String,
        /// The interface, if it is given and known.
        #[serde(skip_serializing_if = "Option::is_none")]
        dev: Option<String>,
        /// Properties that matter to TCP: `mtu`, `initcwnd`, `congctl`, …
        properties: Vec<(String, String)>,
        /// Of a route of rc.conf: its name, and whether `static_routes` lists it.
        #[serde(skip_serializing_if = "Option::is_none")]
        listed: Option<(String, bool)>,
    },
}
