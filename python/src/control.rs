//! Congestion controls that are written in Python. Slow: each of their calls goes through the interpreter.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dualq_scenario::{Algorithm, EcnStyle};
use dualq_tcp::cc::{CongestionControl, Event, INFINITE_SSTHRESH, State};
use dualq_tcp::{LostPacket, cc};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::ScenarioError;
use crate::interrupt::Stop;

/// Bits a second in a byte a second, in Mbit/s.
const MBIT: f64 = 8.0 / 1e6;

/// How much may be sent: what a congestion control decides.
#[pyclass(module = "dualq")]
pub(crate) struct Window(cc::Window);

/// A window or threshold that makes sense.
fn packets(name: &str, packets: i64) -> PyResult<u32> {
    let most = INFINITE_SSTHRESH;
    let number = u32::try_from(packets).ok().filter(|packets| (1..=most).contains(packets));
    number.ok_or_else(|| {
        PyValueError::new_err(format!("{name} is {packets}: give a whole number from 1 to {most}"))
    })
}

#[pymethods]
impl Window {
    #[getter]
    fn cwnd(&self) -> u32 {
        self.0.cwnd
    }

    #[setter]
    fn set_cwnd(&mut self, cwnd: i64) -> PyResult<()> {
        self.0.cwnd = packets("cwnd", cwnd)?;
        Ok(())
    }

    #[getter]
    fn ssthresh(&self) -> Option<u32> {
        Some(self.0.ssthresh).filter(|ssthresh| *ssthresh < INFINITE_SSTHRESH)
    }

    #[setter]
    fn set_ssthresh(&mut self, ssthresh: Option<i64>) -> PyResult<()> {
        let given = ssthresh.map(|ssthresh| packets("ssthresh", ssthresh));
        self.0.ssthresh = given.transpose()?.unwrap_or(INFINITE_SSTHRESH);
        Ok(())
    }

    #[getter]
    fn pacing_mbit(&self) -> Option<f64> {
        Some(self.0.pacing_rate).filter(|rate| *rate < u64::MAX).map(|rate| rate as f64 * MBIT)
    }

    #[setter]
    fn set_pacing_mbit(&mut self, rate: Option<f64>) -> PyResult<()> {
        self.0.pacing_rate = match rate {
            None => u64::MAX,
            Some(rate) if rate > 0.0 && rate.is_finite() => (rate / MBIT).max(1.0) as u64,
            Some(rate) => {
                let message = format!("pacing_mbit is {rate}: give a rate above 0, or None");
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(())
    }

    #[getter]
    fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }

    fn slow_start(&mut self, acked: u32) -> u32 {
        self.0.slow_start(acked)
    }

    fn additive_increase(&mut self, per_packet: u32, acked: u32) {
        self.0.additive_increase(per_packet.max(1), acked);
    }

    fn __repr__(&self) -> String {
        format!("<dualq.Window: cwnd {}, ssthresh {:?}>", self.0.cwnd, self.ssthresh())
    }
}

/// What a congestion control may know of its connection.
#[pyclass(frozen, module = "dualq")]
pub(crate) struct Context(cc::Context);

#[pymethods]
impl Context {
    #[getter]
    fn now_s(&self) -> f64 {
        self.0.now.as_nanos() as f64 / 1e9
    }

    #[getter]
    fn mss(&self) -> u32 {
        self.0.mss
    }

    #[getter]
    fn state(&self) -> &'static str {
        word(self.0.state)
    }

    #[getter]
    fn prior_cwnd(&self) -> u32 {
        self.0.prior_cwnd
    }

    #[getter]
    fn in_flight(&self) -> u32 {
        self.0.packets_in_flight
    }

    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }

    #[getter]
    fn delivered_ce(&self) -> u64 {
        self.0.delivered_ce
    }

    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }

    #[getter]
    fn srtt_ms(&self) -> Option<f64> {
        Some(self.0.srtt_eighth_us).filter(|srtt| *srtt > 0).map(|srtt| srtt as f64 / 8e3)
    }

    #[getter]
    fn min_rtt_ms(&self) -> Option<f64> {
        Some(self.0.min_rtt_us).filter(|rtt| *rtt < u64::MAX).map(|rtt| rtt as f64 / 1e3)
    }

    #[getter]
    fn cwnd_limited(&self) -> bool {
        self.0.cwnd_limited
    }

    #[getter]
    fn paced(&self) -> bool {
        self.0.paced
    }

    #[getter]
    fn random(&self) -> u32 {
        self.0.random()
    }
}

/// What an acknowledgement tells.
#[pyclass(frozen, module = "dualq")]
pub(crate) struct RateSample(dualq_tcp::RateSample);

#[pymethods]
impl RateSample {
    #[getter]
    fn delivered(&self) -> Option<u32> {
        self.0.delivered
    }

    #[getter]
    fn prior_delivered(&self) -> u64 {
        self.0.prior_delivered
    }

    #[getter]
    fn interval_ms(&self) -> f64 {
        self.0.interval_us as f64 / 1e3
    }

    #[getter]
    fn rtt_ms(&self) -> Option<f64> {
        self.0.rtt_us.map(|rtt| rtt as f64 / 1e3)
    }

    #[getter]
    fn losses(&self) -> u32 {
        self.0.losses
    }

    #[getter]
    fn acked(&self) -> u32 {
        self.0.acked_sacked
    }

    #[getter]
    fn marks(&self) -> u32 {
        self.0.marks
    }

    #[getter]
    fn ece(&self) -> bool {
        self.0.ece
    }

    #[getter]
    fn prior_in_flight(&self) -> u32 {
        self.0.prior_in_flight
    }

    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
}

/// The kernel's words for the states of a sender.
const fn word(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Disorder => "disorder",
        State::Cwr => "cwr",
        State::Recovery => "recovery",
        State::Loss => "loss",
    }
}

/// What was registered under a name.
#[derive(Clone)]
struct Registered {
    /// Called for each connection, it makes a control.
    make: Arc<Py<PyAny>>,
    /// Those of the methods that may be left out and are there.
    has: Arc<[String]>,
    ecn: EcnStyle,
    paces: bool,
}

/// What Python registered, by its names. Registered again, a name means the new one: notebooks run a cell twice.
static KNOWN: Mutex<Option<HashMap<String, Registered>>> = Mutex::new(None);

/// Makes a congestion control known under a name.
#[pyfunction]
pub(crate) fn register(
    name: String,
    make: Py<PyAny>,
    has: Vec<String>,
    ecn: &str,
    paces: bool,
) -> PyResult<()> {
    let ecn = match ecn {
        "classic" => EcnStyle::Classic,
        "dctcp" => EcnStyle::Dctcp,
        "accurate" => EcnStyle::Accurate,
        _ => {
            let message = format!("ecn is {ecn:?}: give \"classic\", \"dctcp\" or \"accurate\"");
            return Err(PyValueError::new_err(message));
        }
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        let message = format!("{name:?} is no name: give letters, digits, - and _");
        return Err(ScenarioError::new_err(message));
    }
    let registered = Registered { make: Arc::new(make), has: has.into(), ecn, paces };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if !known.contains_key(&name) {
        let own = name.clone();
        let control = move || -> Box<dyn CongestionControl> {
            let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            let found = known.as_ref().and_then(|known| known.get(&own)).cloned();
            Box::new(Control::new(found.expect("it was put there before it was registered")))
        };
        // It lasts as long as the program.
        Algorithm::register(String::leak(name.clone()), control)
            .map_err(|taken| ScenarioError::new_err(taken.to_string()))?;
    }
    known.insert(name, registered);
    Ok(())
}

thread_local! {
    /// Whom controls of simulations on this thread tell what they raise.
    static STOP: RefCell<Option<Arc<Stop>>> = const { RefCell::new(None) };
}

/// From now on what Python raises on this thread goes there.
pub(crate) fn raise_to(stop: &Arc<Stop>) {
    STOP.with(|current| *current.borrow_mut() = Some(Arc::clone(stop)));
}

/// A connection's control.
struct Control {
    registered: Registered,
    /// None before the connection is established.
    object: Option<Py<PyAny>>,
    stop: Option<Arc<Stop>>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Control in Python")
    }
}

impl Control {
    fn new(registered: Registered) -> Self {
        let stop = STOP.with(|current| current.borrow().clone());
        Self { registered, object: None, stop }
    }

    fn has(&self, method: &str) -> bool {
        self.registered.has.iter().any(|has| has == method)
    }

    /// Calls a method with the window, the context and more; what it leaves of the window is taken over. After an error nothing is
    /// called any more, and the run ends soon.
    fn call<R>(
        &mut self,
        method: &str,
        window: &mut cc::Window,
        context: &cc::Context,
        more: impl FnOnce(Python<'_>) -> PyResult<Option<Py<PyAny>>>,
        take: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>,
    ) -> Option<R> {
        if self.stop.as_ref().is_some_and(|stop| stop.is_asked()) {
            return None;
        }
        Python::attach(|py| {
            let answer = (|| {
                if self.object.is_none() {
                    self.object = Some(self.registered.make.call0(py)?);
                }
                let object = self.object.as_ref().expect("it was just made").bind(py);
                let shown = Bound::new(py, Window(*window))?;
                let known = Bound::new(py, Context(*context))?;
                let answer = match more(py)? {
                    None => object.call_method1(method, (&shown, known))?,
                    Some(more) => object.call_method1(method, (&shown, known, more))?,
                };
                let taken = take(&answer)?;
                *window = shown.borrow().0;
                Ok(taken)
            })();
            match (answer, &self.stop) {
                (Ok(answer), _) => Some(answer),
                (Err(error), Some(stop)) => {
                    stop.raise(error);
                    None
                }
                (Err(error), None) => {
                    error.write_unraisable(py, None);
                    None
                }
            }
        })
    }

    /// The same of a method that gives nothing.
    fn tell(&mut self, method: &str, window: &mut cc::Window, context: &cc::Context) {
        self.call(method, window, context, |_| Ok(None), |_| Ok(()));
    }
}

fn object<'py>(py: Python<'py>, value: impl IntoPyObject<'py>) -> PyResult<Option<Py<PyAny>>> {
    value.into_py_any(py).map(Some)
}

impl CongestionControl for Control {
    fn start(&mut self, window: &mut cc::Window, context: &cc::Context) {
        self.tell("start", window, context);
    }

    fn ssthresh(&mut self, window: &cc::Window, context: &cc::Context) -> u32 {
        let (mut copy, usual) = (*window, (window.cwnd / 2).max(cc::MIN_SSTHRESH));
        let take = |answer: &Bound<'_, PyAny>| packets("what ssthresh returned", answer.extract()?);
        self.call("ssthresh", &mut copy, context, |_| Ok(None), take).unwrap_or(usual)
    }

    fn increase(&mut self, window: &mut cc::Window, context: &cc::Context, acked: u32) {
        self.call("increase", window, context, |py| object(py, acked), |_| Ok(()));
    }

    fn on_ack_event(&mut self, window: &mut cc::Window, context: &cc::Context) {
        self.tell("on_ack", window, context);
    }

    fn on_rtt(&mut self, window: &mut cc::Window, context: &cc::Context, rtt_us: u64) {
        let rtt_ms = rtt_us as f64 / 1e3;
        self.call("on_rtt", window, context, |py| object(py, rtt_ms), |_| Ok(()));
    }

    fn on_state(&mut self, window: &mut cc::Window, context: &cc::Context, next: State) {
        if self.has("on_state") {
            self.call("on_state", window, context, |py| object(py, word(next)), |_| Ok(()));
        }
    }

    fn on_lost(&mut self, window: &mut cc::Window, context: &cc::Context, _: &LostPacket) {
        self.tell("on_lost", window, context);
    }

    fn on_event(&mut self, window: &mut cc::Window, context: &cc::Context, event: Event) {
        if self.has("on_event") {
            let word = match event {
                Event::TransmitStart => "transmit-start",
                Event::ReductionComplete => "reduction-complete",
                Event::Loss => "loss",
            };
            self.call("on_event", window, context, |py| object(py, word), |_| Ok(()));
        }
    }

    fn control(
        &mut self,
        window: &mut cc::Window,
        context: &cc::Context,
        sample: &dualq_tcp::RateSample,
    ) -> bool {
        if self.has("control") {
            let sample = |py: Python<'_>| Ok(Some(Py::new(py, RateSample(*sample))?.into_any()));
            self.call("control", window, context, sample, |_| Ok(()));
        }
        self.has("control")
    }

    fn sets_window(&self) -> bool {
        self.has("control")
    }

    fn undo(&mut self, window: &mut cc::Window, context: &cc::Context) -> u32 {
        let usual = window.cwnd.max(context.prior_cwnd);
        if !self.has("undo") {
            return usual;
        }
        let take = |answer: &Bound<'_, PyAny>| packets("what undo returned", answer.extract()?);
        self.call("undo", window, context, |_| Ok(None), take).unwrap_or(usual)
    }

    fn ecn_style(&self) -> EcnStyle {
        self.registered.ecn
    }

    fn needs_ack_events(&self) -> bool {
        self.has("on_ack")
    }

    fn needs_rtt(&self, _window: &cc::Window, _rtt_us: u64) -> bool {
        self.has("on_rtt")
    }

    fn needs_losses(&self) -> bool {
        self.has("on_lost")
    }

    fn needs_pacing(&self) -> bool {
        self.registered.paces
    }
}
