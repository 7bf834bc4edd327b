//! The names of congestion controls on the kernel at hand.

use dualq_scenario::{CongestionControl, Scenario};

/// Those that are loaded.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The congestion controls of a kernel, by its own names.
#[derive(Clone, Debug)]
pub struct Controls(Vec<String>);

impl Controls {
    /// A kernel with these.
    #[must_use]
    pub const fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Those of the kernel that this process runs on, as far as they are loaded.
    pub(crate) fn of_this_kernel() -> Self {
        let names = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
        Self(names.split_whitespace().map(str::to_owned).collect())
    }

    /// Whether `bbr` is version 3, as in Google's tree, which has version 1 as `bbr1` (`net/ipv4/tcp_bbr1.c`).
    fn bbr_is_version_3(&self) -> bool {
        let has = |name: &str| self.0.iter().any(|known| known == name);
        has("bbr") && has("bbr1") && !has("bbr3")
    }

    /// The name that the kernel has for one, if it has it.
    pub(crate) fn name_of(&self, cc: CongestionControl) -> &'static str {
        match cc.name() {
            "bbr" if self.bbr_is_version_3() => "bbr1",
            "bbr3" if self.bbr_is_version_3() => "bbr",
            name => name,
        }
    }

    /// The first that a scenario asks for and this kernel lacks, and the names that it may ask for.
    #[must_use]
    pub fn lacking(&self, scenario: &Scenario) -> Option<(&'static str, String)> {
        let flows = scenario.flow.iter().map(|group| group.cc);
        let mut asked = flows.chain(scenario.probe.iter().map(|probe| probe.cc));
        let lacking = asked.find(|asked| !self.0.iter().any(|known| known == self.name_of(*asked)));
        let name = |known: &String| match known.as_str() {
            "bbr" if self.bbr_is_version_3() => "bbr3".to_owned(),
            "bbr1" if self.bbr_is_version_3() => "bbr".to_owned(),
            known => known.to_owned(),
        };
        lacking.map(|lacking| {
            let names: Vec<String> = self.0.iter().map(name).collect();
            (lacking.name(), names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use dualq_scenario::{Algorithm, FlowGroup, ProbeGroup, Setup};

    use super::*;

    fn of(names: &str) -> Controls {
        Controls::new(names.split(' ').map(str::to_owned).collect())
    }

    fn lacking(names: &str, cc: Algorithm) -> Option<(&'static str, String)> {
        let (flow, probe) = (vec![FlowGroup::of(cc)], Vec::<ProbeGroup>::new());
        let setup = Setup { flow, probe, ..Setup::default() };
        of(names).lacking(&Scenario::try_from(setup).unwrap())
    }

    #[test]
    fn version_3_of_bbr_is_told_by_the_name_of_version_1() {
        for (names, bbr, bbr3) in [
            ("reno cubic bbr", "bbr", "bbr3"),
            ("reno cubic bbr bbr1", "bbr1", "bbr"),
            ("reno cubic bbr bbr1 bbr3", "bbr", "bbr3"),
        ] {
            let kernel = of(names);
            assert_eq!(kernel.name_of(Algorithm::Bbr.into()), bbr, "{names}");
            assert_eq!(kernel.name_of(Algorithm::Bbr3.into()), bbr3, "{names}");
            assert_eq!(kernel.name_of(Algorithm::Cubic.into()), "cubic");
        }
    }

    #[test]
    fn what_is_lacking_is_told_with_what_there_is() {
        assert_eq!(lacking("cubic bbr", Algorithm::Bbr), None);
        let expected = Some(("bbr3", "cubic, bbr".to_owned()));
        assert_eq!(lacking("cubic bbr", Algorithm::Bbr3), expected);
        for cc in [Algorithm::Bbr, Algorithm::Bbr3] {
            assert_eq!(lacking("cubic bbr bbr1", cc), None);
        }
        let expected = Some(("prague", "cubic, bbr3, bbr".to_owned()));
        assert_eq!(lacking("cubic bbr bbr1", Algorithm::Prague), expected);
    }
}
