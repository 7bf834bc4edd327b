//! How well a world agrees with real Linux.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::check::{Checked, Quantity, Verdict};
use crate::world::World;

fn agrees(quantities: &[Quantity]) -> bool {
    quantities.iter().all(|quantity| quantity.agrees)
}

/// What figures from this world are called, and the recorded ones beside them.
const fn names(world: &World) -> (&'static str, &'static str) {
    match world {
        World::Model => ("model", "kernel"),
        World::Kernel(_) => ("here", "recorded"),
    }
}

/// A line a scenario, more for what does not agree, and the count.
pub(crate) fn text(checked: &[Checked], world: &World) -> String {
    let (here, recorded) = names(world);
    let missing = match world {
        World::Model => "not modelled yet",
        World::Kernel(_) => "not possible with this kernel",
    };
    let mut text = String::new();
    let (mut agree, mut counted) = (0, 0);
    for Checked { name, verdict } in checked {
        match verdict {
            Verdict::NotPossible(reason) => {
                let _ = writeln!(text, "{name}: {missing}: {reason}");
            }
            Verdict::Compared(quantities) => {
                counted += 1;
                agree += u32::from(agrees(quantities));
                let verdict = if agrees(quantities) { "agrees" } else { "differs" };
                let _ = writeln!(text, "{name}: {verdict}");
                for quantity in quantities {
                    let Quantity { what, kernel, here: value, agrees } = quantity;
                    let mark = if *agrees { ' ' } else { '*' };
                    let _ = writeln!(
                        text,
                        "  {mark} {what:<40} {here} {value:>10.3}  {recorded} {kernel:>10.3}"
                    );
                }
            }
        }
    }
    let share = 100.0 * f64::from(agree) / f64::from(counted.max(1));
    let _ = writeln!(text, "{agree} of {counted} scenarios agree ({share:.0} %)");
    text
}

/// The same as one document.
pub(crate) fn json(checked: &[Checked], world: &World) -> String {
    let (here, _) = names(world);
    let mut runs: Vec<Value> = Vec::new();
    let mut not_modelled: Vec<Value> = Vec::new();
    for Checked { name, verdict } in checked {
        match verdict {
            Verdict::NotPossible(reason) => {
                not_modelled.push(json!({ "name": name, "reason": reason }));
            }
            Verdict::Compared(quantities) => {
                let listed: Vec<Value> = quantities
                    .iter()
                    .map(|Quantity { what, kernel, here: value, agrees }| {
                        json!({ "what": what, here: value, "kernel": kernel, "agrees": agrees })
                    })
                    .collect();
                runs.push(
                    json!({ "name": name, "agrees": agrees(quantities), "quantities": listed }),
                );
            }
        }
    }
    let document = json!({
        "version": 1,
        "command": "check",
        "world": world.name(),
        "kernel": world.kernel_version(),
        "runs": runs,
        "not_modelled": not_modelled,
    });
    format!("{document:#}\n")
}
