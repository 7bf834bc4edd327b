//! A kernel's `.config`, and what follows from it.

/// Disciplines that every kernel with `CONFIG_NET_SCHED` registers (net/sched/sch_api.c).
const ALWAYS: [&str; 6] = ["bfifo", "mq", "noqueue", "pfifo", "pfifo_fast", "pfifo_head_drop"];

/// The text of a `.config`.
pub(crate) struct Config<'a>(pub(crate) &'a str);

impl<'a> Config<'a> {
    /// The value of an option, without `CONFIG_`; `n` is what is not set or not known.
    pub(crate) fn value(&self, option: &str) -> &'a str {
        self.settings().find(|(name, _)| *name == option).map_or("n", |(_, value)| value)
    }

    fn settings(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.lines().filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
    }

    /// What is built in of the options whose name begins so, without that beginning.
    fn built_in(&self, family: &str) -> impl Iterator<Item = &'a str> {
        self.settings()
            .filter(|(_, value)| *value == "y")
            .filter_map(move |(name, _)| name.strip_prefix(family))
    }

    /// The queue disciplines, by tc's names, in alphabetical order.
    pub(crate) fn qdiscs(&self) -> Vec<String> {
        if self.value("NET_SCHED") != "y" {
            return Vec::new();
        }
        let mut names: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
        for option in self.built_in("NET_SCH_") {
            match option {
                // The first is among those that are always there, the other two are no disciplines.
                "FIFO" | "MQPRIO_LIB" | "BPF" => {}
                "INGRESS" => names.extend(["ingress".to_owned(), "clsact".to_owned()]),
                _ => names.push(option.to_lowercase()),
            }
        }
        names.sort();
        names
    }

    /// The congestion controls, by the kernel's names, in alphabetical order.
    pub(crate) fn congestion_controls(&self) -> Vec<String> {
        let mut names = vec!["reno".to_owned()];
        for option in self.built_in("TCP_CONG_") {
            match option {
                "ADVANCED" => {}
                "HSTCP" => names.push("highspeed".to_owned()),
                _ => names.push(option.to_lowercase()),
            }
        }
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "CONFIG_HZ=100\nCONFIG_NET_SCHED=y\nCONFIG_NET_SCH_FQ_CODEL=y\n\
        CONFIG_NET_SCH_CAKE=m\nCONFIG_NET_SCH_FIFO=y\nCONFIG_NET_SCH_INGRESS=y\n\
        # CONFIG_NET_SCH_DUALPI2 is not set\nCONFIG_TCP_CONG_ADVANCED=y\nCONFIG_TCP_CONG_BBR=y\n\
        CONFIG_TCP_CONG_HSTCP=y\nCONFIG_DEFAULT_TCP_CONG=\"cubic\"\n";

    #[test]
    fn values_are_read_and_what_is_not_there_is_off() {
        let config = Config(TEXT);
        assert_eq!(config.value("HZ"), "100");
        assert_eq!(config.value("NET_SCH_DUALPI2"), "n");
        assert_eq!(config.value("NET_SCH"), "n");
    }

    #[test]
    fn what_a_kernel_can_do_has_the_names_that_tc_and_sysctl_use() {
        let config = Config(TEXT);
        let expected = "bfifo clsact fq_codel ingress mq noqueue pfifo pfifo_fast pfifo_head_drop";
        assert_eq!(config.qdiscs().join(" "), expected);
        assert_eq!(config.congestion_controls().join(" "), "bbr highspeed reno");
        assert!(Config("CONFIG_NET_SCH_FQ=y\n").qdiscs().is_empty());
    }
}
