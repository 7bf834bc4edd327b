//! How well a world agrees with real Linux.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::check::{Checked, Quantity, Verdict};

fn agrees(quantities: &[Quantity]) -> bool {
    quantities.iter().all(|quantity| quantity.agrees)
}

/// A line a scenario, more for what does not agree, and the count.
pub(crate) fn text(checked: &[Checked]) -> String {
    let mut text = String::new();
    let (mut agree, mut counted) = (0, 0);
    for Checked { name, verdict } in checked {
        match verdict {
            Verdict::NotModelled(reason) => {
                let _ = writeln!(text, "{name}: not modelled yet: {reason}");
            }
            Verdict::Compared(quantities) => {
                counted += 1;
                agree += u32::from(agrees(quantities));
                let verdict = if agrees(quantities) { "agrees" } else { "differs" };
                let _ = writeln!(text, "{name}: {verdict}");
                for quantity in quantities {
                    let Quantity { what, kernel, model, agrees } = quantity;
                    let mark = if *agrees { ' ' } else { '*' };
                    let _ = writeln!(
                        text,
                        "  {mark} {what:<40} model {model:>10.3}  kernel {kernel:>10.3}"
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
pub(crate) fn json(checked: &[Checked]) -> String {
    let mut runs: Vec<Value> = Vec::new();
    let mut not_modelled: Vec<Value> = Vec::new();
    for Checked { name, verdict } in checked {
        match verdict {
            Verdict::NotModelled(reason) => {
                not_modelled.push(json!({ "name": name, "reason": reason }));
            }
            Verdict::Compared(quantities) => {
                let listed: Vec<Value> = quantities
                    .iter()
                    .map(|Quantity { what, kernel, model, agrees }| {
                        json!({ "what": what, "model": model, "kernel": kernel, "agrees": agrees })
                    })
                    .collect();
                runs.push(
                    json!({ "name": name, "agrees": agrees(quantities), "quantities": listed }),
                );
            }
        }
    }
    let document =
        json!({ "version": 1, "command": "check", "runs": runs, "not_modelled": not_modelled });
    format!("{document:#}\n")
}
