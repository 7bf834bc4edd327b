//! How well a world agrees with real Linux.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::check::{Checked, Quantity, Verdict};
use crate::world::World;

/// What figures from this world are called, and the recorded ones beside them.
const fn names(world: &World) -> (&'static str, &'static str) {
    match world {
        World::Model => ("model", "kernel"),
        World::Kernel(_) => ("here", "recorded"),
    }
}

fn lines(text: &mut String, quantities: &[&Quantity], here: &str, recorded: &str) {
    for Quantity { what, kernel, here: value, agrees } in quantities {
        let mark = if *agrees { ' ' } else { '*' };
        let _ =
            writeln!(text, "  {mark} {what:<40} {here} {value:>10.3}  {recorded} {kernel:>10.3}");
    }
}

/// A line a scenario, more for what does not agree, and the count.
pub(crate) fn text(checked: &[Checked], world: &World, twin: bool) -> String {
    let (here, recorded) = names(world);
    let missing = match world {
        World::Model => "not modelled yet",
        World::Kernel(_) => "not possible with this kernel",
    };
    let mut text = String::new();
    let (mut agree, mut twins, mut counted) = (0, 0, 0);
    for Checked { name, verdict } in checked {
        match verdict {
            Verdict::NotPossible(reason) => {
                let _ = writeln!(text, "{name}: {missing}: {reason}");
            }
            Verdict::Compared(comparison) => {
                counted += 1;
                agree += u32::from(comparison.agrees());
                twins += u32::from(comparison.is_twin());
                let verdict = match (twin, comparison.agrees(), comparison.is_twin()) {
                    (false, true, _) => "agrees",
                    (false, false, _) => "differs",
                    (true, _, true) => "twin",
                    (true, _, false) => "can be told apart",
                };
                let _ = writeln!(text, "{name}: {verdict}");
                for limit in &comparison.limits {
                    let _ = writeln!(text, "  limit: {limit}");
                }
                let apart: Vec<&Quantity> =
                    comparison.figures.iter().filter(|figure| !figure.agrees).collect();
                if twin {
                    lines(&mut text, &apart, here, recorded);
                    continue;
                }
                let quantities: Vec<&Quantity> = comparison.quantities.iter().collect();
                lines(&mut text, &quantities, here, recorded);
                if !apart.is_empty() {
                    text.push_str("  told apart, by narrow tolerances, by\n");
                    lines(&mut text, &apart, here, recorded);
                }
                if !comparison.lacking.is_empty() {
                    let _ =
                        writeln!(text, "  not in the reference: {}", comparison.lacking.join("; "));
                }
            }
        }
    }
    let percent = |count: u32| 100.0 * f64::from(count) / f64::from(counted.max(1));
    if !twin {
        let _ = writeln!(text, "{agree} of {counted} scenarios agree ({:.0} %)", percent(agree));
    }
    let share = percent(twins);
    let _ = writeln!(text, "{twins} of {counted} scenarios cannot be told apart ({share:.0} %)");
    text
}

/// The same as one document.
pub(crate) fn json(checked: &[Checked], world: &World, twin: bool) -> String {
    let (here, _) = names(world);
    let mut runs: Vec<Value> = Vec::new();
    let mut not_modelled: Vec<Value> = Vec::new();
    for Checked { name, verdict } in checked {
        match verdict {
            Verdict::NotPossible(reason) => {
                not_modelled.push(json!({ "name": name, "reason": reason }));
            }
            Verdict::Compared(comparison) => {
                let list = |quantities: &[Quantity]| -> Vec<Value> {
                    let entry = |Quantity { what, kernel, here: value, agrees }: &Quantity| json!({ "what": what, here: value, "kernel": kernel, "agrees": agrees });
                    quantities.iter().map(entry).collect()
                };
                runs.push(json!({
                    "name": name,
                    "agrees": comparison.agrees(),
                    "twin": comparison.is_twin(),
                    "quantities": list(&comparison.quantities),
                    "figures": list(&comparison.figures),
                    "lacking": comparison.lacking,
                    "limits": comparison.limits,
                }));
            }
        }
    }
    let document = json!({
        "version": 1,
        "command": "check",
        "twin": twin,
        "world": world.name(),
        "kernel": world.kernel_version(),
        "runs": runs,
        "not_modelled": not_modelled,
    });
    format!("{document:#}\n")
}
