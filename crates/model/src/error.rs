//! What can be wrong with a scenario.

/// A scenario that can't be simulated, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The queue discipline is none that is modelled.
    #[error(
        "{0:?} is no queue discipline of the model: pfifo, bfifo, pfifo_fast, fq, codel, fq_codel, pie or dualpi2"
    )]
    UnknownQdisc(String),
    /// A word in a queue discipline's description makes no sense.
    #[error("{word:?} is not understood in the queue discipline {text:?}")]
    Qdisc {
        /// The description.
        text: String,
        /// The word.
        word: String,
    },
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
