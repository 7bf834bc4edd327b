//! tc's words for queue disciplines.
//!
//! Accepts and refuses what tc (iproute2 7) and Linux 7.3 together accept and refuse, odd cases included: `limit 0` means
//! that no limit was given, the last of two equal options counts, `max_rtt` overrides a `target` beside it. What tc writes
//! to its standard error on success comes back as [`Parsed::notices`]; what it refuses comes back as a [`ParseError`] that
//! says where, and what would be right.
//!
//! What tc says with several commands is one line here: `tbf`, `htb` (with one class) and `netem` take a word `leaf`, and what
//! follows it is the discipline inside, as in `htb rate 50mbit leaf dualpi2 target 5ms`.

mod line;
pub(crate) mod words;

use std::fmt;
use std::time::Duration;

pub use line::QdiscLine;
pub(crate) use words::Words;

use crate::kinds::Grammar;
pub use crate::kinds::KINDS;
use crate::{Spec, about, kinds};

/// How many leaves may be inside one another: more than anyone needs, and little enough for any stack.
const DEEPEST: u32 = 8;

/// An accepted line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// What it asks for.
    pub spec: Spec,
    /// What its author may not have expected: values that were derived, options that were ignored.
    pub notices: Vec<String>,
}

/// Who refuses a line when it is given to tc, which is what tc's exit status tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// tc, which does not understand it: exit status 1.
    Tc,
    /// tc, which misses the value of the last option: exit status 255.
    TcIncomplete,
    /// The kernel, to which a value is out of range: exit status 2.
    Kernel,
    /// Neither of them: dualq does not have what is asked for.
    Dualq,
}

/// A refused line. Its text is one line that says what is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    line: String,
    column: usize,
    refused_by: RefusedBy,
    message: String,
}

impl ParseError {
    /// The column, from 1, of the word that is at fault.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// Who would have refused it.
    #[must_use]
    pub const fn refused_by(&self) -> RefusedBy {
        self.refused_by
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, message, .. } = self;
        write!(f, "qdisc {line:?}, column {column}: {message}")
    }
}

impl std::error::Error for ParseError {}

/// Reads a discipline: its kind and its options, as they stand after `tc qdisc add dev … root`.
///
/// # Errors
/// If tc or the kernel would refuse the line, or if dualq does not have the kind.
pub fn parse(line: &str) -> Result<Parsed, ParseError> {
    let mut words = Words::new(line);
    let spec = parse_words(&mut words)?;
    Ok(Parsed { spec, notices: words.notices })
}

/// Reads a discipline from all words that are left.
fn parse_words(words: &mut Words<'_>) -> Result<Spec, ParseError> {
    let Some(kind) = words.next() else {
        return Err(words.refuse(RefusedBy::Tc, format!("name a qdisc: {}", list(KINDS))));
    };
    kinds::parse(kind, words).unwrap_or_else(|| {
        let hint = did_you_mean(kind, KINDS);
        let message = format!("unknown qdisc {kind:?}; {hint}dualq has {}", list(KINDS));
        Err(words.refuse(RefusedBy::Tc, message))
    })
}

/// Reads the discipline inside another from all words that are left.
pub(crate) fn parse_leaf(kind: &str, words: &mut Words<'_>) -> Result<Box<Spec>, ParseError> {
    if words.depth >= DEEPEST {
        let message = format!("at most {DEEPEST} disciplines can be inside one another");
        return Err(words.refuse(RefusedBy::Dualq, message));
    }
    words.depth += 1;
    if words.is_at_end() {
        let message = format!("{kind} … leaf needs a qdisc, such as dualpi2");
        return Err(words.refuse(RefusedBy::Dualq, message));
    }
    parse_words(words).map(Box::new)
}

/// One option of a line, if it was given, with a space before it.
pub(crate) fn write_option(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    value: Option<impl fmt::Display>,
) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name} {value}"))
}

/// One of two words, if either was given, with a space before it.
pub(crate) fn write_flag(
    f: &mut fmt::Formatter<'_>,
    flag: Option<bool>,
    on: &str,
    off: &str,
) -> fmt::Result {
    flag.map_or(Ok(()), |flag| write!(f, " {}", if flag { on } else { off }))
}

/// A time that loses nothing: in whole milliseconds if it is one.
pub(crate) fn exact_time(time: Duration) -> String {
    exact_micros(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))
}

/// As [`exact_time`].
pub(crate) fn exact_micros(micros: u32) -> String {
    if micros.is_multiple_of(1000) { format!("{}ms", micros / 1000) } else { format!("{micros}us") }
}

/// A time to the nanosecond, in the largest unit that is whole.
pub(crate) fn exact_nanos(time: Duration) -> String {
    let nanos = time.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.into_iter().find(|(unit, _)| nanos > 0 && nanos.is_multiple_of(*unit));
    let (unit, name) = whole.unwrap_or((1, "ns"));
    format!("{}{name}", nanos / unit)
}

/// Refuses the word last taken, which is no option of the kind.
pub(crate) fn unknown_option<K: Grammar>(word: &str, words: &Words<'_>) -> ParseError {
    let takes = about::takes(K::NAME, K::ABOUT);
    let message = if word == "help" {
        takes
    } else {
        let mut known = about::words(K::ABOUT);
        known.push("help");
        let hint = did_you_mean(word, &known);
        format!("unknown option {word:?}; {hint}{takes}")
    };
    words.refuse(RefusedBy::Tc, message)
}

/// `did you mean "target"? `, or nothing if no known word is near; `TARGET` is as near as can be.
#[must_use]
pub fn did_you_mean(unknown: &str, known: &[&str]) -> String {
    let unknown = unknown.to_lowercase();
    known
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&unknown, &word.to_lowercase()), word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map_or(String::new(), |(_, word)| format!("did you mean {word:?}? "))
}

pub(crate) fn list(words: &[&str]) -> String {
    words.join(", ")
}
