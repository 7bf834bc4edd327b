//! The files that bring a plan back at boot and when an interface appears again.

use super::{ClassId, Destination, Mode};
use dualq_qdisc::grammar::ParseError;

use super::check::{alone, interface, module, only, qdisc, route, sysctl_key, sysctl_value};
use crate::Facts;
use crate::facts::Os;

pub(super) const SYSCTL: &str = "/etc/sysctl.d/90-dualq.conf";
/// Read after all others, for when one of them would win.
pub(super) const SYSCTL_LAST: &str = "/etc/sysctl.d/zz-dualq.conf";
pub(super) const MODULES: &str = "/etc/modules-load.d/dualq.conf";
pub(super) const MODULES_OPENWRT: &str = "/etc/modules.d/dualq";
const UDEV: &str = "/etc/udev/rules.d/90-dualq.rules";
const NETWORK_MANAGER: &str = "/etc/NetworkManager/dispatcher.d/90-dualq";
const IFUPDOWN: &str = "/etc/network/if-up.d/dualq";
const HOTPLUG: &str = "/etc/hotplug.d/iface/90-dualq";

/// The files that plans write.
pub const PLANNED: [&str; 8] =
    [SYSCTL, SYSCTL_LAST, MODULES, MODULES_OPENWRT, UDEV, NETWORK_MANAGER, IFUPDOWN, HOTPLUG];

/// Whether it is one of the files for sysctls.
pub(super) fn is_sysctl(path: &str) -> bool {
    [SYSCTL, SYSCTL_LAST].contains(&path)
}

/// The permissions of a file that plans write.
pub(super) fn mode(path: &str) -> Mode {
    if [NETWORK_MANAGER, IFUPDOWN].contains(&path) { Mode::RUN } else { Mode::READ }
}

/// What puts something back: `dualq on-boot`, for most hosts' tc does not know all queue disciplines, and of a route nobody knows by what it
/// went before it went.
#[derive(Debug, PartialEq, Eq)]
struct Call<'a> {
    caller: Caller<'a>,
    at: At<'a>,
    line: String,
}

/// What is put back, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At<'a> {
    /// The interface.
    pub dev: &'a str,
    /// What of it.
    pub part: Part<'a>,
}

/// What of an interface is put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part<'a> {
    /// The queue discipline of what leaves.
    Leaving,
    /// The same, one for each transmit queue.
    Each,
    /// The same, below a class of a tree that somebody else makes.
    Below {
        /// The class.
        class: ClassId,
    },
    /// That of what arrives.
    Arriving {
        /// What takes it.
        ifb: &'a str,
    },
    /// What puts packets together.
    Offloads,
    /// A route by it, with an MTU.
    Route {
        /// Where to.
        to: Destination,
    },
}

impl Part<'_> {
    /// What it is called where it is said what brings it back.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Route { .. } => "the route",
            Self::Leaving
            | Self::Each
            | Self::Below { .. }
            | Self::Arriving { .. }
            | Self::Offloads => "the qdisc",
        }
    }
}

impl<'a> At<'a> {
    /// Whether both are for one part of one interface.
    fn is_as(&self, other: &Self) -> bool {
        let kind = |at: &Self| match at.part {
            Part::Leaving | Part::Each => (0, None, None),
            Part::Arriving { .. } => (1, None, None),
            Part::Offloads => (2, None, None),
            Part::Route { to } => (3, Some(to), None),
            Part::Below { class } => (4, None, Some(class)),
        };
        self.dev == other.dev && kind(self) == kind(other)
    }

    /// The ifb, if there is one.
    pub(super) const fn ifb(&self) -> Option<&'a str> {
        match self.part {
            Part::Arriving { ifb } => Some(ifb),
            Part::Leaving
            | Part::Each
            | Part::Below { .. }
            | Part::Offloads
            | Part::Route { .. } => None,
        }
    }

    /// Refuses what is no place, or a line that does not belong there.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, line: &str) -> Result<(), String> {
        interface(self.dev)?;
        match self.part {
            Part::Leaving | Part::Below { .. } => qdisc(line),
            Part::Each => {
                qdisc(line)?;
                alone(&line.parse().map_err(|error: ParseError| error.to_string())?)
            }
            Part::Arriving { ifb } => super::ifb(ifb).and_then(|()| qdisc(line)),
            Part::Offloads => super::offload_line(line).map(drop),
            Part::Route { to } => route(to, mtu(line)?),
        }
    }
}

/// Which program is called, and where it finds its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller<'a> {
    pub(crate) program: &'a str,
    /// The folder, if it is not the usual one.
    pub(crate) state: Option<&'a str>,
}

impl Caller<'_> {
    /// What puts `line` there.
    pub(crate) fn command(&self, At { dev, part }: At<'_>, line: &str) -> String {
        let state = self.state.map_or_else(String::new, |state| format!("{STATE}{state} "));
        let part = match part {
            Part::Leaving => String::new(),
            Part::Arriving { ifb } => format!("{DOWN}{ifb} "),
            Part::Each => EACH.to_owned(),
            Part::Offloads => OFFLOADS.to_owned(),
            Part::Below { class } => format!("{PARENT}{class} "),
            Part::Route { to } => format!("{ROUTE}{to} "),
        };
        format!("{} on-boot {state}{part}{dev} '{line}'", self.program)
    }
}

/// The folder of records if nobody says otherwise.
pub(crate) const USUAL_STATE: &str = "/var/lib/dualq";

/// What stands before the folder of records.
const STATE: &str = "--state ";
/// What stands before the ifb.
const DOWN: &str = "--down ";
/// What stands before the interface, if each transmit queue is meant,
const EACH: &str = "--each ";
/// and if it is about offloads.
const OFFLOADS: &str = "--offloads ";
/// What stands before the class.
const PARENT: &str = "--parent ";
/// What stands before the destination.
const ROUTE: &str = "--route ";

/// What rules say of a route, as ip-route(8) does: `mtu 1400`.
pub(crate) fn mtu_line(mtu: u32) -> String {
    format!("mtu {mtu}")
}

/// Reads that.
pub(crate) fn mtu(line: &str) -> Result<u32, String> {
    let bytes = line.strip_prefix("mtu ").and_then(|word| word.parse().ok());
    let found = bytes.filter(|bytes| mtu_line(*bytes) == line);
    found.ok_or_else(|| format!("{line:?} is not what rules say of a route: mtu 1400"))
}

impl Call<'_> {
    fn command(&self) -> String {
        self.caller.command(self.at, &self.line)
    }

    /// What does it in the file at `path`: some lines, comments left out.
    fn render(&self, path: &str) -> Option<String> {
        let (dev, command) = (self.at.dev, self.command());
        let when = match path {
            // The name of an interface that udev renames is right in the event `move` that follows, of others in `add`.
            UDEV => {
                // udev replaces what follows these two.
                let command = command.replace('%', "%%").replace('$', "$$");
                return Some(format!(
                    "ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"{dev}\", RUN+=\"{command}\"\n"
                ));
            }
            NETWORK_MANAGER => format!("[ \"$1\" = '{dev}' ] && [ \"$2\" = up ]"),
            IFUPDOWN => format!("[ \"$IFACE\" = '{dev}' ]"),
            HOTPLUG => format!("[ \"$ACTION\" = ifup ] && [ \"$DEVICE\" = '{dev}' ]"),
            _ => return None,
        };
        Some(format!("if {when}; then\n\t{command}\nfi\n"))
    }

    /// Finds the first call in what [`render`](Self::render) made.
    fn find(content: &str) -> Option<Call<'_>> {
        let (before, rest) = content.split_once(" on-boot ")?;
        let program = before.rsplit([' ', '"', '\t', '\n']).next()?;
        let (state, rest) = match rest.strip_prefix(STATE) {
            Some(rest) => rest.split_once(' ').map(|(state, rest)| (Some(state), rest))?,
            None => (None, rest),
        };
        let (part, rest) = if let Some(rest) = rest.strip_prefix(ROUTE) {
            let (to, rest) = rest.split_once(' ')?;
            (Part::Route { to: to.parse().ok()? }, rest)
        } else if let Some(rest) = rest.strip_prefix(DOWN) {
            rest.split_once(' ').map(|(ifb, rest)| (Part::Arriving { ifb }, rest))?
        } else if let Some(rest) = rest.strip_prefix(PARENT) {
            let (class, rest) = rest.split_once(' ')?;
            (Part::Below { class: class.parse().ok()? }, rest)
        } else if let Some(rest) = rest.strip_prefix(OFFLOADS) {
            (Part::Offloads, rest)
        } else if let Some(rest) = rest.strip_prefix(EACH) {
            (Part::Each, rest)
        } else {
            (Part::Leaving, rest)
        };
        let (dev, rest) = rest.split_once(" '")?;
        let (line, _) = rest.split_once('\'')?;
        let caller = Caller { program, state };
        let line = line.replace("%%", "%").replace("$$", "$");
        Some(Call { caller, at: At { dev, part }, line })
    }
}

/// Whether `path` can be called as dualq from rules and scripts alike.
pub(super) fn program(path: &str) -> Result<(), String> {
    let plain = path.starts_with('/') && path.len() < 256 && only(path, "/._+-");
    if plain && path.ends_with("/dualq") && !path.contains("/../") {
        Ok(())
    } else {
        Err(format!("{path:?} is no path of dualq that a rule could call"))
    }
}

/// Whether `path` can be named in rules and scripts alike as the folder of records.
///
/// # Errors
/// What is wrong with it, in words.
pub fn state(path: &str) -> Result<(), String> {
    let plain = path.starts_with('/') && path.len() < 256 && only(path, "/._+-");
    if plain && path.split('/').all(|part| part != "..") {
        Ok(())
    } else {
        Err(format!("{path:?} is no absolute path of plain letters, as rules take it"))
    }
}

/// Who is called by the content of a planned file.
pub(crate) fn callers<'a>(path: &str, content: &'a str) -> Vec<Caller<'a>> {
    if !CALLING.contains(&path) {
        return Vec::new();
    }
    working_lines(content).filter_map(Call::find).map(|call| call.caller).collect()
}

/// Whether a planned file calls dualq for this place with this line.
pub(crate) fn calls(path: &str, content: &str, at: At<'_>, line: &str) -> bool {
    CALLING.contains(&path)
        && working_lines(content)
            .filter_map(Call::find)
            .any(|call| call.at == at && call.line == line)
}

/// What somebody else may take away at any time, so that it is not enough to put it back when its interface appears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A route by an interface.
    Route {
        /// The interface.
        dev: String,
        /// Where to.
        to: Destination,
        /// In bytes.
        mtu: u32,
    },
    /// A queue discipline below a class.
    Below {
        /// The interface.
        dev: String,
        /// The class.
        class: ClassId,
        /// The discipline, in tc's words.
        line: String,
    },
}

/// What of that a planned file puts back. Only what looks for records in `state`.
pub(crate) fn kept(path: &str, content: &str, state: &str) -> Vec<Kept> {
    if !CALLING.contains(&path) {
        return Vec::new();
    }
    let calls = working_lines(content).filter_map(Call::find);
    let own = calls.filter(|call| call.caller.state.unwrap_or(USUAL_STATE) == state);
    own.filter_map(|call| {
        let dev = call.at.dev.to_owned();
        call.at.check(&call.line).ok()?;
        match call.at.part {
            Part::Route { to } => Some(Kept::Route { dev, to, mtu: mtu(&call.line).ok()? }),
            Part::Below { class } => Some(Kept::Below { dev, class, line: call.line }),
            Part::Leaving | Part::Each | Part::Arriving { .. } | Part::Offloads => None,
        }
    })
    .collect()
}

/// What restores things on this system when an interface appears: the file, and who reads it.
pub(super) fn place(facts: &Facts) -> Option<(&'static str, &'static str)> {
    let distribution = &facts.distribution;
    let has = |network: &str| distribution.network.iter().any(|known| known == network);
    if distribution.udev {
        Some((UDEV, "udev(7)"))
    } else if has("networkmanager") {
        Some((NETWORK_MANAGER, "NetworkManager-dispatcher(8)"))
    } else if has("ifupdown") {
        Some((IFUPDOWN, "interfaces(5)"))
    } else if has("netifd") || distribution.init == "procd" {
        Some((HOTPLUG, "OpenWrt's documentation of hotplug"))
    } else {
        None
    }
}

/// The paragraphs of a file that each put something somewhere, with the place.
fn paragraphs<'a>(path: &'a str, content: &'a str) -> impl Iterator<Item = (At<'a>, String)> {
    let paragraphs = content.split("\n\n").map(|text| (text, format!("{}\n", text.trim_end())));
    paragraphs
        .filter(|(_, text)| check_content(path, text).is_ok())
        .filter_map(|(text, whole)| Some((Call::find(text)?.at, whole)))
}

/// The file at `path`, which has `there` in it, with what puts `line` in its place, `about` in a comment above it. What it has for other places stays.
pub(super) fn content(
    there: Option<&str>,
    path: &str,
    about: &str,
    caller: Caller<'_>,
    (at, line): (At<'_>, &str),
) -> String {
    let call = Call { caller, at, line: line.to_owned() };
    let own = format!("# {about}\n{}", call.render(path).unwrap_or_default());
    joined(there.unwrap_or_default(), path, at, Some(own))
}

/// The file at `path`, which has `there` in it, with nothing that concerns this place, if there is something now; what puts the line `but` there does not
/// count.
pub(super) fn without(
    there: Option<&str>,
    path: &str,
    at: At<'_>,
    but: Option<&str>,
) -> Option<String> {
    let there = there?;
    let concerned = paragraphs(path, there).any(|(other, text)| {
        other.is_as(&at) && Call::find(&text).is_some_and(|call| Some(call.line.as_str()) != but)
    });
    concerned.then(|| joined(there, path, at, None))
}

/// Which ifb the rules of this machine make, each for one interface.
pub(super) fn ifbs(facts: &Facts) -> impl Iterator<Item = At<'_>> {
    let files = facts.files.iter().filter(|(path, _)| CALLING.contains(&path.as_str()));
    let places = files.flat_map(|(path, file)| paragraphs(path, &file.content).map(|(at, _)| at));
    places.filter(|at| at.ifb().is_some())
}

/// Whether the rules of this machine put something there.
pub(super) fn puts_back(facts: &Facts, at: At<'_>) -> bool {
    let mut files = facts.files.iter().filter(|(path, _)| CALLING.contains(&path.as_str()));
    files.any(|(path, file)| paragraphs(path, &file.content).any(|(other, _)| other.is_as(&at)))
}

/// What the rules of this machine say of the offloads of an interface.
pub(super) fn offloads(facts: &Facts, dev: &str) -> Option<String> {
    let files = facts.files.iter().filter(|(path, _)| CALLING.contains(&path.as_str()));
    let wanted = At { dev, part: Part::Offloads };
    let texts = files.flat_map(|(path, file)| paragraphs(path, &file.content));
    texts.filter(|(at, _)| *at == wanted).find_map(|(_, text)| Some(Call::find(&text)?.line))
}

fn joined(there: &str, path: &str, at: At<'_>, own: Option<String>) -> String {
    let others = paragraphs(path, there).filter(|(other, _)| !other.is_as(&at));
    // In an order of their own, or a plan for each would change the file of the other.
    let mut all: Vec<(At<'_>, String)> = others.chain(own.map(|own| (at, own))).collect();
    all.sort();
    if all.is_empty() {
        return head(path, NOTHING);
    }
    let is_route = |at: &At<'_>| matches!(at.part, Part::Route { .. });
    let routes = all.iter().filter(|(at, _)| is_route(at)).count();
    let about = match routes {
        0 => "It puts queue disciplines back.",
        _ if routes == all.len() => "It puts routes back.",
        _ => "It puts queue disciplines and routes back.",
    };
    let paragraphs: String = all.into_iter().map(|(_, text)| format!("\n{text}")).collect();
    format!("{}{paragraphs}", head(path, about))
}

/// What a file says that is no longer needed.
pub(super) const NOTHING: &str = "Nothing is left for this file to do.";

/// The files that call dualq for an interface.
pub(crate) const CALLING: [&str; 4] = [UDEV, NETWORK_MANAGER, IFUPDOWN, HOTPLUG];

/// What a file begins with.
pub(super) fn head(path: &str, about: &str) -> String {
    let shell = if mode(path) == Mode::RUN { "#!/bin/sh\n" } else { "" };
    format!("{shell}# Written by dualq. {about}\n")
}

/// As a shell sees it: to one, other white space than these two begins a word, and so a command.
fn is_comment(line: &str) -> bool {
    let text = line.trim_start_matches([' ', '\t']);
    text.is_empty() || text.starts_with('#')
}

/// The lines of a file that do something.
pub(super) fn working_lines(content: &str) -> impl Iterator<Item = &str> {
    content.lines().filter(|line| !is_comment(line))
}

/// Refuses the content of a planned file if it does anything else than what dualq writes there.
pub(super) fn check_content(path: &str, content: &str) -> Result<(), String> {
    let plain = |c: char| matches!(c, '\n' | '\t' | ' ' | '§') || c.is_ascii_graphic();
    // A backslash would join lines, and what is no comment would look like one; so would white space that is none to a shell.
    if content.contains('\\') || !content.chars().all(plain) {
        return Err("it has characters that dualq does not write".to_owned());
    }
    let shell = content.lines().enumerate().find(|(_, line)| line.starts_with("#!"));
    if let Some((number, line)) = shell
        && (number > 0 || line != "#!/bin/sh" || mode(path) != Mode::RUN)
    {
        return Err(format!("{line:?} is not how dualq's files begin"));
    }
    let working: Vec<&str> = working_lines(content).collect();
    if working.is_empty() {
        return Ok(());
    }
    match path {
        _ if is_sysctl(path) => working.iter().try_for_each(|line| {
            let (key, value) =
                line.split_once('=').ok_or_else(|| format!("{line:?} is not KEY = VALUE"))?;
            sysctl_key(key.trim(), Os::Linux)?;
            sysctl_value(value.trim())
        }),
        MODULES | MODULES_OPENWRT => working.iter().try_for_each(|name| module(name)),
        _ => {
            let calls: Vec<Call<'_>> = working.iter().filter_map(|line| Call::find(line)).collect();
            for call in &calls {
                program(call.caller.program)?;
                call.caller.state.map_or(Ok(()), state)?;
                call.at.check(&call.line)?;
            }
            let written: Option<String> = calls.iter().map(|call| call.render(path)).collect();
            let written = written.map(|text| working_text(&text));
            written
                .filter(|text| *text == working)
                .map(drop)
                .ok_or_else(|| "it does something that dualq does not write".to_owned())
        }
    }
}

fn working_text(content: &str) -> Vec<String> {
    working_lines(content).map(str::to_owned).collect()
}
