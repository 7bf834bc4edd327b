//! What plays scenarios.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Duration;

use dualq_scenario::{ConnectionEvent, Event, Headers, Outcome, Scenario, Wants, Watch};

use crate::WorldError;

/// Plays scenarios. The outcome follows from the scenario and the seed alone, but for worlds of real time.
///
/// A world of real time is [`alone`](Self::alone): [`play`](crate::play) then runs nothing beside it, which would disturb it.
pub trait World: Sync {
    /// What it is called in documents and tables.
    fn name(&self) -> &str;

    /// The Linux kernel that it runs on, by its version, or by its name where it was built from somebody's own sources; a simulation
    /// has none.
    fn kernel_version(&self) -> Option<&str> {
        None
    }

    /// Whether nothing else may run at the same time.
    fn alone(&self) -> bool {
        false
    }

    /// Says why it cannot play the scenario, before that is tried.
    fn refuses(&self, scenario: &Scenario) -> Option<String>;

    /// Plays a scenario. The observer is told how much of its time has passed as often as that is known, and each packet that is
    /// seen if it wants these.
    ///
    /// # Errors
    /// If the scenario is refused, the world breaks, or the observer asks to stop.
    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, WorldError>;
}

/// Sees how a run goes. A closure that takes a time is one that looks at nothing else.
pub trait Observer {
    /// So much of the scenario's time has passed. Whoever breaks ends the run.
    fn passed(&mut self, time: Duration) -> ControlFlow<()>;

    /// What else is to be told, which takes time. It is asked once, before the run.
    fn wants(&self) -> Wants {
        Wants::default()
    }

    /// A packet was seen. Some worlds tell all packets at the end, as they do of what follows.
    fn packet(&mut self, event: Event) {
        let _ = event;
    }

    /// A packet passed a place where its headers are looked at.
    fn headers(&mut self, headers: &Headers<'_>) {
        let _ = headers;
    }

    /// A connection did something.
    fn connection(&mut self, event: &ConnectionEvent) {
        let _ = event;
    }
}

impl<F: FnMut(Duration) -> ControlFlow<()>> Observer for F {
    fn passed(&mut self, time: Duration) -> ControlFlow<()> {
        self(time)
    }
}

/// All packets that are seen.
impl Observer for Vec<Event> {
    fn passed(&mut self, _: Duration) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn wants(&self) -> Wants {
        Wants { packets: true, ..Wants::default() }
    }

    fn packet(&mut self, event: Event) {
        self.push(event);
    }
}

/// An observer that is told of the time by somebody else.
pub(crate) struct Told<'a, 'o>(pub(crate) &'a RefCell<&'o mut dyn Observer>);

impl Watch for Told<'_, '_> {
    fn wants(&self) -> Wants {
        self.0.borrow().wants()
    }

    fn packet(&mut self, event: Event) {
        self.0.borrow_mut().packet(event);
    }

    fn headers(&mut self, headers: &Headers<'_>) {
        self.0.borrow_mut().headers(headers);
    }

    fn connection(&mut self, event: &ConnectionEvent) {
        self.0.borrow_mut().connection(event);
    }
}
