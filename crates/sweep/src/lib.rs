#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod axis;
mod folder;
mod plan;
mod range;
mod space;

pub use axis::{Axis, AxisError};
pub use folder::{Folder, FolderError, Gathered};
pub use plan::{Fingerprint, Key, Place, Plan, PlanError, Point, Record, Span, VERSION};
pub use space::{MOST_SCENARIOS, Sampling, Space, SpaceError};
