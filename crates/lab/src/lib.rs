//! The lab: a scenario on the Linux stack that it runs on.
//!
//! Network namespaces that it makes itself, joined by veth pairs; the bottleneck is `htb` with the queue discipline under
//! test; flows and probes are real sockets; statistics come from the kernel. In a guest with virtual time this is the world
//! `kernel`. It needs `CAP_NET_ADMIN` and `CAP_NET_RAW`, and touches nothing outside of its namespaces.
#![deny(unsafe_code)]

mod capture;
mod dumbbell;
mod error;
mod experiment;
mod limits;
mod namespace;
mod record;
mod sockets;
mod taps;
mod tcp_info;
mod watch;

pub use dumbbell::tells_flows_apart;
pub use error::LabError;
pub use experiment::{run, run_watched};
