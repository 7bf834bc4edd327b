//! TOML, read with an eye on what was meant: unknown keys are refused with the nearest right one, and every complaint names
//! its line.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::bounds::whole_number;
use crate::sweep::MOST_VARIANTS;
use crate::words::{Word, nearest};

/// What is wrong with a sweep, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", prefix(*.line, *.option, .assignment.as_deref()))]
pub struct SweepError {
    /// The line, from 1; none if the fault is not on one.
    pub line: Option<usize>,
    /// The option of the command line that is at fault, if one is: `rate`.
    pub option: Option<&'static str>,
    /// The [`Assignment`](crate::Assignment) that is at fault, if one is: `link.rate=10mbot`.
    pub assignment: Option<String>,
    /// What is wrong, and what would be right.
    pub message: String,
}

fn prefix(line: Option<usize>, option: Option<&str>, assignment: Option<&str>) -> String {
    match (option, assignment, line) {
        (Some(option), ..) => format!("--{option}: "),
        (None, Some(assignment), _) => format!("{assignment}: "),
        (None, None, Some(line)) => format!("line {line}: "),
        (None, None, None) => String::new(),
    }
}

impl SweepError {
    pub(crate) fn on_line(line: Option<usize>, message: impl Into<String>) -> Self {
        Self { line, option: None, assignment: None, message: message.into() }
    }

    pub(crate) fn of_option(option: &'static str, message: impl Into<String>) -> Self {
        Self { line: None, option: Some(option), assignment: None, message: message.into() }
    }
}

/// On which line each value was found, by its key: `flow[0].count`.
pub(crate) type Lines = BTreeMap<String, usize>;

/// A value with the place where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) offset: usize,
}

/// Where the first of these is that was there before: its scenarios would be the same ones, and their rows could not be told apart. Lists of
/// more than a file may have are refused elsewhere, by their number.
pub(crate) fn again<T>(values: &[T], same: impl Fn(&T, &T) -> bool) -> Option<usize> {
    let is_again = |at: &usize| values[..*at].iter().any(|before| same(before, &values[*at]));
    (1..values.len().min(MOST_VARIANTS)).find(is_again)
}

/// What is said of it.
pub(crate) fn given_twice(text: &str) -> String {
    format!("{text} is given twice; give each value of a list once")
}

/// What is often written at the top of a scenario, and where it belongs.
const INSIDE: [(&str, &[&str]); 2] = [
    ("[link]", &["rate", "rtt", "qdisc", "loss", "mtu", "trace", "forward", "reverse"]),
    ("[[flow]]", &["cc", "count", "ecn", "size", "direction", "start", "stop"]),
];

/// A table that knows its name and which of its keys were asked for.
pub(crate) struct Table<'a, 'i> {
    source: &'i str,
    /// As it is called in complaints: `flow`.
    name: String,
    /// Which of them: `flow[0]`.
    place: String,
    lines: &'a RefCell<Lines>,
    offset: usize,
    table: &'a DeTable<'i>,
    known: BTreeSet<&'static str>,
}

pub(crate) fn line_of(source: &str, offset: usize) -> usize {
    1 + source.as_bytes()[..offset.min(source.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// Parses a whole file.
pub(crate) fn parse(source: &str) -> Result<Spanned<DeTable<'_>>, SweepError> {
    DeTable::parse(source).map_err(|error| {
        let line = error.span().map(|span| line_of(source, span.start));
        let twice = error.span().filter(|_| error.message() == "duplicate key");
        match twice.and_then(|span| source.get(span)) {
            Some(key) => SweepError::on_line(line, format!("{key} is given twice")),
            None => SweepError::on_line(line, error.message()),
        }
    })
}

impl<'a, 'i> Table<'a, 'i> {
    /// The whole file. Where the values are goes to `lines`.
    pub(crate) fn top(source: &'i str, table: &'a DeTable<'i>, lines: &'a RefCell<Lines>) -> Self {
        let (name, place) = (String::new(), String::new());
        Self { source, name, place, lines, offset: 0, table, known: BTreeSet::new() }
    }

    pub(crate) fn error(&self, offset: usize, message: impl Display) -> SweepError {
        SweepError::on_line(Some(line_of(self.source, offset)), message.to_string())
    }

    /// The key as it is called in complaints: `link.rate`.
    fn path(&self, key: &str) -> String {
        join(&self.name, key)
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'i>>> {
        self.known.insert(key);
        let value = self.table.get(key)?;
        let line = line_of(self.source, value.span().start);
        self.lines.borrow_mut().insert(join(&self.place, key), line);
        Some(value)
    }

    /// Whether it is there, whatever it is.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// A table inside this one.
    pub(crate) fn table(&mut self, key: &'static str) -> Result<Option<Table<'a, 'i>>, SweepError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let offset = value.span().start;
        let DeValue::Table(table) = value.get_ref() else {
            let path = self.path(key);
            return Err(self.error(offset, format!("{path} must be a table, [{path}]")));
        };
        let (name, place) = (self.path(key), join(&self.place, key));
        let (source, lines, known) = (self.source, self.lines, BTreeSet::new());
        Ok(Some(Table { source, name, place, lines, offset, table, known }))
    }

    /// The tables of an array, `[[key]]`.
    pub(crate) fn tables(&mut self, key: &'static str) -> Result<Vec<Table<'a, 'i>>, SweepError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let wrong = |this: &Self, offset| {
            let path = this.path(key);
            Err(this.error(offset, format!("{path} must be an array of tables, [[{path}]]")))
        };
        let DeValue::Array(entries) = value.get_ref() else {
            return wrong(self, value.span().start);
        };
        let mut tables = Vec::new();
        for (number, entry) in entries.iter().enumerate() {
            let offset = entry.span().start;
            let DeValue::Table(table) = entry.get_ref() else { return wrong(self, offset) };
            let (name, place) = (self.path(key), format!("{}[{number}]", join(&self.place, key)));
            let (source, lines, known) = (self.source, self.lines, BTreeSet::new());
            lines.borrow_mut().insert(place.clone(), line_of(source, offset));
            tables.push(Table { source, name, place, lines, offset, table, known });
        }
        Ok(tables)
    }

    /// A value, or a list of them to compare, each of which is another one; empty if the key is not there.
    pub(crate) fn list<T: PartialEq>(
        &mut self,
        key: &'static str,
        read: impl Fn(&DeValue<'i>) -> Result<T, String>,
    ) -> Result<Vec<Placed<T>>, SweepError> {
        let (values, texts) = self.entries(key, read)?;
        match again(&values, |one, other| one.value == other.value) {
            Some(at) => {
                let message = given_twice(texts[at]);
                Err(self.error(values[at].offset, format!("{}: {message}", self.path(key))))
            }
            None => Ok(values),
        }
    }

    /// The values of a list, or the one that is there, with their texts.
    fn entries<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&DeValue<'i>) -> Result<T, String>,
    ) -> Result<(Vec<Placed<T>>, Vec<&'i str>), SweepError> {
        let Some(value) = self.get(key) else { return Ok(Default::default()) };
        let entries: Vec<&Spanned<DeValue<'i>>> = match value.get_ref() {
            DeValue::Array(entries) if entries.is_empty() => {
                let message = format!("{}: the list is empty", self.path(key));
                return Err(self.error(value.span().start, message));
            }
            DeValue::Array(entries) => entries.iter().collect(),
            _ => vec![value],
        };
        let read = |entry: &&Spanned<DeValue<'i>>| {
            let offset = entry.span().start;
            match read(entry.get_ref()) {
                Ok(value) => Ok(Placed { value, offset }),
                Err(message) => Err(self.error(offset, format!("{}: {message}", self.path(key)))),
            }
        };
        let values = entries.iter().map(read).collect::<Result<_, _>>()?;
        let text =
            |entry: &&Spanned<DeValue<'i>>| self.source.get(entry.span()).unwrap_or("a value");
        Ok((values, entries.iter().map(text).collect()))
    }

    /// A value that cannot be compared.
    pub(crate) fn one<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&DeValue<'i>) -> Result<T, String>,
    ) -> Result<Option<Placed<T>>, SweepError> {
        let (mut values, _) = self.entries(key, read)?;
        if let Some(second) = values.get(1) {
            let message = format!("{} takes one value; it cannot be compared", self.path(key));
            return Err(self.error(second.offset, message));
        }
        Ok(values.pop())
    }

    /// Blames `key` where `other` stands, from which it was made.
    pub(crate) fn stands_for(&mut self, key: &str, other: &str) {
        let mut lines = self.lines.borrow_mut();
        if let Some(line) = lines.get(&join(&self.place, other)).copied() {
            lines.insert(join(&self.place, key), line);
        }
    }

    /// The line of a place.
    pub(crate) fn line(&self, offset: usize) -> usize {
        line_of(self.source, offset)
    }

    /// Where the table stands.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Refuses keys that nobody asked for.
    pub(crate) fn finish(self) -> Result<(), SweepError> {
        for (key, _) in self.table {
            let name = key.get_ref().as_ref();
            if self.known.contains(name) {
                continue;
            }
            let path = self.path(name);
            let misplaced = INSIDE.iter().find(|(_, keys)| path == name && keys.contains(&name));
            let hint = match (misplaced, nearest(name, self.known.iter().copied())) {
                (Some((table, _)), _) => format!("it belongs below {table}"),
                (None, Some(near)) => format!("did you mean {near:?}?"),
                (None, None) => {
                    let known: Vec<&str> = self.known.iter().copied().collect();
                    format!("known are {}", known.join(", "))
                }
            };
            let message = format!("unknown key {path:?}; {hint}");
            return Err(self.error(key.span().start, message));
        }
        Ok(())
    }
}

fn join(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// The key of a value as complaints call it: which of several tables is told by the line.
pub(crate) fn without_numbers(key: &str) -> String {
    let parts = key.split('.').map(|part| part.split('[').next().unwrap_or(part));
    parts.collect::<Vec<_>>().join(".")
}

/// Reads a value that is written as a word.
pub(crate) fn word<T: Word>(value: &DeValue<'_>) -> Result<T, String> {
    match value {
        DeValue::String(text) => T::read(text),
        _ => Err("write it as a string, in quotes, with its unit if it has one".to_owned()),
    }
}

pub(crate) fn text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        _ => Err("write it as a string, in quotes".to_owned()),
    }
}

pub(crate) fn boolean(value: &DeValue<'_>) -> Result<bool, String> {
    match value {
        DeValue::Boolean(value) => Ok(*value),
        _ => Err("give true or false".to_owned()),
    }
}

/// Reads a whole number within `bounds`.
pub(crate) fn number(bounds: RangeInclusive<u32>) -> impl Fn(&DeValue<'_>) -> Result<u32, String> {
    move |value| {
        let parsed = match value {
            DeValue::Integer(integer) => {
                u32::from_str_radix(integer.as_str(), integer.radix()).ok()
            }
            _ => None,
        };
        parsed.filter(|number| bounds.contains(number)).ok_or_else(|| whole_number(&bounds))
    }
}
