//! What the model does not have.

/// Something that a scenario asks for and only real kernels have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmodelled {
    /// A queue discipline of the path, or one inside it.
    #[error("{key}: {kind} is not modelled; real kernels have it")]
    Qdisc {
        /// Where the scenario asks for it.
        key: &'static str,
        /// Which it is.
        kind: &'static str,
    },
    /// A queue discipline at the senders, or one of its options.
    #[error("sender.qdisc: {what} is not modelled; give {right}, or run it with --world kernel")]
    SenderQdisc {
        /// What is not.
        what: String,
        /// What would be.
        right: &'static str,
    },
}
