//! Routes to where larger packets vanish.

use dualq_host::plan::{Requirements, SmallPath, What};
use dualq_host::{Facts, Plan};
use dualq_units::Rate;

use crate::{applied, content, machine};

const RULES: &str = "/etc/udev/rules.d/90-dualq.rules";

fn path(to: &str, dev: &str, mtu: u32) -> SmallPath {
    SmallPath { to: to.parse().unwrap(), dev: dev.to_owned(), mtu }
}

fn routes(facts: &Facts, paths: &[SmallPath]) -> Plan {
    Plan::of_small_paths(facts, None, "a test".to_owned(), paths).unwrap()
}

/// Both families, each by its interface; after IPv6's address, whose colons rules have no other meaning for.
#[test]
fn a_route_and_what_puts_it_back() {
    let facts = machine("debian-13");
    let paths = [path("192.0.2.7/32", "ens3", 1400), path("2001:db8::7/128", "wg0", 1380)];
    let plan = routes(&facts, &paths);
    let made: Vec<(String, u32)> = plan
        .changes
        .iter()
        .filter_map(|change| match &change.what {
            What::Route { to, mtu } => Some((to.to_string(), *mtu)),
            _ => None,
        })
        .collect();
    assert_eq!(made, [("192.0.2.7/32".to_owned(), 1400), ("2001:db8::7/128".to_owned(), 1380)]);
    assert_eq!(
        content(&plan, RULES).unwrap(),
        "# Written by dualq. It puts routes back.\n\n\
         # To 192.0.2.7/32, larger packets vanish.\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\", RUN+=\"/usr/bin/dualq on-boot --route 192.0.2.7/32 ens3 'mtu 1400'\"\n\n\
         # To 2001:db8::7/128, larger packets vanish.\n\
         ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"wg0\", RUN+=\"/usr/bin/dualq on-boot --route 2001:db8::7/128 wg0 'mtu 1380'\"\n"
            .replace("/usr/bin/dualq", facts.dualq.as_deref().unwrap_or("/usr/local/bin/dualq"))
    );
    assert_eq!(Plan::read(&plan.write()).unwrap(), plan);
}

/// A plan for a queue leaves routes' rules where they are, and one for a route the queue's; the same route again has one rule.
#[test]
fn routes_and_queues_leave_each_other() {
    let facts = machine("debian-13");
    let shaped = Requirements { rate: Some(Rate::from_mbit(50)), ..Requirements::default() };
    let one = routes(&facts, &[path("192.0.2.7/32", "ens3", 1400)]);
    let with_route = applied(facts.clone(), &one);
    let queue = Plan::make(&with_route, &shaped).unwrap();
    let text = content(&queue, RULES).unwrap();
    assert!(text.starts_with("# Written by dualq. It puts queue disciplines and routes back.\n"));
    assert!(
        text.contains("--route 192.0.2.7/32 ens3 'mtu 1400'") && text.contains("on-boot ens3 '")
    );

    let queue = Plan::make(&facts, &shaped).unwrap();
    let both = routes(&applied(facts, &queue), &[path("192.0.2.7/32", "ens3", 1400)]);
    assert_eq!(content(&both, RULES).unwrap(), text);

    let other = routes(
        &with_route,
        &[path("192.0.2.7/32", "ens3", 1300), path("192.0.2.8/32", "ens3", 1300)],
    );
    let text = content(&other, RULES).unwrap();
    assert_eq!(text.matches("--route 192.0.2.7/32").count(), 1, "{text}");
    assert_eq!(text.matches("'mtu 1300'").count(), 2, "{text}");
}

/// Where nobody calls, the plan says what to call, and the route is there until it goes.
#[test]
fn where_nothing_acts_the_call_is_told() {
    let mut facts = machine("debian-13");
    facts.distribution.udev = false;
    facts.distribution.network.clear();
    let plan = routes(&facts, &[path("192.0.2.7/32", "ens3", 1400)]);
    assert_eq!(plan.changes.len(), 1);
    assert!(
        plan.notes
            .iter()
            .any(|note| note.ends_with("on-boot --route 192.0.2.7/32 ens3 'mtu 1400'")),
        "{:?}",
        plan.notes
    );
}

/// Whatever is not for a rule is in none.
#[test]
fn names_that_rules_would_take_otherwise_are_refused() {
    let facts = machine("debian-13");
    let refused = |path, state| {
        let plan = Plan::of_small_paths(&facts, state, "a test".to_owned(), &[path]);
        plan.unwrap_err().to_string()
    };
    let said = refused(path("192.0.2.7/32", "e'; reboot", 1400), None);
    assert!(said.contains("is not a name of an interface"), "{said}");
    let said = refused(path("192.0.2.7/32", "ens3", 300), None);
    assert!(said.contains("an MTU of 300"), "{said}");
    let said = refused(path("192.0.2.7/32", "ens3", 1400), Some("/a/../b"));
    assert!(said.starts_with("--state: "), "{said}");
}

/// What TCP finds out by itself lasts too, and takes nothing away of what was set before.
#[test]
fn probing_outlasts_a_restart() {
    let mut facts = machine("debian-13");
    let probing = "net.ipv4.tcp_mtu_probing";
    facts.sysctls.insert(probing.to_owned(), "0".to_owned());
    let make = |facts: &Facts| Plan::of_mtu_probing(facts, "a test".to_owned()).unwrap();
    let plan = make(&facts);
    let file = "/etc/sysctl.d/90-dualq.conf";
    assert!(content(&plan, file).unwrap().ends_with("\nnet.ipv4.tcp_mtu_probing = 1\n"));
    assert_eq!(plan.changes.len(), 2);
    assert!(make(&applied(facts.clone(), &plan)).changes.is_empty());

    let shaped = Requirements { rate: Some(Rate::from_mbit(50)), ..Requirements::default() };
    let earlier = Plan::make(&facts, &shaped).unwrap();
    let mut later = applied(facts, &earlier);
    later.sysctls.insert(probing.to_owned(), "0".to_owned());
    let text = content(&earlier, file).unwrap();
    // What is there already is not written anew.
    let plan = make(&later);
    let keys = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains('='));
        let mut keys: Vec<String> = lines.map(str::to_owned).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(content(&plan, file).unwrap_or(text)), keys(text));
}
