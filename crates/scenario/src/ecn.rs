//! What connections ask for of explicit congestion notification, and what is granted.

use dualq_tcp::EcnStyle;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::de::DeValue;

use crate::words::known;

/// Which ECN is asked for, or granted at most: `false`, `true` or a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnRequest {
    /// None: `false` or `off`.
    #[default]
    Off,
    /// As RFC 3168: `true` or `classic`.
    Classic,
    /// Accurate ECN (RFC 9768): `accurate`.
    Accurate,
}

impl EcnRequest {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Off, Self::Classic, Self::Accurate];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Classic => "classic",
            Self::Accurate => "accurate",
        }
    }

    /// Whether any is asked for.
    #[must_use]
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// The style of a connection that gets what it asks for.
    #[must_use]
    pub const fn style(self) -> EcnStyle {
        match self {
            Self::Off => EcnStyle::Off,
            Self::Classic => EcnStyle::Classic,
            Self::Accurate => EcnStyle::Accurate,
        }
    }

    /// As it is written in TOML, and shown: what there was before Accurate ECN is true or false.
    #[must_use]
    pub const fn text(&self) -> &'static str {
        match self {
            Self::Off => "false",
            Self::Classic => "true",
            Self::Accurate => "accurate",
        }
    }

    fn from_word(word: &str) -> Result<Self, String> {
        known("ECN", word, &Self::ALL, Self::name)
    }

    pub(crate) fn read(value: &DeValue<'_>) -> Result<Self, String> {
        match value {
            DeValue::Boolean(on) => Ok((*on).into()),
            DeValue::String(word) => Self::from_word(word),
            _ => Err("give true, false or \"accurate\"".to_owned()),
        }
    }
}

impl From<bool> for EcnRequest {
    fn from(on: bool) -> Self {
        if on { Self::Classic } else { Self::Off }
    }
}

impl Serialize for EcnRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Accurate => serializer.serialize_str(self.name()),
            _ => serializer.serialize_bool(self.is_on()),
        }
    }
}

impl<'de> Deserialize<'de> for EcnRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            On(bool),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::On(on) => Ok(on.into()),
            Written::Word(word) => Self::from_word(&word).map_err(de::Error::custom),
        }
    }
}
