//! `dualq._dualq`: what the Python package `dualq` calls. Everything that people read of it stands in the package's own files, and what
//! types there are in `dualq/_dualq.pyi`.

mod control;
mod interrupt;
mod queue;
mod results;
mod run;
mod simulation;
mod sweep;
mod table;

use pyo3::prelude::*;

pyo3::import_exception!(dualq._errors, ScenarioError);
pyo3::import_exception!(dualq._errors, RunError);

/// The program, as what it writes names it.
const PROGRAM: &str = concat!("dualq ", env!("CARGO_PKG_VERSION"));

#[pymodule]
mod _dualq {
    #[pymodule_export]
    use crate::control::{Context, RateSample, Window, register};
    #[pymodule_export]
    use crate::queue::Packet;
    #[pymodule_export]
    use crate::results::{Results, Run};
    #[pymodule_export]
    use crate::run::run;
    #[pymodule_export]
    use crate::simulation::{ConnectionEvent, Flow, PacketEvent, QueueNow, Simulation};
    #[pymodule_export]
    use crate::sweep::{Plan, play};
    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
