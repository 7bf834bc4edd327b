//! How well a world agrees with real Linux, as `dualq check` says it.

mod page;

use std::fmt::Write as _;

use serde_json::{Value, json};

use dualq_worlds::agreement::{Compared, Quantity, Verdict};
use dualq_worlds::{Origin, World};

pub use page::{Document, DocumentError};

/// What figures from this world are called, and the recorded ones beside them.
fn names(world: &dyn World) -> (&'static str, &'static str) {
    if world.kernel_version().is_some() { ("here", "recorded") } else { ("model", "kernel") }
}

fn lines(text: &mut String, quantities: &[&Quantity], here: &str, recorded: &str) {
    for quantity in quantities {
        let Quantity { kernel, here: value, agrees, .. } = quantity;
        let (what, mark) = (quantity.label(), if *agrees { ' ' } else { '*' });
        let _ =
            writeln!(text, "  {mark} {what:<40} {here} {value:>10.3}  {recorded} {kernel:>10.3}");
    }
}

/// A line a scenario, more for what does not agree, and the count.
#[must_use]
pub fn text(compared: &[Compared], world: &dyn World, twin: bool) -> String {
    let (here, recorded) = names(world);
    let missing = match world.kernel_version() {
        None => "not modelled yet",
        Some(_) => "not possible with this kernel",
    };
    let mut text = String::new();
    let (mut agree, mut twins, mut counted) = (0, 0, 0);
    for Compared { name, verdict } in compared {
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

/// Means have no more to say: what is behind is what is left of sums.
fn millionths(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// The same as one document, with what made it.
#[must_use]
pub fn json(compared: &[Compared], world: &dyn World, twin: bool, origin: &Origin) -> String {
    let (here, _) = names(world);
    let mut runs: Vec<Value> = Vec::new();
    let mut not_modelled: Vec<Value> = Vec::new();
    for Compared { name, verdict } in compared {
        match verdict {
            Verdict::NotPossible(reason) => {
                not_modelled.push(json!({ "name": name, "reason": reason }));
            }
            Verdict::Compared(comparison) => {
                let list = |quantities: &[Quantity]| -> Vec<Value> {
                    let entry = |quantity: &Quantity| {
                        json!({
                            "what": quantity.label(),
                            here: millionths(quantity.here),
                            "kernel": millionths(quantity.kernel),
                            "agrees": quantity.agrees,
                        })
                    };
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
        "origin": origin,
        "runs": runs,
        "not_modelled": not_modelled,
    });
    format!("{document:#}\n")
}
