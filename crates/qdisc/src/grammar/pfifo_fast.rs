//! `pfifo_fast` (tc-pfifo_fast(8)): the kind, and nothing else.

use std::fmt;

use super::words::Words;
use super::{ParseError, RefusedBy};
use crate::Spec;
use crate::disciplines::pfifo_fast::Options;

pub(super) fn parse(words: &mut Words<'_>) -> Result<Spec, ParseError> {
    match words.next() {
        None => Ok(Spec::PfifoFast(Options)),
        Some(word) => {
            let message = format!("unknown option {word:?}; pfifo_fast takes none");
            Err(words.refuse(RefusedBy::Tc, message))
        }
    }
}

pub(super) const fn write_options(_: &mut fmt::Formatter<'_>, _: &Options) -> fmt::Result {
    Ok(())
}
