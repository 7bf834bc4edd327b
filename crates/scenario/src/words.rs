//! How the values of a scenario are written: as words, the same in TOML, in JSON and on the command line.

use std::borrow::Cow;
use std::time::Duration;

use dualq_qdisc::QdiscLine;
use dualq_units::{Bytes, Exact, Rate, tc_time};

/// A value that is written as a word, and read back from it as what it was.
pub(crate) trait Word: Sized {
    /// Reads it. An error says what is wrong with the word, and what would be right.
    fn read(word: &str) -> Result<Self, String>;

    /// Writes it without rounding.
    fn write(&self) -> String;
}

impl Word for Duration {
    fn read(word: &str) -> Result<Self, String> {
        tc_time::parse_span(word).map_err(|error| error.to_string())
    }

    fn write(&self) -> String {
        Exact(*self).to_string()
    }
}

impl Word for Rate {
    fn read(word: &str) -> Result<Self, String> {
        word.parse().map_err(|error| format!("{error}"))
    }

    fn write(&self) -> String {
        Exact(*self).to_string()
    }
}

impl Word for Bytes {
    fn read(word: &str) -> Result<Self, String> {
        word.parse().map_err(|error| format!("{error}"))
    }

    fn write(&self) -> String {
        Exact(*self).to_string()
    }
}

impl Word for QdiscLine {
    fn read(word: &str) -> Result<Self, String> {
        word.parse().map_err(|error| format!("{error}"))
    }

    fn write(&self) -> String {
        self.text().to_owned()
    }
}

/// Makes a word of an enum with a list of `ALL` of its values and a `name` of each; `$what` is what it is called where it is unknown.
macro_rules! named {
    ($type:ty, $what:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                $crate::words::known($what, name, &Self::ALL, Self::name)
            }
        }

        impl $crate::words::Word for $type {
            fn read(word: &str) -> Result<Self, String> {
                word.parse()
            }

            fn write(&self) -> String {
                self.name().to_owned()
            }
        }
    };
}
pub(crate) use named;

/// The known word that an unknown one was probably meant to be.
pub(crate) fn nearest<'w>(unknown: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let unknown = unknown.to_lowercase();
    known
        .map(|word| (strsim::damerau_levenshtein(&unknown, &word.to_lowercase()), word))
        // Of a word of four letters, two others make another word.
        .filter(|(distance, word)| {
            *distance <= 1 || (*distance <= 1 + word.len() / 4 && distance * 2 < word.len())
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Finds the one of `all` that is called `name`.
pub(crate) fn known<T: Copy>(
    what: &str,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    if let Some(found) = all.iter().find(|one| name_of(**one) == name) {
        return Ok(*found);
    }
    let names: Vec<&str> = all.iter().map(|one| name_of(*one)).collect();
    let near = nearest(name, names.iter().copied());
    let hint = near.map_or(String::new(), |near| format!("did you mean {near:?}? "));
    Err(format!("unknown {what} {name:?}; {hint}known are {}", names.join(", ")))
}

/// A word in serde's terms.
pub(crate) mod word {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::{Cow, Word};

    pub(crate) fn serialize<T: Word, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&value.write())
    }

    pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let word = Cow::<str>::deserialize(deserializer)?;
        T::read(&word).map_err(de::Error::custom)
    }
}

/// A word that may be missing.
pub(crate) mod optional_word {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use super::{Cow, Word};

    pub(crate) fn serialize<T: Word, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.serialize_str(&value.write()),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let word = Option::<Cow<str>>::deserialize(deserializer)?;
        word.map(|word| T::read(&word).map_err(de::Error::custom)).transpose()
    }
}
