//! A whole QUIC stack across the links of dualq's scenarios, in simulated time: [`quinn_proto`]'s endpoints do no I/O and read no clock, so
//! their datagrams become packets on a path of [`dualq_net`], and their timers events of the simulation.
//!
//! A congestion controller of quinn's, or one of your own that implements its [`ControllerFactory`], so meets every queue discipline, rate,
//! loss and delay that a scenario can say, together with the loss detection, pacing and ECN validation that it has in production.

mod host;
mod packet;
mod simulation;

use std::sync::Arc;
use std::time::Duration;

use dualq_scenario::{Direction, FlowGroup, Scenario};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};

pub use simulation::{FlowOutcome, Outcome, Packets, race};

/// A connection that sends as much as it may, from its start to the end.
#[derive(Clone)]
pub struct Flow {
    /// What it is called in the outcome.
    pub name: String,
    /// What makes its congestion controller.
    pub controller: Arc<dyn ControllerFactory + Send + Sync>,
    /// When it asks for its connection.
    pub start: Duration,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RaceError {
    /// The scenario asks for something that this example does not do.
    #[error("{0}")]
    Unsupported(String),
    /// Certificates or the handshake's configuration could not be made.
    #[error("TLS: {0}")]
    Tls(String),
    /// A connection ended before the simulation did.
    #[error("flow {flow} after {after:?}: {reason}")]
    Lost {
        /// Its number, from 0.
        flow: usize,
        /// When, from the beginning.
        after: Duration,
        /// What quinn says.
        reason: String,
    },
}

/// The scenario's flows as connections of quinn, which has a `reno`, a `cubic` and a `bbr` of its own. Each asks for ECN, as quinn does.
///
/// # Errors
/// If it has anything beside the link and flows down that never end, or a congestion control that quinn has not.
pub fn flows(scenario: &Scenario) -> Result<Vec<Flow>, RaceError> {
    let refuse = |what: String| Err(RaceError::Unsupported(what));
    if !scenario.udp.is_empty() {
        return refuse("UDP streams do not run beside QUIC here: leave [[udp]] out".to_owned());
    }
    let link = &scenario.link;
    if [Direction::Down, Direction::Up].iter().any(|way| !link.passage(*way).step.is_empty()) {
        return refuse("rates are constant here: leave steps and traces out".to_owned());
    }
    if link.mtu < packet::LEAST_MTU {
        let (mtu, least) = (link.mtu, packet::LEAST_MTU);
        return refuse(format!("link.mtu: QUIC needs {least} bytes, not {mtu} (RFC 9000 §14)"));
    }
    let mut flows = Vec::new();
    for (number, group) in scenario.flow.iter().enumerate() {
        let plain = FlowGroup {
            count: group.count,
            ecn: group.ecn,
            start: group.start,
            spacing: group.spacing,
            direction: Direction::Down,
            ..FlowGroup::of(group.cc)
        };
        if *group != plain {
            return refuse(format!(
                "flow.{number}: of a flow only cc, count, start and spacing are known here"
            ));
        }
        let name = group.cc.name();
        let Some(controller) = controller(name) else {
            return refuse(format!(
                "flow.{number}.cc: quinn has no `{name}`; it has reno, cubic and bbr"
            ));
        };
        flows.extend((0..group.count).map(|one| Flow {
            name: name.to_owned(),
            controller: Arc::clone(&controller),
            start: group.start + group.spacing * one,
        }));
    }
    Ok(flows)
}

/// Quinn's congestion controller of this name.
fn controller(name: &str) -> Option<Arc<dyn ControllerFactory + Send + Sync>> {
    Some(match name {
        "reno" => Arc::new(NewRenoConfig::default()),
        "cubic" => Arc::new(CubicConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => return None,
    })
}
