//! What is there, against what should be.

use std::fmt;

use serde::Serialize;

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What: a sysctl, an interface, a file.
    pub name: String,
    /// What should be there; `None` if nothing.
    pub expected: Option<String>,
    /// What is there; `None` if nothing.
    pub found: Option<String>,
}

/// As diff(1) has it: the name, then lines with `-` that should be there, and with `+` those that are.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = |text: &'_ Option<String>| -> Vec<String> {
            text.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
        };
        let (expected, found) = (lines(&self.expected), lines(&self.found));
        let same = |(one, other): &(&String, &String)| one == other;
        let head = expected.iter().zip(&found).take_while(same).count();
        let rest = expected.len().min(found.len()) - head;
        let tail =
            expected.iter().rev().zip(found.iter().rev()).take(rest).take_while(same).count();
        writeln!(f, "{}", self.name)?;
        for (mark, lines) in [('-', &expected), ('+', &found)] {
            for line in &lines[head..lines.len() - tail] {
                writeln!(f, "{mark} {}", shown(line))?;
            }
        }
        for (mark, text) in [('-', &self.expected), ('+', &self.found)] {
            if text.is_none() {
                writeln!(f, "{mark} (nothing)")?;
            }
        }
        Ok(())
    }
}

/// A line with nothing in it that a terminal would act on.
fn shown(line: &str) -> String {
    let mut shown = String::new();
    for c in line.chars() {
        if c.is_control() && c != '\t' { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_shown() {
        let some = |text: &str| Some(text.to_owned());
        let name = "/etc/a".to_owned();
        let difference = Difference {
            name: name.clone(),
            expected: some("a\nb\nc\n"),
            found: some("a\nB\nd\nc\n"),
        };
        assert_eq!(difference.to_string(), "/etc/a\n- b\n+ B\n+ d\n");
        let difference = Difference { name, expected: some("a\n"), found: None };
        assert_eq!(difference.to_string(), "/etc/a\n- a\n+ (nothing)\n");
        let found = some("say \"a\"\u{1b}[2J\n");
        let difference = Difference { name: "/etc/a".to_owned(), expected: some("a\n"), found };
        assert_eq!(difference.to_string(), "/etc/a\n- a\n+ say \"a\"\\u{1b}[2J\n");
    }
}
