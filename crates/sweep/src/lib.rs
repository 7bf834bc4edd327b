#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod aim;
mod axis;
pub mod best;
mod folder;
mod plan;
mod play;
mod range;
mod space;
mod tune;

pub use aim::{Aim, AimError, Score, Until};
pub use axis::{Axis, AxisError};
pub use folder::{Folder, FolderError, Gathered, MARKER};
pub use plan::{Fingerprint, Key, Place, Plan, PlanError, Point, Record, Span, VERSION};
pub use play::{Done, More, PlayError, Shard, Step, Work};
pub use space::{MOST_SCENARIOS, Sampling, Space, SpaceError};
pub use tune::{Search, Try, TuneError, Tuned};
