//! `dualq shell watch`: a link on a terminal of its own, which keys change.

use std::time::Instant;

use dualq_units::{Exact, Rate};

use super::LOOK;
use super::control::Remote;
use super::display::Display;
use super::document::Way;
use crate::cli::Failure;
use crate::cli::shell::Changes;
use crate::screen::{CTRL_C, CTRL_D, ESCAPE, Screen};

/// What keys do.
const KEYS: [&str; 5] = [
    "+ - rate",
    "] [ round trip",
    "d queue discipline",
    ": a setting in words (rate 10mbit, qdisc pie, up 5mbit)",
    "q quit",
];
/// What the key for it goes through.
const QDISCS: [&str; 6] = ["dualpi2", "fq_codel", "cake", "pie", "fq", "pfifo"];
/// A step of a rate or a time: three of them are a factor of two.
const STEP: f64 = 1.26;
const BACKSPACE: [u8; 2] = [8, 127];

/// Shows it until the user has enough, or it ends.
pub(crate) fn watch(remote: &mut Remote) -> Result<(), Failure> {
    if !Screen::is_there() {
        let message =
            "this shows something on a terminal, and there is none; --json prints it once";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut display = Display::default();
    display.add(remote.look()?);
    let screen = Screen::take()?;
    Watching { remote, display, typed: None, told: String::new() }.show(&screen)
}

struct Watching<'r> {
    remote: &'r mut Remote,
    display: Display,
    /// What is being typed, if something is.
    typed: Option<String>,
    /// What came of the last change.
    told: String,
}

impl Watching<'_> {
    fn show(&mut self, screen: &Screen) -> Result<(), Failure> {
        let mut next = Instant::now();
        loop {
            if Instant::now() >= next {
                next = Instant::now() + LOOK;
                self.display.add(self.remote.look()?);
            }
            self.draw(screen);
            let Some(keys) = screen.keys(next, None) else { return Ok(()) };
            for key in keys {
                if self.press(key)? {
                    return Ok(());
                }
            }
        }
    }

    fn draw(&self, screen: &Screen) {
        let title = self.display.last().map_or(String::new(), |document| {
            format!(
                "dualq shell {}: {}, {:.0} s",
                self.remote.pid, document.command, document.seconds
            )
        });
        let columns = Screen::size().columns;
        let mut lines = vec![title, String::new()];
        lines.extend(self.display.lines(columns));
        lines.push(String::new());
        match &self.typed {
            Some(typed) => lines.push(format!(": {typed}_")),
            None => lines.extend(filled(KEYS, "  ", columns)),
        }
        lines.extend(filled(self.told.split(' '), " ", columns));
        screen.draw(&lines);
    }

    /// A key; says whether it was the last one.
    fn press(&mut self, key: u8) -> Result<bool, Failure> {
        if let Some(mut typed) = self.typed.take() {
            match key {
                b'\r' | b'\n' => {
                    self.told = match settings(&typed) {
                        Ok(changes) => self.change(&changes)?,
                        Err(why) => why,
                    };
                    return Ok(false);
                }
                ESCAPE | CTRL_C => return Ok(false),
                key if BACKSPACE.contains(&key) => drop(typed.pop()),
                b' '..=b'~' => typed.push(key.into()),
                _ => {}
            }
            self.typed = Some(typed);
            return Ok(false);
        }
        let changes = match key {
            b'q' | CTRL_C | CTRL_D => return Ok(true),
            b':' => {
                self.typed = Some(String::new());
                return Ok(false);
            }
            b'+' | b'=' => self.faster(STEP),
            b'-' => self.faster(1.0 / STEP),
            b']' => self.farther(STEP),
            b'[' => self.farther(1.0 / STEP),
            b'd' => self.other_qdisc(),
            _ => None,
        };
        if let Some(changes) = changes {
            self.told = self.change(&changes)?;
        }
        Ok(false)
    }

    /// What came of it. That it is refused is no reason to end.
    fn change(&mut self, changes: &Changes) -> Result<String, Failure> {
        match self.remote.set(changes) {
            Ok(told) => Ok(told),
            Err(Failure::Usage(why)) => Ok(why),
            Err(other) => Err(other),
        }
    }

    fn faster(&self, factor: f64) -> Option<Changes> {
        let document = self.display.last()?;
        let other = |way: &Way| {
            let rate: Rate = way.rate.as_ref()?.parse().ok()?;
            let bits = (rate.as_bits_per_second() as f64 * factor).round().max(8000.0) as u64;
            Some(Exact(Rate::from_bits_per_second(bits)).to_string())
        };
        Some(Changes { down: other(&document.down), up: other(&document.up), ..Changes::default() })
    }

    fn farther(&self, factor: f64) -> Option<Changes> {
        let document = self.display.last()?;
        let micros = (document.down.delay_ms + document.up.delay_ms) * 1000.0;
        // From nothing it would never come away.
        let micros = (micros * factor).round().max(1000.0);
        let rtt = std::time::Duration::from_micros(micros as u64);
        Some(Changes { rtt: Some(Exact(rtt).to_string()), ..Changes::default() })
    }

    fn other_qdisc(&self) -> Option<Changes> {
        let now = self.display.last()?.down.qdisc.clone()?;
        let kind = now.split_whitespace().next()?;
        let at = QDISCS.iter().position(|qdisc| *qdisc == kind).map_or(0, |at| at + 1);
        let qdisc = QDISCS[at % QDISCS.len()].to_owned();
        Some(Changes { qdisc: Some(qdisc), ..Changes::default() })
    }
}

/// Lines of at most so many columns, broken between words.
fn filled<'w>(
    words: impl IntoIterator<Item = &'w str>,
    between: &str,
    columns: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if line.chars().count() + between.len() + length <= columns => {
                line.push_str(between);
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A setting in words: `rate 10mbit`.
fn settings(typed: &str) -> Result<Changes, String> {
    let typed = typed.trim();
    let (name, value) = typed.split_once([' ', '=']).unwrap_or((typed, ""));
    let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
    let Some(value) = value else {
        return Err(format!(
            "{name:?} needs a value: rate 10mbit, rtt 20ms, qdisc pie, down 20mbit, up 5mbit fq_codel"
        ));
    };
    let mut changes = Changes::default();
    let field = match name {
        "rate" => &mut changes.rate,
        "rtt" => &mut changes.rtt,
        "qdisc" => &mut changes.qdisc,
        "down" => &mut changes.down,
        "up" => &mut changes.up,
        _ => return Err(format!("there is no setting {name:?}: rate, rtt, qdisc, down, up")),
    };
    *field = Some(value);
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use dualq_units::tc_time;

    use super::*;

    #[test]
    fn all_keys_are_shown_on_eighty_columns() {
        let lines = filled(KEYS, "  ", 80);
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
        assert!(lines.last().unwrap().ends_with("q quit"), "{lines:?}");
        assert_eq!(filled(KEYS, "  ", 200).len(), 1);
        assert_eq!(filled("down rate 7Mbit".split(' '), " ", 9), ["down rate", "7Mbit"]);
    }

    #[test]
    fn settings_are_read() {
        assert_eq!(settings(" rate 10mbit ").unwrap().rate.as_deref(), Some("10mbit"));
        let qdisc = settings("qdisc=fq_codel limit 100").unwrap().qdisc;
        assert_eq!(qdisc.as_deref(), Some("fq_codel limit 100"));
        assert!(
            settings("rate").is_err() && settings("colour red").is_err() && settings("").is_err()
        );
        // What the keys make are words that tc's grammar has.
        assert!(
            tc_time::parse_span(&Exact(std::time::Duration::from_micros(1234)).to_string()).is_ok()
        );
        assert!(QDISCS.iter().all(|qdisc| qdisc.parse::<dualq_qdisc::QdiscLine>().is_ok()));
    }
}
