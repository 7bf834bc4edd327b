//! `prio` (tc-prio(8)). tc's `multiqueue` is gone from it.

use std::fmt;

use super::about::{ABOUT, BANDS, PRIOMAP};
use super::{DEFAULT_MAP, Options};
use crate::about::About;
use crate::grammar::words::Words;
use crate::grammar::{ParseError, RefusedBy, unknown_option, write_option};
use crate::kinds::Grammar;
use crate::kinds::bands::MOST;

impl Grammar for Options {
    const NAME: &'static str = "prio";
    const ABOUT: &'static About = &ABOUT;

    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError> {
        let start = words.position();
        let mut bands: Option<i32> = None;
        let mut map = None;
        while let Some(word) = words.next() {
            match word {
                "bands" => bands = Some(words.i32_within(word, i32::MIN..=i32::MAX, BANDS)?),
                "priomap" => map = Some(priomap(words, bands)?),
                unknown => return Err(unknown_option::<Self>(unknown, words)),
            }
        }
        let fits = |bands: &i32| (2..=MOST as i32).contains(bands);
        let known = bands.is_none_or(|bands| fits(&bands));
        let options = Self { bands: bands.filter(fits).map(|bands| bands as u8), priomap: map };
        if !known || options.priomap().iter().any(|band| *band >= options.bands()) {
            let message =
                format!("the kernel refuses these bands, as each priority has one: {BANDS}");
            return Err(words.refuse_at(start, RefusedBy::Kernel, message));
        }
        Ok(options)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_option(f, "bands", self.bands)?;
        let list = |map: [u8; 16]| map.map(|band| band.to_string()).join(" ");
        write_option(f, "priomap", self.priomap.map(list))
    }
}

/// The bands that follow, up to what is no number; tc knows how many there are only if that was said before.
fn priomap(words: &mut Words<'_>, bands: Option<i32>) -> Result<[u8; 16], ParseError> {
    let mut map = DEFAULT_MAP;
    let mut given = 0;
    while words.peek().is_some_and(|word| word != "bands") {
        let band = words.i32_within("band", i32::MIN..=i32::MAX, PRIOMAP)?;
        let is_there = (0..bands.unwrap_or(3)).contains(&band);
        let (Some(place), true) = (map.get_mut(given), is_there) else {
            return Err(words.refuse(RefusedBy::Tc, format!("no band of a priority: {PRIOMAP}")));
        };
        *place = band as u8;
        given += 1;
    }
    Ok(map)
}
