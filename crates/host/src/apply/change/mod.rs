//! Each sort of change: what is there now, making it, and taking it back.

pub(crate) mod file;
pub(crate) mod ingress;
pub(crate) mod module;
pub(crate) mod offload;
pub(crate) mod qdisc;
pub(crate) mod route;
pub(crate) mod sysctl;

use dualq_qdisc::Config;

use super::record::{Before, Entry};
use super::{ApplyError, Difference, Host, Lock, Step, bounds};
use crate::plan::{ClassId, What};
use file::{Place, Saved, Wanted};
use route::Made;

/// What is there where a change is made, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Now {
    /// What was there before.
    Before,
    /// What the plan asks for.
    After,
    /// Something else. Where it is compared with what was there before, that is what was expected.
    Other(Difference),
}

pub(crate) fn difference(what: &What, expected: Option<&str>, found: Option<&str>) -> Now {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let name = match what {
        What::Qdisc { dev, parent: None, .. } => dev.clone(),
        What::Qdisc { dev, parent: Some(class), .. } => format!("class {class} of {dev}"),
        _ => bounds::name(what),
    };
    Now::Other(Difference { name, expected: owned(expected), found: owned(found) })
}

/// What a plan put there, where that cannot be looked at because of `error`.
pub(crate) fn unseen(what: &What, error: &ApplyError) -> Now {
    let expected = match what {
        What::Qdisc { parent, after, each, .. } => Some(put_words(after.text(), *each, *parent)),
        What::Ingress { ifb, after, .. } => Some(ingress::words(ifb, after.text())),
        What::Sysctl { after, .. } | What::File { after, .. } | What::Offload { after, .. } => {
            Some(after.clone())
        }
        What::Route { mtu, .. } => Some(format!("mtu {mtu}")),
        What::Module { .. } | What::Lines { .. } => None,
    };
    let found = if error.is_gone() { "(it is gone)".to_owned() } else { format!("({error})") };
    difference(what, expected.as_deref(), Some(&found))
}

/// What is put at an interface, in words.
fn put_words(line: &str, each: bool, class: Option<ClassId>) -> String {
    match class {
        Some(class) => format!("{class} {line}"),
        None if each => format!("each transmit queue {line}"),
        None => format!("root {line}"),
    }
}

/// What a change is about, with the name that its interface has now if that is another.
pub(crate) fn name_now(host: &mut Host, what: &What, entry: &Entry) -> String {
    let name = bounds::name(what);
    let Some((dev, link)) = what.interface().zip(entry.before.link()) else {
        return name;
    };
    match host.netlink.link_at(link) {
        Ok(found) if found.name != dev => format!("{name}, which is {} now", found.name),
        _ => name,
    }
}

/// Looks at what is there before anything is changed, and says whether it is what the plan expects. A file that is to be
/// written is proven to be writable.
pub(crate) fn survey(host: &mut Host, what: &What) -> Result<(Before, Now), ApplyError> {
    match what {
        What::Module { module } => {
            let loaded = module::is_there(&host.root, module);
            let now = if loaded { Now::After } else { Now::Before };
            Ok((Before::Module { loaded }, now))
        }
        What::Sysctl { key, before, after } => {
            let value = sysctl::read(&host.root, key)?;
            let now = match value.as_str() {
                value if sysctl::equal(value, after) => Now::After,
                value if sysctl::equal(value, before) => Now::Before,
                value => difference(what, Some(before), Some(value)),
            };
            Ok((Before::Sysctl { value }, now))
        }
        What::Qdisc { dev, parent, before, after, each } => {
            let link = host.netlink.link(dev)?;
            if let Some(class) = *parent
                && !qdisc::is_leaf(&mut host.netlink, &link, class)?
            {
                return Err(ApplyError::Plan(format!(
                    "class {class} of {dev} is not a leaf, packets go to the classes in it: make a new plan for one of those"
                )));
            }
            let tree = qdisc::tree(&mut host.netlink, link.index, *parent)?;
            let queues = host.netlink.qdiscs(link.index)?;
            let lines = qdisc::lines(&queues, *parent);
            let wanted = qdisc::Wanted::of(after, *each, *parent);
            let now = if qdisc::is(&queues, &wanted, &link) {
                Now::After
            } else if lines == *before {
                Now::Before
            } else {
                difference(what, Some(&before.join("\n")), Some(&lines.join("\n")))
            };
            if now == Now::Before
                && let Some(part) = qdisc::transient(&mut host.netlink, &link, *parent)?
            {
                let place = parent.map_or("root".to_owned(), |class| format!("parent {class}"));
                return Err(ApplyError::Plan(format!(
                    "{part} could not be put back exactly: `tc qdisc delete dev {dev} {place}` takes all of it away, with what it is for; then make \
                     a new plan"
                )));
            }
            Ok((Before::Qdisc { link: Some(link.index), tree, made: None }, now))
        }
        What::Ingress { dev, ifb, after } => {
            let link = host.netlink.link(dev)?;
            let now = ingress::now(&mut host.netlink, &link, ifb, after, None)?;
            if let Now::Other(difference) = &now {
                return Err(ingress::taken(dev, ifb, difference));
            }
            Ok((Before::Ingress { link: Some(link.index), made: None }, now))
        }
        What::Offload { dev, key, before, after } => {
            let link = host.netlink.link(dev)?;
            let value = offload::read(&mut host.netlink, &link, *key)?;
            let now = match &value {
                value if value == after => Now::After,
                value if value == before => Now::Before,
                value => difference(what, Some(before), Some(value)),
            };
            Ok((Before::Offload { link: Some(link.index), value }, now))
        }
        What::Route { to, mtu } => {
            let now = match route::mtu_of(&mut host.netlink, *to)? {
                None => Now::Before,
                Some(Some(found)) if found == *mtu => Now::After,
                Some(found) => {
                    let found = found
                        .map_or("a route without an MTU".to_owned(), |mtu| format!("mtu {mtu}"));
                    difference(what, None, Some(&found))
                }
            };
            let route = Made::copy(&mut host.netlink, *to, *mtu)?;
            Ok((Before::Route { route }, now))
        }
        What::File { path, before, after, mode } => {
            let place = Place::find(&host.root, path)?;
            let file = place.read()?;
            let now = file_now(what, before.as_deref(), file.as_ref(), after, mode.bits());
            if now == Now::Before {
                place.prove(after)?;
            }
            let missing_folders = place.missing_folders();
            Ok((Before::File { file, missing_folders }, now))
        }
        // Plans for Linux have none.
        What::Lines { .. } => Err(mismatch()),
    }
}

/// What a file is before a plan is applied, when only its content is known.
fn file_now(
    what: &What,
    before: Option<&str>,
    file: Option<&Saved>,
    after: &str,
    mode: u32,
) -> Now {
    let content = file.map(|file| file.content.as_str());
    match file {
        Some(file) if file.content == after && file.mode == mode => Now::After,
        _ if content == before => Now::Before,
        // What is left to do is to set its permissions.
        Some(file) if file.content == after => Now::Before,
        _ => difference(what, before, content),
    }
}

/// What is there where a plan was applied.
pub(crate) fn now(host: &mut Host, what: &What, entry: &Entry) -> Result<Now, ApplyError> {
    match (what, &entry.before) {
        (What::Module { module }, Before::Module { .. }) => {
            Ok(if module::is_there(&host.root, module) { Now::After } else { Now::Before })
        }
        (What::Sysctl { key, after, .. }, Before::Sysctl { value }) => {
            Ok(match sysctl::read(&host.root, key)? {
                now if sysctl::equal(&now, after) => Now::After,
                now if sysctl::equal(&now, value) => Now::Before,
                now => difference(what, Some(after), Some(&now)),
            })
        }
        (What::Qdisc { dev, parent, before, after, each }, Before::Qdisc { link, tree, made }) => {
            let link = qdisc::device(&mut host.netlink, dev, *link)?;
            if let Some(class) = *parent {
                qdisc::is_leaf(&mut host.netlink, &link, class)?;
            }
            let found = qdisc::tree(&mut host.netlink, link.index, *parent)?;
            let queues = host.netlink.qdiscs(link.index)?;
            let lines = qdisc::lines(&queues, *parent);
            let wanted = qdisc::Wanted::of(after, *each, *parent);
            // Whoever makes a tree anew need not give its disciplines the numbers that they had.
            let as_owner_has_it = parent.is_some() && lines == *before;
            let as_made = made.as_ref().is_some_and(|made| qdisc::same(made, &found));
            Ok(if as_made || qdisc::is(&queues, &wanted, &link) {
                Now::After
            } else if as_owner_has_it || qdisc::same(tree, &found) {
                Now::Before
            } else {
                let meant = put_words(after.text(), *each, *parent);
                difference(what, Some(&meant), Some(&lines.join("\n")))
            })
        }
        (What::Ingress { dev, ifb, after }, Before::Ingress { link, made }) => {
            let link = qdisc::device(&mut host.netlink, dev, *link)?;
            ingress::now(&mut host.netlink, &link, ifb, after, made.as_deref())
        }
        (What::Offload { dev, key, after, .. }, Before::Offload { link, value }) => {
            let link = qdisc::device(&mut host.netlink, dev, *link)?;
            Ok(match offload::read(&mut host.netlink, &link, *key)? {
                now if now == *after => Now::After,
                now if now == *value => Now::Before,
                now => difference(what, Some(after), Some(&now)),
            })
        }
        (What::Route { .. }, Before::Route { route }) => {
            Ok(match route.now(&mut host.netlink)? {
                None => Now::Before,
                Some((_, true)) => Now::After,
                Some((found, false)) => difference(what, Some(&route.words()), Some(&found)),
            })
        }
        (What::File { path, after, mode, .. }, Before::File { file, .. }) => {
            let found = Place::find(&host.root, path)?.read()?;
            let mode = mode.bits();
            Ok(match (&found, file) {
                (Some(found), _) if found.content == *after && found.mode == mode => Now::After,
                (Some(found), Some(before)) if found.is_as(before) => Now::Before,
                (None, None) => Now::Before,
                (Some(found), _) if found.content == *after => {
                    let words = |mode: u32| format!("mode {mode:04o}");
                    difference(what, Some(&words(mode)), Some(&words(found.mode)))
                }
                (found, _) => {
                    let found = found.as_ref().map(|found| found.content.as_str());
                    difference(what, Some(after), found)
                }
            })
        }
        _ => Err(mismatch()),
    }
}

fn mismatch() -> ApplyError {
    ApplyError::Plan("the record does not belong to its plan".to_owned())
}

/// Tries a change where nothing comes of it, and completes what is known of what was there. Gives what the kernel makes of a
/// queue discipline.
pub(crate) fn rehearse(
    host: &mut Host,
    what: &What,
    before: &mut Before,
) -> Result<Option<Config>, ApplyError> {
    match (what, before) {
        (What::Qdisc { dev, parent, after, each, .. }, Before::Qdisc { tree, .. }) => {
            let wanted = qdisc::Wanted::of(after, *each, *parent);
            let rehearsal = qdisc::rehearse(&host.netlink.link(dev)?, tree, &wanted)?;
            if let Some(learnt) = rehearsal.before {
                *tree = learnt;
            }
            Ok(rehearsal.after)
        }
        (What::Ingress { dev, ifb, after }, _) => {
            let wanted = qdisc::Wanted::at_root(after);
            ingress::rehearse(&host.root, &host.netlink.link(dev)?, ifb, wanted)
        }
        _ => Ok(None),
    }
}

/// Makes a change, and looks whether it is there.
pub(crate) fn make(
    host: &mut Host,
    what: &What,
    before: &mut Before,
    rehearsed: Option<&Config>,
    lock: &Lock,
    step: &mut dyn FnMut(&Step),
) -> Result<(), ApplyError> {
    match (what, before) {
        (What::Module { module }, _) => module::load(module, lock),
        (What::Sysctl { key, after, .. }, _) => sysctl::write(&host.root, key, after),
        (What::Qdisc { dev, parent, after, each, .. }, Before::Qdisc { link, made, .. }) => {
            let link = qdisc::device(&mut host.netlink, dev, *link)?;
            let wanted = qdisc::Wanted::of(after, *each, *parent);
            qdisc::put(&mut host.netlink, &link, &wanted, step)?;
            *made = Some(qdisc::made(&mut host.netlink, &link, &wanted, rehearsed)?);
            Ok(())
        }
        (What::Ingress { dev, ifb, after }, Before::Ingress { link, made }) => {
            let link = qdisc::device(&mut host.netlink, dev, *link)?;
            ingress::load(&host.root, lock);
            let wanted = qdisc::Wanted::at_root(after);
            let own = ingress::put(&mut host.netlink, &link, ifb, &wanted, step)?;
            *made = Some(qdisc::made(&mut host.netlink, &own, &wanted, rehearsed)?);
            Ok(())
        }
        (What::Offload { dev, key, after, .. }, Before::Offload { link, .. }) => {
            let link = qdisc::device(&mut host.netlink, dev, *link)?;
            offload::write(&mut host.netlink, &link, *key, after)
        }
        (What::Route { .. }, Before::Route { route }) => route.add(&mut host.netlink),
        (What::File { path, after, mode, .. }, Before::File { file, .. }) => {
            let owner = file.as_ref().map(|file| file.owner);
            let wanted = Wanted { content: after, mode: mode.bits(), owner, changed: None };
            Place::find(&host.root, path)?.write(&wanted, step)
        }
        _ => Err(mismatch()),
    }
}

/// Puts back what was there before, whatever is there now.
pub(crate) fn restore(
    host: &mut Host,
    what: &What,
    before: &Before,
    lock: &Lock,
    step: &mut dyn FnMut(&Step),
) -> Result<(), ApplyError> {
    match (what, before) {
        (What::Module { module }, Before::Module { loaded }) => {
            if *loaded || !module::is_there(&host.root, module) {
                return Ok(());
            }
            module::unload(module, lock)
        }
        (What::Sysctl { key, .. }, Before::Sysctl { value }) => {
            if sysctl::read(&host.root, key)? == *value {
                return Ok(());
            }
            sysctl::write(&host.root, key, value)
        }
        (What::Qdisc { dev, parent, .. }, Before::Qdisc { link, tree, .. }) => {
            let link = qdisc::device(&mut host.netlink, dev, *link)?.index;
            qdisc::restore(&mut host.netlink, link, *parent, tree, step)?;
            let found = qdisc::tree(&mut host.netlink, link, *parent)?;
            match qdisc::difference(dev, tree, &found) {
                None => Ok(()),
                Some(difference) => Err(ApplyError::Plan(format!(
                    "{dev} has another qdisc than before: {}",
                    difference.to_string().lines().skip(1).collect::<Vec<_>>().join(" ")
                ))),
            }
        }
        (What::Ingress { dev, ifb, .. }, Before::Ingress { link, .. }) => {
            let link = match qdisc::device(&mut host.netlink, dev, *link) {
                Err(error) if error.is_gone() => None,
                found => Some(found?),
            };
            ingress::remove(&mut host.netlink, link.as_ref(), ifb, step)
        }
        (What::Offload { dev, key, .. }, Before::Offload { link, value }) => {
            let link = qdisc::device(&mut host.netlink, dev, *link)?;
            if offload::read(&mut host.netlink, &link, *key)? == *value {
                return Ok(());
            }
            offload::write(&mut host.netlink, &link, *key, value)
        }
        (What::Route { .. }, Before::Route { route }) => route.delete(&mut host.netlink),
        (What::File { path, .. }, Before::File { file, missing_folders }) => Place::find(
            &host.root, path,
        )?
        .restore(file.as_ref(), &host.root, *missing_folders, step),
        _ => Err(mismatch()),
    }
}
