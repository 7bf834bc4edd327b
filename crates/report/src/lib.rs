#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod agreement;
mod figures;
mod format;
mod front;
mod graphs;
mod grid;
pub mod html;
#[cfg(feature = "measured")]
pub mod measured;
mod rank;
mod remarks;
pub mod replayed;
mod report;
pub mod svg;
mod sweep;
mod thin;
mod transfers;
pub mod words;

pub use dualq_worlds::Unit;
pub use figures::{
    Column, Figure, Figures, Measure, Row, Samples, base_ms, page as page_of_figures,
};
#[cfg(feature = "parquet")]
pub use format::parquet;
pub use format::{columns, csv, flent, json, text};
pub use front::Front;
pub use graphs::sparkline;
pub use grid::{Grid, Group};
pub use report::Report;
pub use sweep::sort_values;
pub use text::Style;
