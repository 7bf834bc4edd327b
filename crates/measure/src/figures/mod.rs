//! What samples come to: no clock and no socket, so that anybody's samples will do.

mod distribution;
mod ecn;
mod goodput;
mod grade;
mod qoo;
mod rpm;
mod steady;

pub use distribution::{Figures, quantile};
pub use ecn::{Codepoint, Fate};
pub use goodput::{Curve, bytes_at, goodput};
pub use grade::Grade;
pub use qoo::{Application, Conditions, Latency, Qoo, Requirement};
pub use rpm::Rpm;
pub use steady::Steady;
