//! What people want to know of a queue discipline: what it is, what its options do, when not to use it.
//!
//! Each kind has one table in its folder (`about.rs`), from which the grammar takes the words that it names in refusals and what is
//! expected behind them, `dualq explain` its text, and the documentation its page. Defaults are not in it where tc shows them: they
//! are read from what tc shows of the discipline.

use crate::grammar::list;
use crate::{Config, Device, Spec, kinds};

/// What there is to say of a kind.
#[derive(Debug)]
pub struct About {
    /// Its name in full.
    pub title: &'static str,
    /// What it does, in a few sentences.
    pub what: &'static str,
    /// What it measures, and what it does to packets of each ECN codepoint.
    pub acts_on: &'static str,
    /// Where this is from: RFC, paper, manual page, file of the kernel.
    pub source: &'static str,
    /// When something else is better.
    pub not_for: &'static str,
    /// Its options.
    pub parameters: &'static [Parameter],
}

/// An option: one word with or without a value, or several words of which one holds.
#[derive(Debug)]
pub struct Parameter {
    /// The words.
    pub words: &'static [&'static str],
    /// What is given behind the word, as refusals say it (`give a time in s, ms or us, such as 5ms`); empty for words alone.
    pub value: &'static str,
    /// What it does.
    pub does: &'static str,
    /// What holds where tc shows nothing of it.
    pub unset: &'static str,
}

impl Parameter {
    /// An option whose default tc shows.
    pub(crate) const fn new(
        words: &'static [&'static str],
        value: &'static str,
        does: &'static str,
    ) -> Self {
        Self { words, value, does, unset: "" }
    }

    /// The same if tc shows nothing by default.
    pub(crate) const fn unset(self, unset: &'static str) -> Self {
        Self { unset, ..self }
    }

    /// What is given behind the word, without the imperative.
    #[must_use]
    pub fn expected(&self) -> &'static str {
        self.value.strip_prefix("give ").unwrap_or(self.value)
    }

    /// What `text`, options in tc's words, has for this parameter.
    fn value_in(&self, text: &str, all: &[Self]) -> Option<String> {
        let mut words = text.split_whitespace();
        let found = words.find(|word| self.words.contains(word))?;
        if self.value.is_empty() {
            return Some(found.to_owned());
        }
        let is_other = |word: &&str| {
            all.iter().any(|other| !std::ptr::eq(other, self) && other.words.contains(word))
        };
        let value: Vec<&str> = words.take_while(|word| !is_other(word)).collect();
        Some(if value.is_empty() { found.to_owned() } else { value.join(" ") })
    }
}

/// An option and its values.
#[derive(Debug)]
pub struct Valued {
    /// The option.
    pub parameter: &'static Parameter,
    /// What holds if it is not given, as tc shows it; on an Ethernet device with an MTU of 1500 bytes.
    pub default: String,
    /// What a line gives.
    pub given: Option<String>,
}

/// A kind, and what a line says of it.
#[derive(Debug)]
pub struct Explained {
    /// The kind, as tc names it.
    pub kind: &'static str,
    /// What there is to say of it.
    pub about: &'static About,
    /// Its options.
    pub parameters: Vec<Valued>,
}

impl Explained {
    /// A kind by its name.
    #[must_use]
    pub fn kind(name: &str) -> Option<Self> {
        let (kind, about) = kinds::about(name)?;
        // Those which cannot be without options have no defaults to show.
        let shown = crate::grammar::parse(kind).map_or(String::new(), |parsed| shown(&parsed.spec));
        let valued = |parameter: &'static Parameter| {
            let default = parameter.value_in(&shown, about.parameters);
            let default = default.unwrap_or_else(|| parameter.unset.to_owned());
            Valued { parameter, default, given: None }
        };
        Some(Self { kind, about, parameters: about.parameters.iter().map(valued).collect() })
    }

    /// What a line asks for, from the outside in.
    #[must_use]
    pub fn spec(spec: &Spec) -> Vec<Self> {
        let level = |spec: &Spec| {
            let mut explained = Self::kind(spec.kind())?;
            let given = spec.clone().without_leaf().to_string();
            for valued in &mut explained.parameters {
                valued.given = valued.parameter.value_in(&given, explained.about.parameters);
            }
            Some(explained)
        };
        spec.levels().filter_map(level).collect()
    }
}

/// The options that a discipline has, as tc shows them.
fn shown(spec: &Spec) -> String {
    let config: Config = spec.configure(&Device::ethernet(1500));
    config.shown().line().unwrap_or_else(|| config.to_string())
}

/// The words of all options, as refusals list them.
pub(crate) fn words(about: &About) -> Vec<&'static str> {
    about.parameters.iter().flat_map(|parameter| parameter.words).copied().collect()
}

/// What a kind takes.
pub(crate) fn takes(kind: &str, about: &About) -> String {
    let words = words(about);
    if words.is_empty() {
        format!("{kind} takes none")
    } else {
        format!("{kind} takes {}", list(&words))
    }
}
