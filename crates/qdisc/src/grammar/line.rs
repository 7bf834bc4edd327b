//! A line that was read once and is kept with what it says.

use std::fmt;
use std::str::FromStr;

use super::{ParseError, parse};
use crate::Spec;

/// A queue discipline as somebody wrote it, and what that means. The text is kept because its author will look for it in
/// tables; only its spaces are made single.
///
/// ```
/// use dualq_qdisc::QdiscLine;
///
/// let line: QdiscLine = "htb rate 50mbit leaf dualpi2  target 5ms".parse()?;
/// assert_eq!(line.text(), "htb rate 50mbit leaf dualpi2 target 5ms");
/// assert_eq!(line.kinds().collect::<Vec<_>>(), ["htb", "dualpi2"]);
/// # Ok::<(), dualq_qdisc::grammar::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QdiscLine {
    text: String,
    spec: Spec,
}

impl QdiscLine {
    /// The line as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it asks for.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The discipline and those inside it, from the outside in.
    pub fn levels(&self) -> impl Iterator<Item = &Spec> {
        self.spec.levels()
    }

    /// What `tc` says of it on success, or dualq in its place: values that Linux takes for something else than most people do
    /// ([`Parsed::notices`](super::Parsed::notices)).
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        parse(&self.text).map_or_else(|_| Vec::new(), |parsed| parsed.notices)
    }

    /// Their kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.levels().map(Spec::kind)
    }
}

impl FromStr for QdiscLine {
    type Err = ParseError;

    fn from_str(line: &str) -> Result<Self, ParseError> {
        let spec = parse(line)?.spec;
        let words: Vec<&str> = line.split_whitespace().collect();
        Ok(Self { text: words.join(" "), spec })
    }
}

impl TryFrom<&Spec> for QdiscLine {
    type Error = ParseError;

    /// The line that asks for `spec`. It is read again, since a spec can be put together that no line asks for.
    fn try_from(spec: &Spec) -> Result<Self, ParseError> {
        spec.to_string().parse()
    }
}

impl fmt::Display for QdiscLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
