//! The modules there are.

use std::fmt::Write as _;

use dualq_host::building::Obstacle;
use dualq_module::{By, Folder, Found, Installation};
use serde_json::{Value, json};

/// A line for each thing that there is.
pub(crate) fn text(installation: &Installation, built: &[Folder]) -> String {
    let (running, kernels) = (installation.running(), installation.kernels());
    let mut text = String::new();
    let mut say = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    let loaded = if installation.is_loaded() { "loaded" } else { "not loaded" };
    say(format!("running: Linux {running}, sch_dualpi2 is {loaded}"));
    for folder in built {
        let facts = &folder.facts;
        let path = folder.path().display();
        say(format!("built: for Linux {}, of Linux {} ({path})", facts.release, facts.version));
    }
    for Found { release, file, by, signed } in &kernels {
        let by = match by {
            By::Kernel => "came with the kernel",
            By::Dkms => "by DKMS",
            By::Dualq => "by hand, with dualq",
            By::Other => "by somebody else",
        };
        let signed = match signed {
            Some(true) => ", signed",
            Some(false) => ", not signed",
            None => "",
        };
        say(format!("installed: for Linux {release}, {by}{signed} ({file})"));
    }
    if built.is_empty() {
        say("built: none; `dualq module build` makes one".to_owned());
    }
    if kernels.is_empty() {
        say("installed: none".to_owned());
    }
    for obstacle in in_the_way(installation, built) {
        say(format!("in the way: {}", obstacle.text));
    }
    text
}

/// What keeps the running kernel from its module, if it has none and none is built.
fn in_the_way(installation: &Installation, built: &[Folder]) -> Vec<Obstacle> {
    let running = installation.running();
    let has_one = built.iter().any(|folder| folder.facts.release == running)
        || installation.kernels().iter().any(|found| found.release == running);
    // Of an image no kernel runs.
    if has_one || running.is_empty() { Vec::new() } else { installation.obstacles() }
}

/// The same as one document.
pub(crate) fn json(installation: &Installation, built: &[Folder]) -> String {
    let folders: Vec<Value> = built
        .iter()
        .map(|folder| json!({ "path": folder.path(), "release": folder.facts.release, "version": folder.facts.version, "origin": folder.facts.origin }))
        .collect();
    let in_the_way = in_the_way(installation, built);
    let document = json!({
        "running": installation.running(),
        "loaded": installation.is_loaded(),
        "built": folders,
        "installed": installation.kernels(),
        "in_the_way": in_the_way.iter().map(|obstacle| &obstacle.text).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}
