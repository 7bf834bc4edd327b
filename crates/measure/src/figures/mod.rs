//! What samples come to: no clock and no socket, so that anybody's samples will do.

mod distribution;
mod ecn;
mod goodput;
mod grade;
mod handshake;
mod qoo;
mod rpm;
mod steady;
mod working;

pub use distribution::{Figures, quantile};
pub use ecn::{Codepoint, Fate};
pub use goodput::{Curve, bytes_at, goodput};
pub use grade::Grade;
pub use handshake::{Crossing, Handshake, HandshakeEcn, Opener, TcpEcn};
pub use qoo::{Application, Conditions, Latency, Qoo, Requirement};
pub use rpm::Rpm;
pub use steady::Steady;
pub use working::{Confidence, INTERVAL_S, Stability, WorkingConditions};
