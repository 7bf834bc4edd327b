//! What can be wrong with a scenario.

/// A scenario that can't be simulated, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// A queue discipline makes no sense.
    #[error("{0}")]
    Qdisc(String),
    /// A queue discipline that only real kernels have.
    #[error("{0} is not modelled; real kernels have it")]
    UnmodelledQdisc(&'static str),
    /// A queue discipline has no place at the senders.
    #[error("sender.qdisc {0:?} is not modelled; give fq, a FIFO, or netem with a loss rate")]
    SenderQdisc(String),
    /// The congestion control is none that is modelled.
    #[error("{0:?} is no congestion control of the model: reno, cubic, dctcp or bbr")]
    UnknownCongestionControl(String),
    /// A number is out of its bounds.
    #[error("{what} is {value}: {right}")]
    OutOfBounds {
        /// Which number.
        what: &'static str,
        /// What it is.
        value: String,
        /// What would be right.
        right: &'static str,
    },
}
