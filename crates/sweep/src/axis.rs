//! What varies: a key of the scenario file, and the values that it has.

use std::collections::HashSet;

use crate::range::Range;

/// A key with its values: `link.rate=10mbit,50mbit`, `link.rtt=5ms..200ms:log`, `link.qdisc=dualpi2 target {1ms..50ms}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    key: String,
    /// The words around the values; one more than there are values.
    around: Vec<String>,
    choices: Vec<Choice>,
}

/// One thing that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// What it is called: the key, or the word before it.
    pub(crate) name: String,
    pub(crate) values: Values,
}

/// What can be chosen from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    List(Vec<String>),
    Range(Range),
}

/// What is wrong with an axis or a space.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AxisError(pub String);

impl Values {
    /// How many there are, of a list.
    pub(crate) fn count(&self) -> Option<usize> {
        match self {
            Self::List(values) => Some(values.len()),
            Self::Range(_) => None,
        }
    }

    /// The value that is so far from the first to the last, from 0 to 1.
    pub(crate) fn at(&self, share: f64) -> String {
        match self {
            Self::List(values) => {
                let number = (share * values.len() as f64) as usize;
                values[number.min(values.len() - 1)].clone()
            }
            Self::Range(range) => range.at(share),
        }
    }

    /// The value with this number, of a list.
    pub(crate) fn numbered(&self, number: usize) -> String {
        match self {
            Self::List(values) => values[number].clone(),
            Self::Range(range) => range.at(0.0),
        }
    }

    /// The first value of a list that was there before: nothing would tell its scenarios from those.
    pub(crate) fn again(&self) -> Option<&str> {
        let Self::List(values) = self else { return None };
        let mut there = HashSet::new();
        values.iter().map(String::as_str).find(|value| !there.insert(*value))
    }

    /// Whether they are one beside the other, with nothing between: a list, or whole numbers.
    pub(crate) fn are_single(&self) -> bool {
        match self {
            Self::List(_) => true,
            Self::Range(range) => range.is_of_whole_numbers(),
        }
    }

    pub(crate) fn is_fixed(&self) -> bool {
        self.count() == Some(1)
    }

    fn read(words: &str) -> Result<Self, String> {
        if let Some(range) = Range::read(words.trim()) {
            return Ok(Self::Range(range?));
        }
        let values: Vec<String> =
            split(words).into_iter().map(|value| value.trim().to_owned()).collect();
        match values.iter().any(String::is_empty) {
            true => Err(format!("{words:?}: one of the values is empty")),
            false => Ok(Self::List(values)),
        }
    }
}

/// Splits at commas that are neither in quotes nor in brackets, where they are TOML's.
fn split(words: &str) -> Vec<&str> {
    let (mut parts, mut begins, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, letter) in words.char_indices() {
        match (letter, quote) {
            (_, Some(mark)) if letter == mark => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            ('[', None) => depth += 1,
            (']', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                parts.push(&words[begins..at]);
                begins = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&words[begins..]);
    parts
}

impl Axis {
    /// Reads `KEY=VALUES`. Values are a list with commas or a range `LEAST..MOST`; in braces they are a part of a value.
    ///
    /// # Errors
    /// What is wrong with it; whether the key and the values make sense says the scenario's reader later.
    pub fn parse(word: &str) -> Result<Self, AxisError> {
        let wrong = |what: String| AxisError(format!("{word}: {what}"));
        let (key, values) = word
            .split_once('=')
            .ok_or_else(|| wrong("give KEY=VALUES, such as link.rate=10mbit,50mbit".to_owned()))?;
        let (key, values) = (key.trim().to_owned(), values.trim());
        if !values.contains(['{', '}']) {
            let values = Values::read(values).map_err(wrong)?;
            let (around, name) = (vec![String::new(); 2], key.clone());
            return Ok(Self { key, around, choices: vec![Choice { name, values }] });
        }
        let unbalanced = || wrong("each { needs a } behind it".to_owned());
        let (mut around, mut choices) = (Vec::new(), Vec::<Choice>::new());
        let mut rest = values;
        while let Some((before, behind)) = rest.split_once('{') {
            let (inside, behind) = behind.split_once('}').ok_or_else(unbalanced)?;
            if inside.contains('{') || before.contains('}') {
                return Err(unbalanced());
            }
            let near = before.split_whitespace().last().map_or(key.as_str(), |near| near);
            let values = Values::read(inside).map_err(wrong)?;
            choices.push(Choice { name: near.to_owned(), values });
            around.push(before.to_owned());
            rest = behind;
        }
        if rest.contains('}') {
            return Err(unbalanced());
        }
        around.push(rest.to_owned());
        if around.iter().any(|words| words.contains(',')) {
            let what =
                "a comma outside of the braces; put all that is to be chosen from into one pair";
            return Err(wrong(what.to_owned()));
        }
        Ok(Self { key, around, choices })
    }

    /// The key of the scenario file.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// What stands right behind each choice, such as the unit of `{10..50}mbit`.
    pub(crate) fn units(&self) -> impl Iterator<Item = &str> {
        self.around[1..].iter().map(|behind| {
            behind.split_once(char::is_whitespace).map_or(behind.as_str(), |(unit, _)| unit)
        })
    }

    /// The whole value, with these in the places of the choices.
    pub(crate) fn value(&self, chosen: &[String]) -> String {
        let mut value = self.around[0].clone();
        for (chosen, behind) in chosen.iter().zip(&self.around[1..]) {
            value += chosen;
            value += behind;
        }
        value
    }
}

impl std::str::FromStr for Axis {
    type Err = AxisError;

    fn from_str(word: &str) -> Result<Self, AxisError> {
        Self::parse(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(word: &str) -> Vec<(String, Vec<String>)> {
        let axis = Axis::parse(word).unwrap();
        let list = |choice: &Choice| match &choice.values {
            Values::List(values) => (choice.name.clone(), values.clone()),
            Values::Range(range) => (choice.name.clone(), vec![range.at(0.0), range.at(1.0)]),
        };
        axis.choices.iter().map(list).collect()
    }

    fn named(name: &str, values: &[&str]) -> (String, Vec<String>) {
        (name.to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
    }

    #[test]
    fn values_stand_alone_or_in_words() {
        assert_eq!(lists("link.rate=10mbit, 50mbit"), [named("link.rate", &["10mbit", "50mbit"])]);
        assert_eq!(lists("link.rtt=5ms..50ms"), [named("link.rtt", &["5ms", "50ms"])]);
        assert_eq!(
            lists("link.mtu=[1400, 1500],'a,b',9"),
            [named("link.mtu", &["[1400, 1500]", "'a,b'", "9"])]
        );
        let word = "link.qdisc=dualpi2 target {1ms..50ms} {classic_ecn,l4s_ect} limit {100,200}";
        let expected = [
            named("target", &["1ms", "50ms"]),
            named("target", &["classic_ecn", "l4s_ect"]),
            named("limit", &["100", "200"]),
        ];
        assert_eq!(lists(word).len(), 3);
        assert_eq!(lists(word)[0], expected[0]);
        assert_eq!(lists(word)[2], expected[2]);
        let units =
            |word: &str| Axis::parse(word).unwrap().units().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(units(word), ["", "", ""]);
        assert_eq!(units("link.qdisc=htb rate {10..50}mbit leaf pie"), ["mbit"]);
        let chosen = ["5ms", "l4s_ect", "100"].map(str::to_owned);
        let value = Axis::parse(word).unwrap().value(&chosen);
        assert_eq!(value, "dualpi2 target 5ms l4s_ect limit 100");
    }

    #[test]
    fn what_is_wrong_is_told_with_the_word() {
        for word in
            ["link.rate", "a=x{1,2", "a=x}1{", "a={{1}}", "a=fq,x {1,2}", "a=1,,2", "a=", "a=9..1"]
        {
            let error = Axis::parse(word).unwrap_err().to_string();
            assert!(error.starts_with(word), "{error}");
        }
    }
}
