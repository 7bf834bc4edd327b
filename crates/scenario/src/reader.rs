//! TOML, read with an eye on what was meant: unknown keys are refused with the nearest right one, and every complaint names
//! its line.

use std::collections::BTreeSet;
use std::fmt::Display;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct PlanError {
    /// The line, from 1; none if the fault is not in a file.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl PlanError {
    pub(crate) fn outside(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }
}

/// A value with the place where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) offset: usize,
}

/// A table that knows its name and which of its keys were asked for.
pub(crate) struct Table<'a, 'i> {
    source: &'i str,
    name: String,
    offset: usize,
    table: &'a DeTable<'i>,
    known: BTreeSet<&'static str>,
}

pub(crate) fn line_of(source: &str, offset: usize) -> usize {
    1 + source.as_bytes()[..offset.min(source.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// Parses a whole file.
pub(crate) fn parse(source: &str) -> Result<Spanned<DeTable<'_>>, PlanError> {
    DeTable::parse(source).map_err(|error| PlanError {
        line: error.span().map(|span| line_of(source, span.start)),
        message: error.message().to_owned(),
    })
}

impl<'a, 'i> Table<'a, 'i> {
    pub(crate) fn top(source: &'i str, table: &'a DeTable<'i>) -> Self {
        Self { source, name: String::new(), offset: 0, table, known: BTreeSet::new() }
    }

    pub(crate) fn error(&self, offset: usize, message: impl Display) -> PlanError {
        PlanError { line: Some(line_of(self.source, offset)), message: message.to_string() }
    }

    /// The key as it is called in complaints: `link.rate`.
    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'i>>> {
        self.known.insert(key);
        self.table.get(key)
    }

    /// A table inside this one.
    pub(crate) fn table(&mut self, key: &'static str) -> Result<Option<Table<'a, 'i>>, PlanError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let offset = value.span().start;
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.error(offset, format!("{} must be a table, [{key}]", self.path(key))));
        };
        let name = self.path(key);
        Ok(Some(Table { source: self.source, name, offset, table, known: BTreeSet::new() }))
    }

    /// The tables of an array, `[[key]]`.
    pub(crate) fn tables(&mut self, key: &'static str) -> Result<Vec<Table<'a, 'i>>, PlanError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let wrong = |this: &Self, offset| {
            Err(this.error(offset, format!("{key} must be an array of tables, [[{key}]]")))
        };
        let DeValue::Array(entries) = value.get_ref() else {
            return wrong(self, value.span().start);
        };
        let mut tables = Vec::new();
        for entry in entries {
            let offset = entry.span().start;
            let DeValue::Table(table) = entry.get_ref() else { return wrong(self, offset) };
            let name = self.path(key);
            let known = BTreeSet::new();
            tables.push(Table { source: self.source, name, offset, table, known });
        }
        Ok(tables)
    }

    /// A value, or a list of them to compare; empty if the key is not there.
    pub(crate) fn list<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&DeValue<'i>) -> Result<T, String>,
    ) -> Result<Vec<Placed<T>>, PlanError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
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
        entries.iter().map(read).collect()
    }

    /// A value that cannot be compared.
    pub(crate) fn one<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&DeValue<'i>) -> Result<T, String>,
    ) -> Result<Option<Placed<T>>, PlanError> {
        let mut values = self.list(key, read)?;
        if let Some(second) = values.get(1) {
            let message = format!("{} takes one value; it cannot be compared", self.path(key));
            return Err(self.error(second.offset, message));
        }
        Ok(values.pop())
    }

    /// Where the table stands.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Refuses keys that nobody asked for.
    pub(crate) fn finish(self) -> Result<(), PlanError> {
        for (key, _) in self.table {
            let name = key.get_ref().as_ref();
            if self.known.contains(name) {
                continue;
            }
            let near = nearest(name, self.known.iter().copied());
            let hint = near.map_or_else(
                || {
                    format!(
                        "known are {}",
                        self.known.iter().copied().collect::<Vec<_>>().join(", ")
                    )
                },
                |near| format!("did you mean {near:?}?"),
            );
            let message = format!("unknown key {:?}; {hint}", self.path(name));
            return Err(self.error(key.span().start, message));
        }
        Ok(())
    }
}

/// The known word that an unknown one was probably meant to be.
pub(crate) fn nearest<'w>(unknown: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    known
        .map(|word| (strsim::damerau_levenshtein(unknown, word), word))
        .filter(|(distance, word)| *distance <= 1 + word.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Reads a string with `parse`.
pub(crate) fn text<T>(
    parse: impl Fn(&str) -> Result<T, String>,
) -> impl Fn(&DeValue<'_>) -> Result<T, String> {
    move |value| match value {
        DeValue::String(text) => parse(text),
        _ => Err("write it as a string, in quotes".to_owned()),
    }
}

pub(crate) fn boolean(value: &DeValue<'_>) -> Result<bool, String> {
    match value {
        DeValue::Boolean(value) => Ok(*value),
        _ => Err("give true or false".to_owned()),
    }
}

/// Reads a whole number between `least` and `most`.
pub(crate) fn number(least: u32, most: u32) -> impl Fn(&DeValue<'_>) -> Result<u32, String> {
    move |value| {
        let wrong = || format!("give a whole number from {least} to {most}");
        let DeValue::Integer(integer) = value else { return Err(wrong()) };
        let parsed = u32::from_str_radix(integer.as_str(), integer.radix());
        parsed.ok().filter(|number| (least..=most).contains(number)).ok_or_else(wrong)
    }
}
