#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod agreement;
mod error;
#[cfg(feature = "linux")]
pub mod kernel;
#[cfg(feature = "linux")]
mod live;
mod model;
mod play;
mod results;
mod unit;
mod whole;
mod world;

pub use error::{NotSoMany, WorldError};
#[cfg(feature = "linux")]
pub use kernel::Kernel;
#[cfg(feature = "linux")]
pub use live::Live;
pub use model::Model;
pub use play::{Job, Progress, Watch, on_all_cores, play};
pub use results::{Origin, Results, Run, ScenarioRuns, Seeds, Settings};
pub use unit::Unit;
pub use world::{Observer, World};
