//! The options that a guest kernel is built with.

use crate::clock;
use crate::config::Config;
use crate::hash::fnv1a;

/// How much an option matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Required,
    Wanted,
    Optional,
}

#[derive(Clone, Copy, Debug)]
struct Setting<'a> {
    need: Need,
    name: &'a str,
    value: &'a str,
}

/// A list of options, as in `options.txt`.
pub(crate) struct Options<'a>(Vec<Setting<'a>>);

/// What a `.config` does not have as it was asked for, as `NAME=value`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Unmet {
    pub(crate) required: Vec<String>,
    pub(crate) wanted: Vec<String>,
}

impl Options<'static> {
    /// Those that this version of dualq builds kernels with.
    pub(crate) fn ours() -> Self {
        Self::parse(include_str!("options.txt"))
    }
}

impl<'a> Options<'a> {
    fn parse(text: &'a str) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let settings = lines.map(|line| {
            let (need, setting) = match line.split_once(' ') {
                Some(("required", setting)) => (Need::Required, setting),
                Some(("optional", setting)) => (Need::Optional, setting),
                _ => (Need::Wanted, line),
            };
            let (name, value) = setting.split_once('=').expect("an option is NAME=value");
            Setting { need, name, value }
        });
        Self(settings.collect())
    }

    /// Tells kernels of this list, and of [today's clock](clock), from others: eight hexadecimal digits, the same in every build of dualq.
    pub(crate) fn hash(&self) -> String {
        let bytes = self.0.iter().flat_map(|Setting { name, value, .. }| {
            name.bytes().chain([b'=']).chain(value.bytes()).chain([b'\n'])
        });
        format!("{:08x}", fnv1a(bytes.chain(clock::changes())))
    }

    /// A `.config` with these options in place of its own; `make olddefconfig` settles what depends on them.
    pub(crate) fn apply(&self, config: &str) -> String {
        let ours = |line: &str| {
            let name = line.strip_prefix("# ").unwrap_or(line).strip_prefix("CONFIG_");
            let name = name.and_then(|rest| rest.split(['=', ' ']).next());
            name.is_some_and(|name| self.0.iter().any(|setting| setting.name == name))
        };
        let mut text = String::with_capacity(config.len() + 4096);
        for line in config.lines().filter(|line| !ours(line)) {
            text.push_str(line);
            text.push('\n');
        }
        for Setting { name, value, .. } in &self.0 {
            text.push_str(&match *value {
                "n" => format!("# CONFIG_{name} is not set\n"),
                value => format!("CONFIG_{name}={value}\n"),
            });
        }
        text
    }

    /// What is not as asked for.
    pub(crate) fn unmet(&self, config: &Config<'_>) -> Unmet {
        let mut unmet = Unmet::default();
        for Setting { need, name, value } in &self.0 {
            if config.value(name) == *value {
                continue;
            }
            match need {
                Need::Required => unmet.required.push(format!("{name}={value}")),
                Need::Wanted => unmet.wanted.push(format!("{name}={value}")),
                Need::Optional => {}
            }
        }
        unmet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# why\nrequired HOSTFS=y\n\nNET_SCH_DUALPI2=y\nMODULES=n\nHZ=100\noptional TCP_CONG_PRAGUE=y\n";

    #[test]
    fn options_take_the_place_of_the_defaults() {
        let defaults =
            "# CONFIG_HOSTFS is not set\nCONFIG_MODULES=y\nCONFIG_MODULES_USE_ELF_RELA=y\n";
        let config = Options::parse(LIST).apply(defaults);
        assert_eq!(
            config,
            "CONFIG_MODULES_USE_ELF_RELA=y\nCONFIG_HOSTFS=y\nCONFIG_NET_SCH_DUALPI2=y\n\
             # CONFIG_MODULES is not set\nCONFIG_HZ=100\nCONFIG_TCP_CONG_PRAGUE=y\n"
        );
        assert_eq!(Options::parse(LIST).unmet(&Config(&config)), Unmet::default());
    }

    #[test]
    fn what_a_version_lacks_is_told_by_how_much_it_matters() {
        let unmet = Options::parse(LIST).unmet(&Config("CONFIG_HZ=250\nCONFIG_MODULES=y\n"));
        assert_eq!(unmet.required, ["HOSTFS=y"]);
        assert_eq!(unmet.wanted, ["NET_SCH_DUALPI2=y", "MODULES=n", "HZ=100"]);
    }

    #[test]
    fn the_hash_depends_on_options_and_not_on_comments() {
        let hash = |text| Options::parse(text).hash();
        assert_eq!(hash("A=y\nB=n\n"), hash("# about A\nA=y\n\nrequired B=n\n"));
        assert_ne!(hash("A=y\nB=n\n"), hash("A=y\nB=y\n"));
        // It names folders on people's disks, so it stays what it is as long as what is built does.
        assert_eq!(hash("A=y\n"), "6736e304");
    }

    #[test]
    fn our_own_list_asks_for_nothing_twice() {
        let options = Options::ours();
        let mut names: Vec<&str> = options.0.iter().map(|setting| setting.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), options.0.len());
        let required = options.0.iter().filter(|setting| setting.need == Need::Required);
        assert!(required.clone().any(|setting| setting.name == "UML_TIME_TRAVEL_SUPPORT"));
        assert!(required.count() >= 4);
    }
}
