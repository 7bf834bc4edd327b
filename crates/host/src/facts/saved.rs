//! Facts as a file.

use std::path::Path;
use std::{fs, io, io::Read as _};

use serde_json::Value;

use super::{FORMAT, Facts};

/// More bytes than the facts of any machine have.
const MOST: u64 = 4 << 20;

/// Why a document is not taken for facts. One line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FactsError {
    /// The file cannot be read.
    #[error("cannot read {file}: {}", dualq_units::plain(.source))]
    File {
        /// The file.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// It is no document of dualq's.
    #[error("{from} holds no facts: {why}; `dualq doctor --json` prints such")]
    NoFacts {
        /// Where the text is from.
        from: String,
        /// What is wrong, and where.
        why: String,
    },
    /// It is a document of another dualq's.
    #[error(
        "{from} has facts of format {format}, this dualq reads {FORMAT}: gather them with this version"
    )]
    Format {
        /// Where the text is from.
        from: String,
        /// Its format.
        format: u64,
    },
}

impl Facts {
    /// Reads facts from a file.
    ///
    /// # Errors
    /// If it cannot be read, or holds no facts.
    pub fn read(path: &Path) -> Result<Self, FactsError> {
        let file = path.display().to_string();
        match fs::File::open(path) {
            Ok(opened) => Self::read_from(&file, opened),
            Err(source) => Err(FactsError::File { file, source }),
        }
    }

    /// Reads facts to the end of `input`; `from` is what errors call it.
    ///
    /// # Errors
    /// If it cannot be read, holds no facts, or more than facts ever have.
    pub fn read_from(from: &str, input: impl io::Read) -> Result<Self, FactsError> {
        let mut text = String::new();
        let read = input.take(MOST + 1).read_to_string(&mut text);
        match read {
            Ok(length) if length as u64 > MOST => Err(FactsError::NoFacts {
                from: from.to_owned(),
                why: format!("it is larger than {} MiB", MOST >> 20),
            }),
            Ok(_) => Self::parse(from, &text),
            Err(source) => Err(FactsError::File { file: from.to_owned(), source }),
        }
    }

    /// Reads facts from JSON; `from` is what errors call it. Findings, which `dualq doctor --json` has beside them, are passed
    /// over. What FreeBSD's `sysctl -a` prints will do as well.
    ///
    /// # Errors
    /// If it holds no facts.
    pub fn parse(from: &str, text: &str) -> Result<Self, FactsError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if let Some(facts) = Self::from_sysctl_output(text) {
            return Ok(facts);
        }
        // Words of the document may be in it, whatever they are.
        let no_facts = |why: String| FactsError::NoFacts {
            from: from.to_owned(),
            why: why.lines().collect::<Vec<_>>().join(" "),
        };
        let mut document: Value =
            serde_json::from_str(text).map_err(|error| no_facts(error.to_string()))?;
        let Some(fields) = document.as_object_mut() else {
            return Err(no_facts("it is no JSON object".to_owned()));
        };
        // Before all else: in another format, anything may be missing.
        match fields.get("format").and_then(Value::as_u64) {
            None => return Err(no_facts("it has no number \"format\"".to_owned())),
            Some(format) if format != u64::from(FORMAT) => {
                return Err(FactsError::Format { from: from.to_owned(), format });
            }
            Some(_) => {}
        }
        fields.remove("findings");
        serde_json::from_value(document).map_err(|error| no_facts(error.to_string()))
    }
}
