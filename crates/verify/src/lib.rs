#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod judgement;
mod rank;

pub use judgement::{Figures, Interval, Judgement, MOST_ROUNDS, Round, Verdict};
