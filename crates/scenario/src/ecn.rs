//! What connections ask for of explicit congestion notification, and what is granted.

use dualq_tcp::{EcnOption, EcnStyle};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::de::DeValue;

use crate::reader::number;
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

/// When the option of Accurate ECN is sent, in the kernel's numbers (`tcp_ecn_option`).
pub(crate) mod ecn_option {
    use super::{DeValue, Deserialize, Deserializer, EcnOption, Serializer, de, number};
    use crate::bounds::whole_number;

    /// All of them, each at its number.
    const ALL: [EcnOption; 3] = [EcnOption::Disabled, EcnOption::Minimum, EcnOption::Full];
    const MOST: u32 = ALL.len() as u32 - 1;

    pub(crate) fn read(value: &DeValue<'_>) -> Result<EcnOption, String> {
        number(0..=MOST)(value).map(|number| ALL[number as usize])
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(crate) const fn is_full(option: &EcnOption) -> bool {
        matches!(option, EcnOption::Full)
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(crate) fn serialize<S: Serializer>(
        option: &EcnOption,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let number = ALL.iter().position(|one| one == option).unwrap_or_default();
        serializer.serialize_u8(number as u8)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<EcnOption, D::Error> {
        let number = u32::deserialize(deserializer)?;
        let option = ALL.get(number as usize).copied();
        option.ok_or_else(|| de::Error::custom(whole_number(&(0..=MOST))))
    }
}
