//! Why there is no plan.

/// Why a plan cannot be read or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The file is no plan, or asks for what no plan of dualq's asks for.
    #[error("{}{message}", line.map_or(String::new(), |line| format!("line {line}: ")))]
    Refused {
        /// The line, from 1, where one is at fault.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// What was asked for cannot be had here.
    #[error("{0}")]
    Requirement(String),
}

impl PlanError {
    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self::Refused { line: None, message: message.into() }
    }
}
