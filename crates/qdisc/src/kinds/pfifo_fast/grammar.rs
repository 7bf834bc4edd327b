//! `pfifo_fast` (tc-pfifo_fast(8)): the kind, and nothing else.

use std::fmt;

use super::Options;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, RefusedBy};
use crate::kinds::Grammar;

impl Grammar for Options {
    const NAME: &'static str = "pfifo_fast";

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        match words.next() {
            None => Ok(Options),
            Some(word) => {
                let message = format!("unknown option {word:?}; pfifo_fast takes none");
                Err(words.refuse(RefusedBy::Tc, message))
            }
        }
    }

    fn write(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
