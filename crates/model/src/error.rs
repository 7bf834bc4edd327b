//! What the model does not have.

/// Something that a scenario asks for and only real kernels have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmodelled {
    /// A queue discipline at the senders, or one of its options.
    #[error("sender.qdisc: {what} is not modelled; give {right}, or run it with --world kernel")]
    SenderQdisc {
        /// What is not.
        what: String,
        /// What would be.
        right: &'static str,
    },
}
