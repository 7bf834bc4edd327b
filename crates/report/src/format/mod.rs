//! What a report is written as, a file each: a function of the report that gives a text.

pub mod columns;
pub mod csv;
pub mod flent;
pub mod json;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod text;
