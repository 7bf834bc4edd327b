#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod agreement;
mod figures;
mod format;
mod graphs;
mod grid;
pub mod html;
mod rank;
mod remarks;
mod report;
pub mod words;

pub use dualq_worlds::Unit;
pub use figures::{Column, Figure, Figures, Row, Samples, base_ms, page as page_of_figures};
pub use format::{csv, flent, json, text};
pub use report::Report;
pub use text::Style;
