//! What people want to know of a congestion control: what it is, what it reacts to, when not to use it.
//!
//! Each control has one table in its file, from which `dualq explain` takes its text and the documentation its page. Values are made
//! of the constants that the control works with.

/// What there is to say of a congestion control.
#[derive(Debug)]
pub struct About {
    /// Its name in full.
    pub title: &'static str,
    /// What it does, in a few sentences.
    pub what: &'static str,
    /// Loss, delay, ECN: what it answers, how, and the codepoint of its packets.
    pub reacts_to: &'static str,
    /// Where this is from: RFC, draft, paper, file of the kernel.
    pub source: &'static str,
    /// When something else is better.
    pub not_for: &'static str,
    /// What it works with; none of it is an option of a flow.
    pub constants: &'static [Constant],
}

/// A constant of a congestion control.
#[derive(Debug)]
pub struct Constant {
    /// Its name in the source.
    pub name: &'static str,
    /// Its value with a unit.
    pub value: fn() -> String,
    /// What it does.
    pub does: &'static str,
}

impl Constant {
    pub(super) const fn new(name: &'static str, value: fn() -> String, does: &'static str) -> Self {
        Self { name, value, does }
    }
}

/// A share of `unit`, as a number with at most two digits behind the point.
pub(super) fn share(value: u64, unit: u64) -> String {
    let text = format!("{:.2}", value as f64 / unit as f64);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_share_is_short() {
        assert_eq!(share(256, 256), "1");
        assert_eq!(share(717, 1024), "0.7");
        assert_eq!(share(320, 256), "1.25");
    }
}
