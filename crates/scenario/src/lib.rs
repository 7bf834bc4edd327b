#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod assignment;
mod bounds;
mod congestion;
pub mod draw;
mod ecn;
mod event;
mod loss;
mod notes;
mod outcome;
mod passage;
mod path;
mod reader;
mod scenario;
mod sizes;
pub mod summary;
mod sweep;
mod trace;
mod traffic;
mod watch;
mod words;

pub use assignment::Assignment;
pub use bounds::{ScenarioError, check_rate, check_rtt};
pub use congestion::CongestionControl;
pub use dualq_tcp::{Algorithm, EcnOption, EcnStyle, OPTION_BYTES, READ_BYTES, WRITE_BYTES};
pub use ecn::EcnRequest;
pub use event::{Event, Kind, Seen};
pub use loss::{Loss, LossError};
pub use notes::notes;
pub use outcome::{
    AccurateEcn, Completions, DelayDistribution, Delays, FlowOutcome, Lateness, LatenessBin, Limit,
    LinkLateness, OtherQueue, Outcome, ProbeOutcome, QueueOutcome, Series, UdpOutcome,
};
pub use passage::{OTHER_QUEUES, OtherBottleneck, Passage, TESTED_QUEUE, UP_QUEUE, Which};
pub use path::{Direction, Element, UpLink};
pub use reader::SweepError;
pub use scenario::{
    CLOCK_AT_START, FLOW_SPACING, FlowGroup, Link, PROBE_BYTES, ProbeGroup, ProbeKind, QUEUES_MADE,
    RTT_SAMPLE_INTERVAL, RateStep, ReceiverSide, SEGMENT_HEADERS, SETTLING, Scenario, SenderSide,
    Setup, TIMER_SLACK,
};
pub use sizes::{Distribution, Size, SizesError, SizesFault};
pub use sweep::{Overrides, PICTURE_INTERVAL, Sweep, Variant};
pub use trace::{Files, Trace, TraceError, TraceFault, files};
pub use traffic::{Arrivals, Transfer, UdpGroup, UdpKind};
pub use watch::{Change, ConnectionEvent, Headers, Metrics, Point, Wants, Watch};
