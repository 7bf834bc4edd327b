#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod agreement;
mod error;
pub mod kernel;
mod live;
mod model;
mod play;
mod results;
mod unit;
mod whole;
mod world;

pub use error::{NotSoMany, WorldError};
pub use kernel::Kernel;
pub use live::Live;
pub use model::Model;
pub use play::{Job, Progress, Watch, play};
pub use results::{Origin, Results, Run, ScenarioRuns, Seeds, Settings};
pub use unit::Unit;
pub use world::{Observer, World};
