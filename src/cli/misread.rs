//! What the library that reads arguments says of wrong ones, in one line.

use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// What is wrong with the arguments, and what would be right.
pub(super) fn line(error: &clap::Error) -> String {
    let said = negative(error).or_else(|| no_number(error)).or_else(|| no_dashes(error));
    said.unwrap_or_else(|| first_paragraph(&error.to_string()))
}

/// The library takes `-5s` for an option. None begins with a digit, so that a value is meant, and no value is negative.
fn negative(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    // It names the first letter only: of `-5s` that is `-5`.
    let digits = word.strip_prefix('-')?;
    if error.kind() != ErrorKind::UnknownArgument
        || !digits.starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    let given: Vec<String> =
        std::env::args_os().map(|given| given.to_string_lossy().into_owned()).collect();
    let at = given.iter().position(|given| given.starts_with(word.as_str()))?;
    // What it is the value of stands before it.
    let option = given[at.checked_sub(1)?].as_str();
    let option = if option.starts_with('-') { format!("{option}: ") } else { String::new() };
    Some(format!("{option}{} is negative: give a value of 0 or more", given[at]))
}

/// A command of `dualq shell` that does not stand behind `--`.
fn no_dashes(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let given: Vec<String> =
        std::env::args_os().map(|given| given.to_string_lossy().into_owned()).collect();
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    is_unknown.then(|| super::shell::without_dashes(word, &given))?
}

/// Of what is no number, or too large, the library says what Rust's own readers say.
fn no_number(error: &clap::Error) -> Option<String> {
    let fault = std::error::Error::source(error)?.downcast_ref::<ParseIntError>()?;
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let option = word(ContextKind::InvalidArg)?.split(" <").next()?;
    let value = word(ContextKind::InvalidValue)?;
    let right = match fault.kind() {
        IntErrorKind::PosOverflow => "the number is too large",
        IntErrorKind::Zero => "give a whole number of 1 or more",
        _ => "give a whole number of 0 or more",
    };
    Some(format!("{option}: {value:?}: {right}"))
}

/// The library explains itself over several lines, of which the first paragraph says what is wrong.
fn first_paragraph(message: &str) -> String {
    let paragraph: Vec<&str> =
        message.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let tip = message.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.map_or(String::new(), |tip| format!("; {tip}"));
    format!("{text}{tip}; see --help")
}
