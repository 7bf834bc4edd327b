//! Work beside the interpreter: it is free meanwhile, Ctrl-C ends the work, and what Python raised inside of it comes out of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// So often is looked whether somebody pressed Ctrl-C.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Tells work to stop, and why.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    asked: AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

impl Stop {
    /// Whether to stop.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Python code that the work called has raised this. The first counts.
    pub(crate) fn raise(&self, error: PyErr) {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.asked.store(true, Ordering::Relaxed);
    }

    /// What was raised, once.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Does `work` on a thread of its own, and `look`s from time to time, with the interpreter: an error of that is what comes of it.
pub(crate) fn beside<T: Send>(
    py: Python<'_>,
    stop: &Stop,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    thread::scope(|scope| {
        let (done, waits) = sync_channel::<()>(1);
        let mut waits = Some(waits);
        let worker = scope.spawn(move || {
            let result = work();
            let _ = done.send(());
            result
        });
        while let Some(receiver) = waits.take() {
            let (receiver, answer) = py.detach(move || {
                let answer = receiver.recv_timeout(LOOK);
                (receiver, answer)
            });
            if answer != Err(RecvTimeoutError::Timeout) {
                break;
            }
            if let Err(error) = py.check_signals().and_then(|()| look(py)) {
                stop.raise(error);
            }
            waits = Some(receiver);
        }
        // Whoever works may want the interpreter before it ends.
        let result = py.detach(|| worker.join());
        match (stop.take(), result) {
            (Some(error), _) => Err(error),
            (None, Ok(result)) => Ok(result),
            (None, Err(_)) => Err(PyRuntimeError::new_err("dualq failed inside; please report it")),
        }
    })
}
