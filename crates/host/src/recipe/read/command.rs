//! Commands: what each changes.

use super::super::What;
use super::assignment::{Place, freebsd_route};
use super::shell::{self, Simple};
use super::{DEEPEST, Reader};

/// The longest variable, its name and value, and how many there may be.
const LONGEST_VARIABLE: usize = 256;
const MOST_VARIABLES: usize = 1000;
/// How many keys one `sysctl` shows at most.
const MOST_SHOWN: usize = 64;

/// What stands before a command and leaves it what it is.
const BEFORE: [&str; 14] = [
    "sudo", "doas", "env", "exec", "command", "nohup", "time", "then", "do", "else", "if", "{",
    "!", "-",
];
/// Properties of a route that matter to TCP.
const ROUTE_PROPERTIES: [&str; 9] =
    ["mtu", "advmss", "initcwnd", "initrwnd", "rto_min", "congctl", "quickack", "cwnd", "window"];
/// Commands of the network that are not understood at all.
const OTHERS: [&str; 7] = ["nmcli", "uci", "iptables", "ip6tables", "nft", "wondershaper", "sqm"];

/// Whether a line begins with a command that is understood at all.
pub(super) fn is_known(line: &str) -> bool {
    let commands = shell::split(line, &std::collections::BTreeMap::new());
    commands.into_iter().next().is_some_and(|mut simple| {
        strip(&mut simple.words);
        let (name, args) = name_and_args(&simple.words);
        let first = args.first().copied().unwrap_or_default();
        match name {
            "sysctl" | "modprobe" | "kldload" | "sysrc" | "ethtool" => !first.is_empty(),
            "tc" => tc_object(&args).is_some(),
            "ip" => ip_object(&args).is_some(),
            "ifconfig" => args.len() > 1,
            "route" => first == "add" || first == "change",
            "echo" | "printf" => simple.output.is_some() || simple.piped,
            "cat" | "tee" => simple.here.is_some(),
            "sh" | "bash" => first == "-c",
            _ => false,
        }
    })
}

/// Takes off what stands before a command.
fn strip(words: &mut Vec<String>) {
    let mut taken = 0;
    let mut options = false;
    while let Some(word) = words.get(taken) {
        if BEFORE.contains(&word.as_str()) || (is_setting(word) && words.len() > taken + 1) {
            options = word == "sudo" || word == "env";
        } else if !(options && word.starts_with('-')) {
            break;
        }
        taken += 1;
    }
    words.drain(..taken);
}

/// Whether a word sets a variable of the shell.
fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// A command's name without its path, and its arguments.
fn name_and_args(words: &[String]) -> (&str, Vec<&str>) {
    let name = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
    (name, words.iter().skip(1).map(String::as_str).collect())
}

/// What follows tc's options, if it is something that tc has.
fn tc_object<'a>(args: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let at = args.iter().position(|arg| !arg.starts_with('-'))?;
    ["qdisc", "class", "filter", "actions"].contains(&args[at]).then(|| &args[at..])
}

/// Likewise for ip.
fn ip_object<'a>(args: &'a [&'a str]) -> Option<&'a [&'a str]> {
    let at = args.iter().position(|arg| !arg.starts_with('-'))?;
    ["link", "l", "route", "r", "ro", "addr", "address", "a", "rule", "tcp_metrics"]
        .contains(&args[at])
        .then(|| &args[at..])
}

/// An interface, unless it is a variable that nothing sets or a place to fill in.
fn device(word: &str) -> Option<String> {
    let is_open = word.is_empty() || word.contains(['$', '<', '>', '%', '{', '*']);
    (!is_open).then(|| word.to_owned())
}

/// What stands behind one of these words.
fn value_after<'a>(args: &[&'a str], names: &[&str]) -> Option<&'a str> {
    let at = args.iter().position(|arg| names.contains(arg))?;
    args.get(at + 1).copied()
}

impl Reader {
    /// A line of commands. Whether it is one that is understood.
    pub(super) fn command(&mut self, line: &str) -> bool {
        let mut understood = false;
        let mut commands = shell::split(line, &self.variables).into_iter().peekable();
        while let Some(mut simple) = commands.next() {
            strip(&mut simple.words);
            while simple.piped
                && let Some(mut next) =
                    commands.next_if(|next| next.words.iter().any(|w| w == "tee"))
            {
                strip(&mut next.words);
                let (_, args) = name_and_args(&next.words);
                let file = args.iter().find(|arg| !arg.starts_with('-'));
                simple.output = file.map(|file| (*file).to_owned());
                simple.piped = next.piped;
            }
            understood |= self.simple(&simple, line);
        }
        understood
    }

    fn simple(&mut self, simple: &Simple, line: &str) -> bool {
        let (name, args) = name_and_args(&simple.words);
        match name {
            "echo" | "printf" => self.write(name, &args, simple.output.as_deref()),
            "cat" | "tee" => {
                let file = if name == "tee" {
                    args.iter().find(|arg| !arg.starts_with('-')).copied()
                } else {
                    simple.output.as_deref()
                };
                let place = Place::of_path(file.unwrap_or_default());
                self.here = simple.here.clone().map(|end| (end, place));
                self.here.is_some()
            }
            "sh" | "bash" if args.first() == Some(&"-c") => {
                // A variable may say `sh -c` and its own name.
                if self.depth >= DEEPEST {
                    self.not_understood(line);
                    return true;
                }
                self.depth += 1;
                let understood = args.get(1).is_some_and(|script| self.command(script));
                self.depth -= 1;
                understood
            }
            "sysctl" => self.sysctl(&args, line),
            "sysrc" => self.sysrc(&args),
            "modprobe" | "kldload" => {
                let names = args.iter().filter(|arg| !arg.starts_with('-') && !arg.contains('='));
                let several = name == "kldload" || args.contains(&"-a");
                let wanted = !args.iter().any(|arg| ["-r", "--remove"].contains(arg));
                for module in names.take(if several { usize::MAX } else { 1 }).filter(|_| wanted) {
                    let name = module.trim_end_matches(".ko").replace('-', "_");
                    self.now(line, What::Module { name, at_boot: false });
                }
                !args.is_empty()
            }
            "tc" => tc_object(&args).is_some_and(|args| self.tc(args, line)),
            "ip" => ip_object(&args).is_some_and(|args| self.ip(args, line)),
            "ifconfig" => {
                if let Some(dev) = args.first() {
                    self.properties(dev, &args[1..], line);
                }
                args.len() > 1
            }
            "route" => self.route(&args, line),
            "ethtool" => self.ethtool(&args, line),
            _ if OTHERS.contains(&name) && !args.is_empty() => {
                self.not_understood(line);
                true
            }
            _ => match simple.words.as_slice() {
                [only] if is_setting(only) => {
                    let (name, value) = only.split_once('=').unwrap_or_default();
                    // What is long is no value of a setting, and could grow with each line that puts it in twice.
                    if name.len() + value.len() <= LONGEST_VARIABLE
                        && self.variables.len() < MOST_VARIABLES
                    {
                        self.variables.insert(name.to_owned(), value.to_owned());
                    }
                    true
                }
                _ => false,
            },
        }
    }

    /// Keeps what a command changes at once.
    fn now(&mut self, text: &str, what: What) {
        self.step(text, &Place::default(), what);
    }

    /// `echo … > FILE`.
    fn write(&mut self, name: &str, args: &[&str], file: Option<&str>) -> bool {
        let Some(file) = file else { return false };
        let text = args.iter().skip_while(|arg| ["-e", "-n", "-en", "-ne", "--"].contains(*arg));
        let mut text = text.copied().collect::<Vec<_>>().join(" ").replace("\\n", "\n");
        if name == "printf" {
            text = text.replace("%s", "");
        }
        let place = Place::of_path(file);
        let mut any = false;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            any |= self.file_line(line, &place);
        }
        any
    }

    /// `sysctl -w KEY=VALUE…`, or `-p FILE`; without a value it shows one, and what it shows is no setting.
    fn sysctl(&mut self, args: &[&str], line: &str) -> bool {
        self.shown.clear();
        let loads = |arg: &&str| {
            ["-p", "-f", "--load", "--system"].iter().any(|load| arg.starts_with(load))
        };
        if args.iter().any(loads) {
            self.reloaded = true;
            return true;
        }
        for arg in args.iter().filter(|arg| !arg.starts_with('-')) {
            if !arg.contains('=') {
                if self.shown.len() < MOST_SHOWN {
                    self.shown.push((*arg).to_owned());
                }
            } else if !self.sysctl_line(arg, &Place::default(), false) {
                self.not_understood(line);
            }
        }
        !args.is_empty()
    }

    /// `sysrc [-f FILE] KEY=VALUE…`.
    fn sysrc(&mut self, args: &[&str]) -> bool {
        let place = Place::of_path(value_after(args, &["-f"]).unwrap_or("/etc/rc.conf"));
        for arg in args.iter().filter(|arg| arg.contains('=')) {
            self.file_line(&arg.replace("+=", "="), &place);
        }
        !args.is_empty()
    }

    fn tc(&mut self, args: &[&str], line: &str) -> bool {
        let verb = args.get(1).copied().unwrap_or_default();
        let changes = ["add", "replace", "change", "link", "a", "r", "c"].contains(&verb);
        if args[0] != "qdisc" {
            if changes {
                self.not_understood(line);
            }
            return true;
        }
        if !changes {
            return true;
        }
        let (mut dev, mut root) = (None, false);
        let mut rest = &args[2..];
        while let Some((word, after)) = rest.split_first() {
            let pair = after.first().copied().unwrap_or_default();
            match *word {
                "root" => root = true,
                "dev" => dev = device(pair),
                "handle" | "parent" | "estimator" | "ingress_block" | "egress_block" => {}
                _ => break,
            }
            rest = if *word == "root" { after } else { after.get(1..).unwrap_or_default() };
        }
        // tc takes the interface behind the discipline too.
        let mut words = rest.to_vec();
        if dev.is_none()
            && let Some(at) = words.iter().position(|word| *word == "dev")
        {
            dev = words.get(at + 1).and_then(|word| device(word));
            words.drain(at..words.len().min(at + 2));
        }
        // What an author left out, nobody can judge.
        if words.is_empty() || words.iter().any(|word| ["...", "\u{2026}"].contains(word)) {
            self.not_understood(line);
        } else {
            self.now(line, What::Qdisc { dev, root, words: words.join(" ") });
        }
        true
    }

    fn ip(&mut self, args: &[&str], line: &str) -> bool {
        let verb = args.get(1).copied().unwrap_or_default();
        match args[0] {
            "link" | "l" if verb == "set" => {
                let dev = args.get(2).copied().unwrap_or_default();
                let named = dev == "dev";
                let dev = if named { args.get(3).copied().unwrap_or_default() } else { dev };
                let rest = args.get(if named { 4 } else { 3 }..).unwrap_or_default();
                self.properties(dev, rest, line);
            }
            "route" | "r" | "ro" if ["add", "change", "replace", "append"].contains(&verb) => {
                let to = args.get(2).copied().unwrap_or_default().to_owned();
                let properties: Vec<(String, String)> = ROUTE_PROPERTIES
                    .iter()
                    .filter_map(|name| {
                        let at = args.iter().position(|arg| arg == name)?;
                        let mut values = args[at + 1..].iter().filter(|value| **value != "lock");
                        Some(((*name).to_owned(), (*values.next()?).to_owned()))
                    })
                    .collect();
                if !properties.is_empty() {
                    let dev = value_after(args, &["dev"]).and_then(device);
                    let route = What::Route { freebsd: false, to, dev, properties, listed: None };
                    self.now(line, route);
                }
            }
            _ => {}
        }
        true
    }

    /// `mtu 1400`, `txqueuelen 500` of an interface.
    fn properties(&mut self, dev: &str, args: &[&str], line: &str) {
        for (names, property) in
            [(&["mtu"][..], "mtu"), (&["txqueuelen", "txqlen", "qlen"], "txqueuelen")]
        {
            if let Some(value) = value_after(args, names) {
                let (property, value) = (property.to_owned(), value.to_owned());
                self.now(line, What::Interface { dev: device(dev), property, value });
            }
        }
    }

    /// FreeBSD's `route add … -mtu 1400`.
    fn route(&mut self, args: &[&str], line: &str) -> bool {
        if !["add", "change"].contains(&args.first().copied().unwrap_or_default()) {
            return false;
        }
        let (to, dev, properties) = freebsd_route(&args[1..].join(" "));
        if properties.is_empty() {
            self.not_understood(line);
        } else {
            self.now(line, What::Route { freebsd: true, to, dev, properties, listed: None });
        }
        true
    }

    fn ethtool(&mut self, args: &[&str], line: &str) -> bool {
        match args {
            ["-K" | "--offload" | "--features", dev, features @ ..] => {
                for pair in features.chunks_exact(2) {
                    let (feature, on) = (pair[0].to_owned(), pair[1] == "on");
                    let text = format!("ethtool -K {dev} {feature} {}", pair[1]);
                    self.now(&text, What::Offload { dev: device(dev), feature, on });
                }
            }
            ["-G" | "-C" | "-L" | "-A" | "-s" | "-X" | "-N", _, ..] => self.not_understood(line),
            _ => {}
        }
        !args.is_empty()
    }
}
