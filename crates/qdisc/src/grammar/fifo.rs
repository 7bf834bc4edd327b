//! `pfifo` and `bfifo` (tc-bfifo(8)).

use dualq_units::Bytes;

use super::words::Words;
use super::{ParseError, RefusedBy, did_you_mean};
use crate::Spec;

pub(super) fn parse(kind: &str, words: &mut Words<'_>) -> Result<Spec, ParseError> {
    let in_bytes = kind == "bfifo";
    let expected = if in_bytes {
        "give a size of at most 4gb, such as 100000 or 100kb"
    } else {
        "give a number of packets, such as 1000"
    };
    let mut limit = None;
    while let Some(word) = words.next() {
        if word == "limit" {
            limit = Some(words.size("limit", expected)?);
        } else {
            let hint = did_you_mean(word, &["limit"]);
            let message = format!("unknown option {word:?}; {hint}{kind} takes limit");
            return Err(words.refuse(RefusedBy::Tc, message));
        }
    }
    Ok(if in_bytes {
        Spec::Bfifo { limit: limit.map(|bytes| Bytes(bytes.into())) }
    } else {
        Spec::Pfifo { limit }
    })
}
