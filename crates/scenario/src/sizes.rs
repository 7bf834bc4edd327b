//! How large transfers are: all alike, spread over a range, or as somebody measured.

use std::borrow::Cow;
use std::sync::Arc;

use dualq_units::{Bytes, Exact};

use crate::words::Word;

/// How many bytes the transfers of a group have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// All the same.
    Fixed(Bytes),
    /// Between two sizes, their logarithms being equally likely.
    LogUniform(Bytes, Bytes),
    /// As in a distribution that somebody measured.
    Measured(Arc<Distribution>),
}

/// A distribution of sizes that somebody measured: one that is known by name, or of a file of which each line has a size in bytes and the
/// share of transfers that are no larger.
///
/// ```
/// use dualq_scenario::Distribution;
///
/// let sizes = Distribution::read("1000 0.25 # small ones\n50000 0.9\n1000000 1\n")?;
/// assert_eq!(sizes.points().count(), 3);
/// # Ok::<(), dualq_scenario::SizesError>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Distribution {
    /// Empty if it is of a file.
    name: &'static str,
    /// Sizes in bytes, with the parts that are no larger, of which the last one has all; straight lines between them. There is one at least.
    points: Cow<'static, [(u64, u32)]>,
}

/// What is wrong with a file of sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {wrong}")]
pub struct SizesError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub wrong: SizesFault,
}

/// What may be wrong with a line of a file of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizesFault {
    /// It has no two numbers.
    #[error(
        "a line has a size in bytes and the share of transfers that are no larger, such as 10000 0.25"
    )]
    NoPoint,
    /// A size or a share is smaller than the one before.
    #[error("sizes and shares do not fall from line to line")]
    Falling,
    /// A size is out of bounds.
    #[error("a size is at most 1 TB, and the last one at least a byte")]
    OutOfBounds,
    /// There are too many.
    #[error("there are at most ten thousand lines")]
    TooMany,
    /// The last share does not stand for all.
    #[error("the last line's share is 1, or 100 where shares are percent")]
    NotAll,
}

/// Shares that are read are counted in millionths.
const MILLION: u32 = 1_000_000;
const MOST_POINTS: usize = 10_000;
const MOST_BYTES: u64 = 1 << 40;

/// The packets that these distributions are counted in.
const PACKET: u64 = 1460;

/// The distributions that are known by name: sizes in bytes, with the share in thousandths of transfers that are no larger.
const KNOWN: [(&str, &[(u64, u32)]); 2] = [
    // The flows of a cluster that answers web searches: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, figure 4, in the
    // points that simulations of "pFabric" (SIGCOMM 2013) made of it.
    (
        "web-search",
        &[
            (PACKET, 0),
            (6 * PACKET, 150),
            (13 * PACKET, 200),
            (19 * PACKET, 300),
            (33 * PACKET, 400),
            (53 * PACKET, 530),
            (133 * PACKET, 600),
            (667 * PACKET, 700),
            (1_333 * PACKET, 800),
            (3_333 * PACKET, 900),
            (6_667 * PACKET, 970),
            (20_000 * PACKET, 1000),
        ],
    ),
    // The flows of a cluster that mines data: Greenberg et al., "VL2", SIGCOMM 2009, figure 2, in the points of the same simulations.
    (
        "data-mining",
        &[
            (PACKET, 500),
            (2 * PACKET, 600),
            (3 * PACKET, 700),
            (7 * PACKET, 800),
            (267 * PACKET, 900),
            (2_107 * PACKET, 950),
            (66_667 * PACKET, 990),
            (666_667 * PACKET, 1000),
        ],
    ),
];

fn in_millionths(share: f64) -> u32 {
    (share * f64::from(MILLION)).round() as u32
}

impl Distribution {
    /// Reads the text of a file. A line may have something between its size and its share, as those of ns-2 do; what follows a `#` is no
    /// part of it.
    ///
    /// # Errors
    /// If a line has no size or no share, they fall, or the last share is neither 1 nor 100.
    pub fn read(text: &str) -> Result<Self, SizesError> {
        let mut points = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default();
            let mut words = text.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty());
            let Some(first) = words.next() else { continue };
            let read = |word: &str| word.parse().ok().filter(|number: &f64| *number >= 0.0);
            let (Some(bytes), Some(share)) = (read(first), words.next_back().and_then(read)) else {
                return Err(SizesError { line, wrong: SizesFault::NoPoint });
            };
            points.push((line, bytes, share));
        }
        let all = points.last().map_or(0.0, |point| point.2);
        let (last, wrong) = (points.last().map_or(1, |point| point.0), SizesFault::NotAll);
        if !matches!(in_millionths(all), 1_000_000 | 100_000_000) {
            return Err(SizesError { line: last, wrong });
        }
        Self::of(points.into_iter().map(|(line, bytes, share)| (line, bytes, share / all)))
    }

    /// One of points that were read: their lines, sizes and shares, of which the last is one.
    fn of(points: impl Iterator<Item = (usize, f64, f64)>) -> Result<Self, SizesError> {
        let mut known: Vec<(u64, u32)> = Vec::new();
        let mut last = 0;
        for (line, bytes, share) in points {
            let fault = |wrong| Err(SizesError { line, wrong });
            if bytes > MOST_BYTES as f64 {
                return fault(SizesFault::OutOfBounds);
            }
            let point = (bytes.round() as u64, in_millionths(share));
            if known.last().is_some_and(|before| point.0 < before.0 || point.1 < before.1) {
                return fault(SizesFault::Falling);
            }
            if known.len() == MOST_POINTS {
                return fault(SizesFault::TooMany);
            }
            known.push(point);
            last = line;
        }
        if known.last().is_none_or(|point| point.0 == 0) {
            return Err(SizesError { line: last, wrong: SizesFault::OutOfBounds });
        }
        Ok(Self { name: "", points: known.into() })
    }

    /// Its sizes, each with the share of transfers that are no larger.
    pub fn points(&self) -> impl Iterator<Item = (Bytes, f64)> {
        let whole = self.whole();
        self.points.iter().map(move |(bytes, part)| (Bytes(*bytes), f64::from(*part) / whole))
    }

    fn whole(&self) -> f64 {
        f64::from(self.points[self.points.len() - 1].1)
    }

    /// The size below which a share of all transfers is, given in units of 2⁻⁶⁴.
    fn quantile(&self, share: u64) -> Bytes {
        let part = share as f64 / 2_f64.powi(64) * self.whole();
        let mut before = self.points[0];
        for point in self.points.iter() {
            if part <= f64::from(point.1) {
                let width = f64::from(point.1 - before.1);
                let on_line = if width > 0.0 { (part - f64::from(before.1)) / width } else { 1.0 };
                let bytes = before.0 as f64 + (point.0 - before.0) as f64 * on_line.max(0.0);
                return Bytes((bytes.round() as u64).max(1));
            }
            before = *point;
        }
        Bytes(before.0)
    }

    /// One whose points stand in a word, `1000:0.25 50000:0.9 1000000:1`.
    fn of_word(word: &str) -> Result<Self, String> {
        let mut points = Vec::new();
        for point in word.split_whitespace() {
            let (bytes, share) = point.split_once(':').unwrap_or_default();
            let share: Option<f64> = share.parse().ok();
            let (Ok(Bytes(bytes)), Some(share @ 0.0..=1.0)) = (Bytes::read(bytes), share) else {
                return Err(format!("{point:?} is no size and share; give such as 10kb:0.25"));
            };
            points.push((0, bytes as f64, share));
        }
        if points.last().is_none_or(|point| in_millionths(point.2) != MILLION) {
            return Err("the last share is 1".to_owned());
        }
        Self::of(points.into_iter()).map_err(|error| error.wrong.to_string())
    }
}

impl Size {
    /// The size of a transfer, drawn by a number each of which is equally likely.
    pub(crate) fn draw(&self, random: u64) -> Bytes {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::LogUniform(Bytes(least), Bytes(most)) => {
                let part = random as f64 / 2_f64.powi(64);
                let bytes = *least as f64 * libm::pow(*most as f64 / *least as f64, part);
                Bytes((bytes.round() as u64).clamp(*least, *most))
            }
            Self::Measured(distribution) => distribution.quantile(random),
        }
    }

    /// Whether all transfers are equally large.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }
}

impl From<Bytes> for Size {
    fn from(bytes: Bytes) -> Self {
        Self::Fixed(bytes)
    }
}

impl From<Distribution> for Size {
    fn from(distribution: Distribution) -> Self {
        Self::Measured(Arc::new(distribution))
    }
}

impl Word for Size {
    fn read(word: &str) -> Result<Self, String> {
        if let Some((name, points)) = KNOWN.iter().find(|(name, _)| *name == word) {
            return Ok(Distribution { name, points: Cow::Borrowed(points) }.into());
        }
        if word.contains(':') {
            return Distribution::of_word(word).map(Self::from);
        }
        let names = KNOWN.map(|(name, _)| name).join(" or ");
        let read = |word: &str| {
            Bytes::read(word.trim())
                .map_err(|error| format!("{error}, a range such as 10kb..2mb, or {names}"))
        };
        let Some((least, most)) = word.split_once("..") else { return read(word).map(Self::Fixed) };
        let (least, most) = (read(least)?, read(most)?);
        if least >= most {
            let (least, most) = (Exact(least), Exact(most));
            return Err(format!("{least} is not less than {most}"));
        }
        Ok(Self::LogUniform(least, most))
    }

    fn write(&self) -> String {
        match self {
            Self::Fixed(bytes) => bytes.write(),
            Self::LogUniform(least, most) => format!("{}..{}", least.write(), most.write()),
            Self::Measured(distribution) if distribution.name.is_empty() => {
                let point = |(bytes, share): (Bytes, f64)| format!("{}:{share}", bytes.write());
                distribution.points().map(point).collect::<Vec<_>>().join(" ")
            }
            Self::Measured(distribution) => distribution.name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_they_are_read() {
        for word in
            ["10Kb", "1Kb..2Mb", "web-search", "data-mining", "0b:0 10Kb:0.123457 1Mb:0.5 5Mb:1"]
        {
            assert_eq!(Size::read(word).unwrap().write(), word);
        }
        assert_eq!(Size::read("2mb..1mb").unwrap_err(), "2Mb is not less than 1Mb");
        assert!(Size::read("web").unwrap_err().ends_with("or web-search or data-mining"));
        for (word, wrong) in [
            ("1kb:0.5 2kb", "\"2kb\" is no size and share; give such as 10kb:0.25"),
            ("1kb:0.5 2kb:0.9", "the last share is 1"),
            ("2kb:0.5 1kb:1", "sizes and shares do not fall from line to line"),
        ] {
            assert_eq!(Size::read(word).unwrap_err(), wrong);
        }
    }

    #[test]
    fn files_are_read_in_the_forms_that_are_about() {
        // Fractions, percent, and ns-2's with a column between.
        let forms = [
            "0 0\n1000 0.5\n3000 1\n",
            "0,0\n1000,50\n3000,100\n",
            "0 1 0\n1000 1 .5 # half\n\n3e3 1 1",
        ];
        for text in forms {
            let distribution = Distribution::read(text).unwrap();
            assert_eq!(Size::from(distribution).write(), "0b:0 1000b:0.5 3000b:1", "{text}");
        }
        for (text, line, wrong) in [
            ("", 1, SizesFault::NotAll),
            ("1000 0.5\n2000 0.9\n", 2, SizesFault::NotAll),
            ("1000 0.5\n\n900 1\n", 3, SizesFault::Falling),
            ("1000 1.5\n2000 1\n", 2, SizesFault::Falling),
            ("1000\n", 1, SizesFault::NoPoint),
            ("1000 0.5\n-1 1", 2, SizesFault::NoPoint),
            ("nan 1", 1, SizesFault::NoPoint),
            ("0 1\n", 1, SizesFault::OutOfBounds),
            ("1e30 1\n", 1, SizesFault::OutOfBounds),
        ] {
            assert_eq!(Distribution::read(text), Err(SizesError { line, wrong }), "{text}");
        }
        let many = "1000 1\n".repeat(MOST_POINTS + 1);
        let wrong = SizesFault::TooMany;
        assert_eq!(Distribution::read(&many), Err(SizesError { line: MOST_POINTS + 1, wrong }));
    }

    #[test]
    fn a_transfer_has_a_byte_at_least() {
        let size = Size::read("0b:0 10b:1").unwrap();
        assert_eq!([0, u64::MAX / 2, u64::MAX].map(|random| size.draw(random).0), [1, 5, 10]);
    }
}
