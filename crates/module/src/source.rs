//! Linux's `sch_dualpi2.c`: which fixes are in it.

use crate::error::ModuleError;

/// Where it is in a tree.
pub(crate) const PATH: &str = "net/sched/sch_dualpi2.c";

/// What the header before the source is made for: the form that the source has in Linux 7.2.
const FORM: &str = "enum qdisc_drop_reason";

/// Fixes that came after the merge in Linux 6.17: what only a source has that has it, and what happens without it.
const FIXES: [(&str, &str); 5] = [
    (
        "qdisc_tree_reduce_backlog(sch, 1 - cnt",
        "below a class, split aggregates are counted wrongly, with which any user can crash the kernel",
    ),
    ("dualpi2_peek", "below a class, packets that are dropped while it peeks are counted wrongly"),
    (
        "qdisc_dequeue_internal(q->l_queue",
        "a smaller limit is not kept while only the L queue holds packets",
    ),
    ("tcf_classify_qdisc", "filters may redirect packets, and lose them"),
    ("clamp_t(u32, psched_mtu", "numbers overflow on devices with huge MTUs"),
];

/// What a source is without.
pub(crate) fn lacking(source: &str) -> Vec<&'static str> {
    FIXES.iter().filter(|(sign, _)| !source.contains(sign)).map(|(_, without)| *without).collect()
}

/// Refuses sources that are too old to be built or to be wished for.
pub(crate) fn check(version: &str, source: &str) -> Result<(), ModuleError> {
    if source.contains(FORM) {
        return Ok(());
    }
    Err(ModuleError::OldSource { version: version.to_owned(), lacking: lacking(source) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not Linux's source, but its signs.
    fn of_signs(signs: &[&str]) -> String {
        signs.join(";\n")
    }

    #[test]
    fn what_a_source_lacks_is_told() {
        let all: Vec<&str> = FIXES.iter().map(|(sign, _)| *sign).chain([FORM]).collect();
        assert!(check("7.3.4", &of_signs(&all)).is_ok() && lacking(&of_signs(&all)).is_empty());
        let said = check("6.18.32", &of_signs(&all[1..5])).unwrap_err().to_string();
        assert!(said.contains("crash the kernel") && !said.contains("huge MTUs"), "{said}");
        assert!(said.contains("6.18.32") && said.ends_with("Linux 7.2 or later"), "{said}");
    }
}
