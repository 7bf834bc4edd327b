//! Results over the settings that vary: one that is a number is the axis of lines, two are those of a heat map.

use std::collections::BTreeSet;

use dualq_units::{Rate, tc_time};
use serde::Serialize;

/// Fewer values make no line.
const FEWEST_OF_LINE: usize = 3;

/// One of so many cells of a heat map is to have a value.
const LEAST_FILLED: usize = 4;

/// A setting that varies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Setting {
    pub(crate) name: String,
    /// Which of a row's settings it is.
    pub(crate) at: usize,
    /// Numbers ascending, all else in the order in which it was given.
    pub(crate) values: Vec<String>,
}

/// The settings that vary.
fn varied(names: &[String], rows: &[Vec<String>]) -> Vec<Setting> {
    let varied = names.iter().enumerate().filter_map(|(at, name)| {
        let mut values: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for value in rows.iter().map(|row| &row[at]) {
            if seen.insert(value) {
                values.push(value.clone());
            }
        }
        (values.len() > 1).then(|| Setting { name: name.clone(), at, values })
    });
    varied.collect()
}

/// The axes: one for lines, two for a heat map, downwards and across; none where neither tells anything. `rows` have a value for each name.
pub(crate) fn axes(names: &[String], rows: &[Vec<String>]) -> Vec<Setting> {
    let mut varied = varied(names, rows);
    let are_numbers: Vec<bool> =
        varied.iter_mut().map(|one| sort_values(&mut one.values)).collect();
    match (varied.as_mut_slice(), are_numbers.as_slice()) {
        ([one], [true]) if one.values.len() >= FEWEST_OF_LINE => varied,
        // Of samples of ranges a map would be empty all over.
        ([down, across], _)
            if down.values.len() * across.values.len() > LEAST_FILLED * rows.len() =>
        {
            Vec::new()
        }
        ([down, across], _) => {
            // Long words have more room beside rows than above columns.
            let longest =
                |one: &Setting| one.values.iter().map(|value| value.chars().count()).max();
            if longest(across) > longest(down) {
                varied.swap(0, 1);
            }
            varied
        }
        _ => Vec::new(),
    }
}

/// Rows of which two settings vary, and what the others are in all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Panel {
    /// In words; empty where no other setting varies.
    pub(crate) words: String,
    /// The numbers of the rows.
    pub(crate) rows: Vec<usize>,
}

/// Rows in panels, so that in each the two settings vary that have the most values, or all that vary if they are fewer. Samples of ranges, of which
/// hardly two rows have a setting alike, have none.
pub(crate) fn panels(names: &[String], rows: &[Vec<String>]) -> Vec<Panel> {
    let mut others = varied(names, rows);
    // The last of those that are alike stay axes: they change fastest.
    others.sort_by_key(|one| one.values.len());
    others.truncate(others.len().saturating_sub(2));
    others.sort_by_key(|one| one.at);
    let mut panels: Vec<Panel> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let words: Vec<String> =
            others.iter().map(|one| format!("{} {}", one.name, row[one.at])).collect();
        let words = words.join(", ");
        match panels.iter_mut().find(|panel| panel.words == words) {
            Some(panel) => panel.rows.push(number),
            None => panels.push(Panel { words, rows: vec![number] }),
        }
        if panels.len() > rows.len() / 2 + 1 {
            return Vec::new();
        }
    }
    panels
}

/// Sorts values that are numbers, rates, times or percentages, all of one kind; others stay as they are.
/// Says whether they are numbers.
pub fn sort_values(values: &mut [String]) -> bool {
    let Some(numbers) = numbers(values) else { return false };
    let mut numbered: Vec<(f64, String)> =
        numbers.into_iter().zip(values.iter_mut().map(std::mem::take)).collect();
    numbered.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    values.iter_mut().zip(numbered).for_each(|(value, (_, sorted))| *value = sorted);
    true
}

/// Values as numbers, if all are of one kind.
fn numbers(values: &[String]) -> Option<Vec<f64>> {
    let readers: [fn(&str) -> Option<f64>; 4] = [
        |count| count.parse().ok(),
        |percent| percent.strip_suffix('%')?.parse().ok(),
        |rate| Some(rate.parse::<Rate>().ok()?.as_bits_per_second() as f64),
        |time| Some(tc_time::parse_span(time).ok()?.as_secs_f64()),
    ];
    let finite = |number: &f64| number.is_finite();
    readers.iter().find_map(|read| values.iter().map(|value| read(value).filter(finite)).collect())
}

/// Where a value stands between the least and the greatest, from 0 to 1: by its logarithm if `log`.
pub(crate) fn share(value: f64, (least, most): (f64, f64), log: bool) -> f64 {
    let scaled = |value: f64| if log { value.ln() } else { value };
    let (least, most) = (scaled(least), scaled(most));
    if most > least { ((scaled(value) - least) / (most - least)).clamp(0.0, 1.0) } else { 0.0 }
}

/// Whether values are so far apart that only their logarithms tell the small ones apart.
pub(crate) fn is_wide((least, most): (f64, f64)) -> bool {
    least > 0.0 && most / least > 20.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str], rows: &[&[&str]]) -> Vec<(String, String)> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(|row| owned(row)).collect();
        let axes = axes(&owned(names), &rows);
        axes.into_iter().map(|axis| (axis.name, axis.values.join(" "))).collect()
    }

    fn axis(name: &str, values: &str) -> (String, String) {
        (name.to_owned(), values.to_owned())
    }

    #[test]
    fn one_number_is_a_line() {
        let rates = [&["100mbit"][..], &["5mbit"], &["1gbit"], &["5mbit"]];
        assert_eq!(found(&["rate"], &rates), [axis("rate", "5mbit 100mbit 1gbit")]);
        assert_eq!(found(&["rate"], &rates[..2]), []);
        assert_eq!(found(&["qdisc"], &[&["fq"], &["pie"], &["codel"]]), []);
        let times = [&["pie", "20ms"][..], &["pie", "1s"], &["pie", "500us"]];
        assert_eq!(found(&["qdisc", "rtt"], &times), [axis("rtt", "500us 20ms 1s")]);
        // Not all of one kind.
        assert_eq!(found(&["rtt"], &[&["1s"], &["2%"], &["3"]]), []);
        assert_eq!(found(&["flows"], &[&["10"], &["9"], &["nan"]]), []);
    }

    #[test]
    fn two_are_a_map_with_the_longer_words_downwards() {
        let rows = [&["10", "pie"][..], &["2", "pie"], &["10", "fq_codel"], &["2", "fq_codel"]];
        let expected = [axis("qdisc", "pie fq_codel"), axis("flows", "2 10")];
        assert_eq!(found(&["flows", "qdisc"], &rows), expected);
        let three = [&["1", "2", "3"][..], &["4", "5", "6"]];
        assert_eq!(found(&["a", "b", "c"], &three), []);
        assert_eq!(found(&[], &[]), []);
    }

    #[test]
    fn more_than_two_settings_are_panels() {
        let owned = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let mut rows = Vec::new();
        for cc in ["bbr", "cubic"] {
            for rate in ["1mbit", "2mbit", "3mbit"] {
                rows.extend(["fq", "pie"].map(|qdisc| owned(&[cc, rate, qdisc])));
            }
        }
        let found = panels(&owned(&["cc", "rate", "qdisc"]), &rows);
        let expected = [("cc bbr", 0..6), ("cc cubic", 6..12)];
        let expected =
            expected.map(|(words, rows)| Panel { words: words.to_owned(), rows: rows.collect() });
        assert_eq!(found, expected);
        // Two are one panel, whatever they are; and samples have none.
        let two: Vec<Vec<String>> = rows.iter().map(|row| row[1..].to_vec()).collect();
        assert_eq!(panels(&owned(&["rate", "qdisc"]), &two).len(), 1);
        let drawn: Vec<Vec<String>> = (0..9)
            .map(|number| (1..4).map(|times| format!("{}ms", number * times)).collect())
            .collect();
        assert_eq!(panels(&owned(&["a", "b", "c"]), &drawn), []);
    }

    #[test]
    fn what_is_far_apart_is_told_apart_by_logarithms() {
        assert!(is_wide((0.5, 100.0)) && !is_wide((0.0, 100.0)) && !is_wide((10.0, 100.0)));
        let shares = [(10.0, 1.0, 100.0, true), (50.5, 1.0, 100.0, false), (7.0, 7.0, 7.0, false)];
        let shares = shares.map(|(value, least, most, log)| share(value, (least, most), log));
        assert_eq!(shares.map(|share| share.to_string()), ["0.5", "0.5", "0"]);
    }
}
