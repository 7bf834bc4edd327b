//! What is in a kernel, or can be loaded into it: queue disciplines, congestion controls.

use std::collections::{BTreeMap, BTreeSet};

use super::kernel::Config;
use super::reader::Reader;
use super::{Availability, Blocked};

/// Queue disciplines that dualq's users ask for: the kernel's name, its module, its option.
const QDISCS: [(&str, &str, &str); 14] = [
    ("cake", "sch_cake", "NET_SCH_CAKE"),
    ("codel", "sch_codel", "NET_SCH_CODEL"),
    ("dualpi2", "sch_dualpi2", "NET_SCH_DUALPI2"),
    ("fq", "sch_fq", "NET_SCH_FQ"),
    ("fq_codel", "sch_fq_codel", "NET_SCH_FQ_CODEL"),
    ("fq_pie", "sch_fq_pie", "NET_SCH_FQ_PIE"),
    ("hfsc", "sch_hfsc", "NET_SCH_HFSC"),
    ("htb", "sch_htb", "NET_SCH_HTB"),
    ("ingress", "sch_ingress", "NET_SCH_INGRESS"),
    ("netem", "sch_netem", "NET_SCH_NETEM"),
    ("pie", "sch_pie", "NET_SCH_PIE"),
    ("red", "sch_red", "NET_SCH_RED"),
    ("sfq", "sch_sfq", "NET_SCH_SFQ"),
    ("tbf", "sch_tbf", "NET_SCH_TBF"),
];

/// What it takes beside `ingress` to queue what arrives: the device, the filter and its action.
pub(crate) const REDIRECTION: [(&str, &str, &str); 3] = [
    ("ifb", "ifb", "IFB"),
    ("matchall", "cls_matchall", "NET_CLS_MATCHALL"),
    ("mirred", "act_mirred", "NET_ACT_MIRRED"),
];

/// Part of every kernel that has queue disciplines at all (net/sched/sch_generic.c, sch_mq.c, sch_fifo.c).
const EVERYWHERE: [&str; 5] = ["bfifo", "mq", "noqueue", "pfifo", "pfifo_fast"];

/// Congestion controls likewise; the kernel may have more.
const CONGESTION_CONTROLS: [(&str, &str, &str); 4] = [
    ("bbr", "tcp_bbr", "TCP_CONG_BBR"),
    ("cubic", "tcp_cubic", "TCP_CONG_CUBIC"),
    ("dctcp", "tcp_dctcp", "TCP_CONG_DCTCP"),
    ("prague", "tcp_prague", "TCP_CONG_PRAGUE"),
];

/// Modules that are called as congestion controls are, and are none.
const NO_CONGESTION_CONTROLS: [&str; 1] = ["diag"];

/// The options of the above, for whoever reads a configuration.
pub(super) fn options() -> impl Iterator<Item = &'static str> {
    QDISCS.iter().chain(&REDIRECTION).chain(&CONGESTION_CONTROLS).map(|(_, _, option)| *option)
}

/// The modules of the running kernel.
#[derive(Default)]
pub(super) struct Modules {
    /// Whether there is a folder that lists them.
    listed: bool,
    built_in: BTreeSet<String>,
    loadable: BTreeSet<String>,
    loaded: BTreeSet<String>,
    /// Whether modules can be loaded at all.
    pub(super) enabled: bool,
    /// What modprobe.d(5) keeps from being loaded.
    blocked: Vec<Blocked>,
}

/// `kernel/net/sched/sch_fq.ko.xz` is `sch_fq`; modprobe takes a hyphen for an underscore.
fn module(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    let (name, packed) = file.split_once(".ko")?;
    matches!(packed, "" | ".gz" | ".xz" | ".zst" | ".bz2").then(|| name.replace('-', "_"))
}

/// The modules that lines of modprobe.d(5) keep out: `blacklist NAME`, `install NAME /bin/false`.
#[must_use]
pub fn blocked(file: &str, text: &str) -> Vec<Blocked> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (command, module) = (words.next()?, words.next()?.replace('-', "_"));
        let entirely = match command {
            "blacklist" => false,
            "install" if matches!(words.next()?.rsplit('/').next()?, "false" | "true" | ":") => {
                true
            }
            _ => return None,
        };
        Some(Blocked { module, entirely, file: file.to_owned() })
    };
    text.lines().filter_map(line).collect()
}

impl Modules {
    pub(super) fn read(reader: &mut Reader<'_>, release: &str) -> Self {
        let mut modules = Self::default();
        for folder in reader.folders(&["/lib/modules", "/usr/lib/modules"]) {
            let folder = format!("{folder}/{release}");
            if release.is_empty() || !reader.exists(&folder) {
                continue;
            }
            if let Some(list) = reader.text(&format!("{folder}/modules.builtin")) {
                modules.listed = true;
                modules.built_in.extend(list.lines().filter_map(module));
            }
            if let Some(list) = reader.text(&format!("{folder}/modules.dep")) {
                modules.listed = true;
                let paths = list.lines().filter_map(|line| line.split(':').next());
                modules.loadable.extend(paths.filter_map(module));
            } else {
                // OpenWrt has them beside one another, and no list.
                let found: Vec<_> =
                    reader.names(&folder).iter().filter_map(|name| module(name)).collect();
                modules.listed |= !found.is_empty();
                modules.loadable.extend(found);
            }
        }
        if let Some(list) = reader.text("/proc/modules") {
            modules.enabled = true;
            let names = list.lines().filter_map(|line| line.split_whitespace().next());
            modules.loaded.extend(names.map(str::to_owned));
        }
        if reader.sysctl("kernel.modules_disabled").as_deref() == Some("1") {
            modules.enabled = false;
        }
        let folders =
            ["/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"];
        for folder in reader.folders(&folders) {
            for name in reader.names(folder).into_iter().filter(|name| name.ends_with(".conf")) {
                let path = format!("{folder}/{name}");
                let text = reader.text(&path).unwrap_or_default();
                modules.blocked.extend(blocked(&path, &text));
            }
        }
        modules
    }

    /// What is blocked of what plans use; a machine has a hundred others.
    pub(super) fn blocked_that_matter(&self) -> Vec<Blocked> {
        let matters = |blocked: &&Blocked| {
            ["sch_", "tcp_"].iter().any(|start| blocked.module.starts_with(start))
                || REDIRECTION.iter().any(|(_, module, _)| blocked.module == *module)
        };
        self.blocked.iter().filter(matters).cloned().collect()
    }

    fn availability(&self, module: &str, option: &str, config: Option<&Config>) -> Availability {
        let option = config.map(|config| config.value(option));
        if self.loaded.contains(module) || self.built_in.contains(module) || option == Some("y") {
            return Availability::Ready;
        }
        let refused =
            self.blocked.iter().any(|blocked| blocked.entirely && blocked.module == module);
        if self.loadable.contains(module) {
            return if self.enabled && !refused {
                Availability::Module
            } else {
                Availability::Absent
            };
        }
        match option {
            Some("m") | None if !self.listed => Availability::Unknown,
            _ => Availability::Absent,
        }
    }

    pub(super) fn qdiscs(&self, config: Option<&Config>) -> BTreeMap<String, Availability> {
        let mut qdiscs = self.each(&QDISCS, config);
        let everywhere = match config.map(|config| config.value("NET_SCHED")) {
            Some("n") => Availability::Absent,
            _ => Availability::Ready,
        };
        qdiscs.extend(EVERYWHERE.map(|name| (name.to_owned(), everywhere)));
        qdiscs
    }

    fn each(
        &self,
        list: &[(&str, &str, &str)],
        config: Option<&Config>,
    ) -> BTreeMap<String, Availability> {
        let found = list.iter().map(|(name, module, option)| {
            ((*name).to_owned(), self.availability(module, option, config))
        });
        found.collect()
    }

    pub(super) fn redirection(&self, config: Option<&Config>) -> BTreeMap<String, Availability> {
        self.each(&REDIRECTION, config)
    }

    /// `available` are those that the kernel has ready.
    pub(super) fn congestion_controls(
        &self,
        config: Option<&Config>,
        available: &str,
    ) -> BTreeMap<String, Availability> {
        let mut controls = self.each(&CONGESTION_CONTROLS, config);
        for module in &self.loadable {
            let name = module.strip_prefix("tcp_");
            if let Some(name) = name.filter(|name| !NO_CONGESTION_CONTROLS.contains(name)) {
                let found = self.availability(module, "", None);
                controls.entry(name.to_owned()).or_insert(found);
            }
        }
        for name in available.split_whitespace().chain(["reno"]) {
            controls.insert(name.to_owned(), Availability::Ready);
        }
        controls
    }
}
