//! Where a queue discipline is.

use std::fmt;

/// The number of a queue discipline (`1:`) or of a class in one (`1:1`), as tc writes it: in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u32);

impl Handle {
    /// The place of a device's own queue discipline.
    pub const ROOT: Self = Self(u32::MAX);
    /// Where packets come in, which is apart from where they go out: the place of `ingress` and `clsact`.
    pub const INGRESS: Self = Self(0xffff_fff1);
    /// No number: the kernel finds one. Disciplines that nobody asked for have it.
    pub const UNSPECIFIED: Self = Self(0);

    /// The queue discipline `major:`.
    #[must_use]
    pub const fn qdisc(major: u16) -> Self {
        Self::class(major, 0)
    }

    /// The class `major:minor`.
    #[must_use]
    pub const fn class(major: u16, minor: u16) -> Self {
        Self((major as u32) << 16 | minor as u32)
    }

    /// As the kernel writes it.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// As the kernel reads it.
    #[must_use]
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// What stands before the colon.
    #[must_use]
    pub const fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// What stands behind the colon.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.0 as u16
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.minor()) {
            (Self::ROOT, _) => f.write_str("root"),
            (_, 0) => write!(f, "{:x}:", self.major()),
            (_, minor) => write!(f, "{:x}:{minor:x}", self.major()),
        }
    }
}

/// Where a queue discipline is, or will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The device's index.
    pub link: u32,
    /// [`Handle::ROOT`], or the class that it is in.
    pub parent: Handle,
    /// Its own number.
    pub handle: Handle,
}

impl Place {
    /// `root handle 1:` of a device.
    #[must_use]
    pub const fn root(link: u32) -> Self {
        Self { link, parent: Handle::ROOT, handle: Handle::qdisc(1) }
    }

    /// The class `1` of the discipline that is here.
    pub(crate) const fn class(&self) -> Handle {
        Handle::class(self.handle.major(), 1)
    }

    /// The place inside the discipline that is here: its class `1`, with the next number; `None` if there is none.
    pub(crate) const fn inside(&self) -> Option<Self> {
        match self.handle.major() {
            0 | u16::MAX => None,
            major => {
                let handle = Handle::qdisc(major + 1);
                Some(Self { link: self.link, parent: self.class(), handle })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_written_as_tc_does() {
        for (handle, text) in [
            (Handle::ROOT, "root"),
            (Handle::UNSPECIFIED, "0:"),
            (Handle::qdisc(0x8001), "8001:"),
            (Handle::class(1, 0x10), "1:10"),
        ] {
            assert_eq!(handle.to_string(), text);
        }
        assert_eq!(Handle::class(1, 2).as_raw(), 0x0001_0002);
    }
}
