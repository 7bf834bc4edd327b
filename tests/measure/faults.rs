//! Paths that do what they should not.
