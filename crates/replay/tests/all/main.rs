//! One program for all tests of the crate: the disciplines are compiled anew in each that replays through them.

mod captures;
mod common;
mod traces;
