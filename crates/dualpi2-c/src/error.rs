//! What can be wrong with an argument.

use std::ffi::{c_char, c_int};

/// What is wrong with an argument; `dualpi2_error_text` says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Error {
    /// All is well.
    Ok = 0,
    /// A pointer is null that must not be.
    NullPointer,
    /// `mtu` is 0.
    Mtu,
    /// `limit` is 0.
    Limit,
    /// `tupdate_us` is 0.
    Tupdate,
    /// `alpha_256ths` is 0 or above 2147483647.
    Alpha,
    /// `beta_256ths` is 0 or above 2147483647.
    Beta,
    /// `coupling_factor` is 0.
    CouplingFactor,
    /// `classic_protection` is above 100.
    ClassicProtection,
    /// Another parameter is out of its bounds.
    Parameter,
    /// `fields` has a bit that stands for no field.
    Fields,
    /// `kind` of the random source is unknown.
    RandomKind,
    /// The seed of xorshift64 is 0.
    RandomSeed,
    /// The random source is a callback, but none is given.
    RandomCallback,
}

impl From<dualpi2::ConfigError> for Error {
    fn from(error: dualpi2::ConfigError) -> Self {
        match error {
            dualpi2::ConfigError::Limit => Self::Limit,
            dualpi2::ConfigError::Tupdate => Self::Tupdate,
            dualpi2::ConfigError::Alpha => Self::Alpha,
            dualpi2::ConfigError::Beta => Self::Beta,
            dualpi2::ConfigError::CouplingFactor => Self::CouplingFactor,
            dualpi2::ConfigError::ClassicProtection => Self::ClassicProtection,
            // The bounds of the others hold for every number of microseconds, packets or bytes that C can give.
            _ => Self::Parameter,
        }
    }
}

/// What an `enum dualpi2_error` means, in English; never null, and never to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn dualpi2_error_text(error: c_int) -> *const c_char {
    const TEXTS: [(Error, &std::ffi::CStr); 14] = [
        (Error::Ok, c"no error"),
        (Error::NullPointer, c"a pointer is null that must not be"),
        (Error::Mtu, c"mtu must be 1 byte or more"),
        (Error::Limit, c"limit must be 1 packet or more"),
        (Error::Tupdate, c"tupdate_us must be 1 us or more"),
        (Error::Alpha, c"alpha_256ths must be 1 to 2147483647"),
        (Error::Beta, c"beta_256ths must be 1 to 2147483647"),
        (Error::CouplingFactor, c"coupling_factor must be 1 to 255"),
        (Error::ClassicProtection, c"classic_protection must be 0 to 100 percent"),
        (Error::Parameter, c"a parameter is out of its bounds"),
        (Error::Fields, c"fields has a bit that is none of DUALPI2_CHANGE_*"),
        (Error::RandomKind, c"the random source's kind is none of DUALPI2_RANDOM_KIND_*"),
        (Error::RandomSeed, c"the seed of xorshift64 must not be 0"),
        (Error::RandomCallback, c"the random source is a callback, but next is null"),
    ];
    TEXTS
        .iter()
        .find(|(known, _)| *known as c_int == error)
        .map_or(c"unknown error", |(_, text)| text)
        .as_ptr()
}
