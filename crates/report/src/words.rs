//! What text for people and terminals needs.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text as it may reach a terminal: control characters become visible escapes, `\u001b`, but for the ends of lines and tabs.
/// That is also how JSON writes them in strings, where alone it can have them: so a document means the same as before.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// The same with some lines, counted from 0, in bold.
#[must_use]
pub fn marked(text: &str, lines: &[usize]) -> String {
    let mark = |(number, line): (usize, &str)| {
        let line = printable(line);
        if lines.contains(&number) {
            format!("\x1b[1m{line}\x1b[0m\n")
        } else {
            format!("{line}\n")
        }
    };
    text.lines().enumerate().map(mark).collect()
}

/// The same for what is one line: ends of lines become spaces.
#[must_use]
pub fn one_line(text: &str) -> String {
    printable(&text.replace(['\n', '\t'], " ")).into_owned()
}

/// A line, broken between words where it is longer than `most`; what goes on is indented. A word that is longer stays whole.
#[must_use]
pub fn folded(line: &str, most: Option<usize>) -> String {
    let Some(most) = most.filter(|most| line.chars().count() > *most) else {
        return line.to_owned();
    };
    let mut text = String::new();
    let mut used = 0;
    for word in line.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > most {
            text.push_str("\n   ");
            used = 3;
        }
        if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += length;
    }
    text
}

/// Control characters (C0, DEL and C1), and those that turn the direction of the text around them.
fn steers(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// A count in groups of three digits.
#[must_use]
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_printed_steers_a_terminal() {
        assert_eq!(printable("a\tb\nµ ±\n"), "a\tb\nµ ±\n");
        assert_eq!(printable("\u{1b}[2J\r\u{7f}\u{9b}m"), "\\u001b[2J\\u000d\\u007f\\u009bm");
        assert_eq!(printable("\u{202e}txt"), "\\u202etxt");
        assert_eq!(one_line("a\nb\u{1b}"), "a b\\u001b");
    }

    #[test]
    fn lines_are_broken_between_words() {
        let line = "Best: fq with cubic: 47.8 Mbits/sec";
        assert_eq!(folded(line, None), line);
        assert_eq!(folded(line, Some(35)), line);
        assert_eq!(folded(line, Some(20)), "Best: fq with cubic:\n    47.8 Mbits/sec");
        assert_eq!(
            folded(line, Some(12)),
            "Best: fq\n    with\n    cubic:\n    47.8\n    Mbits/sec"
        );
    }

    /// What serde leaves as it is, is escaped in the same way as what it does not.
    #[test]
    fn a_document_says_the_same_afterwards() {
        let value = serde_json::json!({ "name": "\u{1b}[31m \u{7f}\u{9b}\u{202e} \"\\\n" });
        let text = format!("{value:#}");
        assert_ne!(printable(&text), text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printable(&text)).unwrap(), value);
    }
}
