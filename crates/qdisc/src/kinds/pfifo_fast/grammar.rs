//! `pfifo_fast` (tc-pfifo_fast(8)): the kind, and nothing else.

use std::fmt;

use super::Options;
use super::about::ABOUT;
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, unknown_option};
use crate::kinds::Grammar;

impl Grammar for Options {
    const NAME: &'static str = "pfifo_fast";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        match words.next() {
            None => Ok(Options),
            Some(word) => Err(unknown_option::<Self>(word, words)),
        }
    }

    fn write(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
