//! Values that are put into a scenario file before it is read: each as though it stood on a line behind the file's last.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::reader::SweepError;

/// A value for a key of a scenario file, in the place of what the file says: `link.rate` is `10mbit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The key, of arrays of tables with its number from 0: `flow.0.cc`. One more than there are adds a table.
    pub key: String,
    /// The value: a number, `true`, `false`, a string in quotes or a list in brackets as TOML has them; all else is a string.
    pub value: String,
}

/// A file's text with the assignments behind it.
pub(crate) struct Assigned<'a> {
    assignments: &'a [Assignment],
    text: String,
    /// Where the file ends.
    end: usize,
    /// Where each value stands.
    places: Vec<Range<usize>>,
}

impl<'a> Assigned<'a> {
    pub(crate) fn behind(source: &str, assignments: &'a [Assignment]) -> Self {
        let (mut text, mut places) = (source.to_owned(), Vec::new());
        for Assignment { value, .. } in assignments {
            text.push('\n');
            let begins = text.len();
            text.push_str(value.trim());
            places.push(begins..text.len());
        }
        Self { assignments, text, end: source.len(), places }
    }

    /// All of it, in which offsets are.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The file alone.
    pub(crate) fn file(&self) -> &str {
        &self.text[..self.end]
    }

    /// Says of which assignment an error is that stands behind the file.
    pub(crate) fn blame(&self, mut error: SweepError) -> SweepError {
        let line_of = |offset| crate::reader::line_of(&self.text, offset);
        let behind = error.line.filter(|line| *line > line_of(self.end));
        let at_fault = behind.and_then(|line| {
            self.places
                .iter()
                .position(|place| (line_of(place.start)..=line_of(place.end)).contains(&line))
        });
        if let Some(at) = at_fault {
            let Assignment { key, value } = &self.assignments[at];
            (error.line, error.assignment) = (None, Some(format!("{key}={value}")));
        }
        error
    }

    /// Puts the values where their keys say.
    pub(crate) fn apply<'i>(&'i self, table: &mut DeTable<'i>) -> Result<(), SweepError> {
        for (Assignment { key, .. }, place) in self.assignments.iter().zip(&self.places) {
            let wrong = |message: String| {
                let line = crate::reader::line_of(&self.text, place.start);
                SweepError::on_line(Some(line), message)
            };
            let value = self.value(place);
            put(table, key, value, place).map_err(wrong)?;
        }
        Ok(())
    }

    fn value(&self, place: &Range<usize>) -> Spanned<DeValue<'_>> {
        let word = &self.text[place.clone()];
        let parsed = DeValue::parse(word).ok().filter(|parsed| {
            matches!(
                parsed.get_ref(),
                DeValue::Integer(_) | DeValue::Boolean(_) | DeValue::String(_) | DeValue::Array(_)
            )
        });
        match parsed {
            Some(parsed) => moved(parsed, place.start),
            None => Spanned::new(place.clone(), DeValue::String(word.into())),
        }
    }
}

/// The same by so much further behind.
fn moved(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = value.span();
    let mut value = value.into_inner();
    if let DeValue::Array(entries) = &mut value {
        for entry in entries.iter_mut() {
            let inner = std::mem::replace(entry, Spanned::new(0..0, DeValue::Boolean(false)));
            *entry = moved(inner, by);
        }
    }
    Spanned::new(span.start + by..span.end + by, value)
}

/// Which table of an array a part of a key is.
fn number(part: &str) -> Option<usize> {
    part.parse().ok()
}

fn put<'i>(
    table: &mut DeTable<'i>,
    key: &str,
    value: Spanned<DeValue<'i>>,
    place: &Range<usize>,
) -> Result<(), String> {
    let parts: Vec<&str> = key.split('.').map(str::trim).collect();
    let Some((last, way)) =
        parts.split_last().filter(|_| parts.iter().all(|part| !part.is_empty()))
    else {
        return Err(format!("{key:?} is no key; give one such as link.rate or flow.0.cc"));
    };
    if number(last).is_some() {
        return Err(format!("{key} is a whole table; give a key in it, such as {key}.cc"));
    }
    let named = |name: &str| Spanned::new(place.clone(), name.to_owned().into());
    let mut table = table;
    let mut way = way.iter().peekable();
    let mut so_far = String::new();
    while let Some(name) = way.next() {
        so_far = if so_far.is_empty() { (*name).to_owned() } else { format!("{so_far}.{name}") };
        let at = way.next_if(|part| number(part).is_some()).and_then(|part| number(part));
        if table.get(*name).is_none() {
            let empty = match at {
                Some(_) => DeValue::Array(Default::default()),
                None => DeValue::Table(DeTable::new()),
            };
            table.insert(named(name), Spanned::new(place.clone(), empty));
        }
        let found = table.get_mut(*name).map(Spanned::get_mut);
        table = match (found, at) {
            (Some(DeValue::Table(inner)), None) => inner,
            (Some(DeValue::Array(tables)), Some(at)) => {
                let there = tables.len();
                if at > there {
                    return Err(format!(
                        "{so_far}.{at}: there are {there} of {so_far}, counted from 0"
                    ));
                }
                if at == there {
                    tables.push(Spanned::new(place.clone(), DeValue::Table(DeTable::new())));
                }
                so_far = format!("{so_far}.{at}");
                match tables.get_mut(at).map(Spanned::get_mut) {
                    Some(DeValue::Table(inner)) => inner,
                    _ => return Err(format!("{so_far} is no table")),
                }
            }
            (Some(DeValue::Array(_)), None) => {
                return Err(format!("{so_far} is a list of tables; say which: {so_far}.0"));
            }
            _ => return Err(format!("{so_far} has no keys inside it")),
        };
    }
    // With the place of what is put there, not of what was.
    table.remove(*last);
    table.insert(named(last), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Overrides, Sweep};

    const FILE: &str = "[link]\nrate = '50mbit'\nqdisc = ['fq', 'pie']\n[[flow]]\ncc = 'cubic'";

    fn read(set: &[(&str, &str)]) -> Result<Sweep, String> {
        let set = set
            .iter()
            .map(|(key, value)| Assignment { key: (*key).to_owned(), value: (*value).to_owned() });
        let overrides = Overrides { set: set.collect(), ..Overrides::default() };
        Sweep::parse_in(Path::new(""), FILE, &overrides).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_what_they_would_be_in_the_file() {
        let sweep = read(&[
            ("link.rate", "10mbit"),
            ("link.qdisc", "dualpi2 target 5ms"),
            ("flow.0.count", "3"),
            ("flow.1.cc", "bbr"),
            ("probe.0.interval", "20ms"),
            ("sender.gso", "false"),
            ("link.mtu", "[1400, 1500]"),
            ("name", "\"other\""),
        ])
        .unwrap();
        let in_a_file = Sweep::parse(
            "name = 'other'\n[link]\nrate = '10mbit'\nqdisc = 'dualpi2 target 5ms'\nmtu = [1400, 1500]\n[sender]\ngso = false\n\
             [[flow]]\ncc = 'cubic'\ncount = 3\n[[flow]]\ncc = 'bbr'\n[[probe]]\ninterval = '20ms'",
        )
        .unwrap();
        let all = |sweep: &Sweep| format!("{:?}", sweep.variants());
        assert_eq!(all(&sweep), all(&in_a_file));
    }

    #[test]
    fn what_is_wrong_names_the_assignment() {
        let wrong = [
            (
                ("link.rat", "1mbit"),
                "link.rat=1mbit: unknown key \"link.rat\"; did you mean \"rate\"?",
            ),
            (("flow.0.count", "-1"), "flow.0.count=-1: flow.count: "),
            (("flow.0.count", "[2, 99999999]"), "flow.0.count=[2, 99999999]: flow.count: "),
            (("flow.2.cc", "bbr"), "flow.2.cc=bbr: flow.2: there are 1 of flow, counted from 0"),
            (("flow.cc", "bbr"), "flow.cc=bbr: flow is a list of tables; say which: flow.0"),
            (("flow.0", "bbr"), "flow.0=bbr: flow.0 is a whole table; "),
            (("link.rate.x", "1"), "link.rate.x=1: link.rate has no keys inside it"),
            (("link..x", "1"), "link..x=1: \"link..x\" is no key; "),
            // Only a check of the whole finds it.
            (("warmup", "90s"), "warmup=90s: warmup: "),
        ];
        for ((key, value), expected) in wrong {
            let error = read(&[("name", "x"), (key, value)]).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
