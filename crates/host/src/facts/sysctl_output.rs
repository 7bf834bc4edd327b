//! Facts of a FreeBSD machine, from what `sysctl -a` prints there.

use super::{Availability, FORMAT, Facts, Kernel, Os};

/// The congestion controls that the base system has as modules: mod_cc(4).
const MODULES: [&str; 8] = ["cdg", "chd", "cubic", "dctcp", "hd", "htcp", "newreno", "vegas"];
const AVAILABLE: &str = "net.inet.tcp.cc.available";

impl Facts {
    /// Reads the output of FreeBSD's `sysctl -a`; `None` if it is not that.
    #[must_use]
    pub fn from_sysctl_output(text: &str) -> Option<Self> {
        let mut facts = Self { format: FORMAT, os: Os::FreeBsd, ..Self::default() };
        let mut last: Option<String> = None;
        let mut available = String::new();
        for line in text.lines() {
            let entry = line.split_once(':').filter(|(key, _)| is_key(key));
            let Some((key, value)) = entry else {
                // A table follows its key on lines of its own.
                if last.as_deref() == Some(AVAILABLE) {
                    available.push_str(line);
                    available.push('\n');
                }
                continue;
            };
            let value = value.trim().to_owned();
            match key {
                AVAILABLE => available.clone_from(&value),
                "kern.osrelease" => facts.kernel.release.clone_from(&value),
                "hw.machine_arch" => facts.kernel.machine.clone_from(&value),
                "kern.vm_guest" if value != "none" => {
                    facts.kernel.virtualization = Some(value.clone());
                }
                _ => {}
            }
            let matters = key.starts_with("net.inet.tcp.") || key == "kern.ipc.maxsockbuf";
            if matters && key != AVAILABLE && !value.is_empty() {
                facts.sysctls.insert(key.to_owned(), value);
            }
            last = Some(key.to_owned());
        }
        facts.kernel = Kernel { modules: true, ..facts.kernel };
        "FreeBSD".clone_into(&mut facts.distribution.name);
        "freebsd".clone_into(&mut facts.distribution.id);
        facts.distribution.version.clone_from(&facts.kernel.release);
        for module in MODULES {
            facts.congestion_controls.insert(module.to_owned(), Availability::Module);
        }
        for name in names(&available) {
            facts.congestion_controls.insert(name.to_owned(), Availability::Ready);
        }
        let is_freebsd = !available.is_empty() && !facts.kernel.release.is_empty();
        is_freebsd.then_some(facts)
    }
}

fn is_key(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-%".contains(c);
    text.contains('.') && text.chars().all(plain)
}

/// `newreno, cubic` until FreeBSD 12; since 13 a table: the name, a star at the default, the connections that use it.
fn names(available: &str) -> impl Iterator<Item = &str> {
    available
        .lines()
        .filter(|line| !line.trim_start().starts_with("CCmod"))
        .flat_map(|line| {
            let is_list = line.contains(',');
            let words: Vec<&str> = line.split([',', ' ', '\t']).filter(|w| !w.is_empty()).collect();
            let take = if is_list { words.len() } else { 1 };
            words.into_iter().take(take).collect::<Vec<_>>()
        })
        .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(text: &str) -> Vec<String> {
        let facts = Facts::from_sysctl_output(text).unwrap();
        let ready = |(name, availability)| (availability == Availability::Ready).then_some(name);
        facts.congestion_controls.into_iter().filter_map(ready).collect()
    }

    #[test]
    fn both_forms_of_the_list() {
        let table = "kern.osrelease: 14.2-RELEASE\nnet.inet.tcp.cc.available: \n\
                     CCmod           D PCB count\nnewreno           0\ncubic           * 7\n\n\
                     net.inet.tcp.cc.algorithm: cubic\n";
        assert_eq!(ready(table), ["cubic", "newreno"]);
        let list = "kern.osrelease: 12.4-RELEASE\nnet.inet.tcp.cc.available: newreno, htcp\n";
        assert_eq!(ready(list), ["htcp", "newreno"]);
        let one = "kern.osrelease: 12.4-RELEASE\nnet.inet.tcp.cc.available: newreno\n";
        assert_eq!(ready(one), ["newreno"]);
    }

    #[test]
    fn other_texts_are_not_taken_for_it() {
        assert_eq!(Facts::from_sysctl_output(""), None);
        assert_eq!(Facts::from_sysctl_output("net.ipv4.tcp_ecn = 2\n"), None);
        assert_eq!(Facts::from_sysctl_output("kern.osrelease: 15.0-RELEASE\n"), None);
    }
}
