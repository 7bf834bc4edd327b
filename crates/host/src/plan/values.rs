//! Values of a change that are read once, where the plan is.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of the network: an address, and how many bits of it count. Never all of it, for a plan adds routes and replaces none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    address: IpAddr,
    length: u8,
}

impl Destination {
    /// One host.
    #[must_use]
    pub const fn host(address: IpAddr) -> Self {
        Self { address, length: most_bits(address) }
    }

    /// The address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits of it count.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Whether others of its bits are set too.
    fn has_more_bits(&self) -> bool {
        let beyond = u32::from(most_bits(self.address) - self.length);
        match self.address {
            IpAddr::V4(address) => address.to_bits().trailing_zeros() < beyond,
            IpAddr::V6(address) => address.to_bits().trailing_zeros() < beyond,
        }
    }
}

const fn most_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl FromStr for Destination {
    type Err = String;

    /// Reads `192.0.2.0/24`.
    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (address, length) = text.split_once('/')?;
            let address: IpAddr = address.parse().ok()?;
            let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            let length: u8 = digits.then_some(length)?.parse().ok()?;
            (length <= most_bits(address)).then_some(Self { address, length })
        };
        match parse() {
            None => Err(format!(
                "{text:?} is no destination: an address and its prefix length, 192.0.2.1/32"
            )),
            Some(Self { length: 0, .. }) => {
                Err(format!("{text:?} is everybody: name a part of the network, 192.0.2.1/32"))
            }
            Some(destination) if destination.has_more_bits() => Err(format!(
                "{text:?} has bits beyond its prefix length, which no route has: 192.0.2.0/24"
            )),
            Some(destination) => Ok(destination),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A class of a queue discipline, as tc writes it, in hexadecimal: `1:10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClassId {
    major: u16,
    minor: u16,
}

impl ClassId {
    /// The number of the discipline that it is of.
    #[must_use]
    pub const fn major(self) -> u16 {
        self.major
    }

    /// Its number there.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.minor
    }
}

impl FromStr for ClassId {
    type Err = String;

    /// Reads `1:10`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| {
            let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            u16::from_str_radix(digits, 16).ok().filter(|number| plain && *number > 0)
        };
        let (major, minor) = text.split_once(':').unwrap_or((text, "?"));
        match (number(major), number(minor)) {
            // As the kernel's words for places have it, it would be the root, or what arrives.
            (Some(u16::MAX), Some(_)) => Err(format!("{text:?} is no class of a discipline")),
            (Some(major), Some(minor)) => Ok(Self { major, minor }),
            (Some(_), None) if minor.is_empty() => {
                Err(format!("{text:?} is a discipline; one of its classes is 1:10, in hexadecimal"))
            }
            _ => Err(format!("{text:?} is no class as tc names it: 1:10, in hexadecimal")),
        }
    }
}

impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.major, self.minor)
    }
}

impl From<ClassId> for String {
    fn from(class: ClassId) -> Self {
        class.to_string()
    }
}

impl TryFrom<String> for ClassId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A file's permissions: as text in octal, `0644`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(u32);

impl Mode {
    /// Everybody reads, its owner writes.
    pub const READ: Self = Self(0o644);
    /// As [`READ`](Self::READ), and everybody runs it.
    pub const RUN: Self = Self(0o755);

    /// Its bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let octal = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let bits = octal.then(|| u32::from_str_radix(text, 8).ok()).flatten();
        bits.filter(|bits| *bits <= 0o7777)
            .map(Self)
            .ok_or_else(|| format!("{text:?} is no mode of a file: octal digits, 0644"))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

/// Values that documents hold as text.
pub(super) mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(in super::super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(in super::super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_read() {
        let wide: Destination = "2001:db8::/32".parse().unwrap();
        assert_eq!((wide.length(), wide.to_string().as_str()), (32, "2001:db8::/32"));
        let host = Destination::host("192.0.2.1".parse().unwrap());
        assert_eq!(host.to_string(), "192.0.2.1/32");
        for wrong in ["192.0.2.1", "192.0.2.1/33", "192.0.2.1/+1", "::/129", "a/8", "1.2.3.4/", ""]
        {
            let message = wrong.parse::<Destination>().unwrap_err();
            assert!(message.contains("is no destination"), "{message}");
        }
        assert!("0.0.0.0/0".parse::<Destination>().unwrap_err().contains("everybody"));
    }

    #[test]
    fn classes_are_read() {
        for (text, shown) in [("1:10", "1:10"), ("FF:a", "ff:a"), ("8001:0001", "8001:1")] {
            assert_eq!(text.parse::<ClassId>().unwrap().to_string(), shown);
        }
        for (wrong, why) in [
            ("1:", "is a discipline"),
            ("10", "no class as tc"),
            ("", "no class as tc"),
            (":10", "no class as tc"),
            ("1:0", "no class as tc"),
            ("1:+1", "no class as tc"),
            ("1:10000", "no class as tc"),
            ("1:1:1", "no class as tc"),
            ("root", "no class as tc"),
            ("ffff:fff1", "no class of"),
        ] {
            let message = wrong.parse::<ClassId>().unwrap_err();
            assert!(message.contains(why), "{message}");
        }
    }

    #[test]
    fn modes_are_read() {
        assert_eq!("0644".parse(), Ok(Mode::READ));
        assert_eq!("755".parse(), Ok(Mode::RUN));
        assert_eq!(Mode::READ.to_string(), "0644");
        for wrong in ["", "0688", "+644", "17777", "rw-r--r--"] {
            assert!(wrong.parse::<Mode>().is_err(), "{wrong}");
        }
    }
}
