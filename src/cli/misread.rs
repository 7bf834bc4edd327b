//! What the library that reads arguments says of wrong ones, in one line.

use std::num::{IntErrorKind, ParseIntError};

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use dualq_qdisc::grammar::did_you_mean;

/// What is wrong with the arguments of this command line, and what would be right.
pub(super) fn line(error: &clap::Error, command: &Command) -> String {
    let said = negative(error).or_else(|| no_number(error)).or_else(|| no_dashes(error));
    said.unwrap_or_else(|| {
        first_paragraph(error, &asked(command, given().get(1..).unwrap_or_default()))
    })
}

/// This command line, the program's name first; what is no Unicode is replaced.
fn given() -> Vec<String> {
    std::env::args_os().map(|given| given.to_string_lossy().into_owned()).collect()
}

/// The command that was asked for, inside others perhaps, and its help: `dualq kernel build --help`.
struct Asked<'a> {
    command: &'a Command,
    help: String,
}

fn asked<'a>(mut command: &'a Command, given: &[String]) -> Asked<'a> {
    let mut help = command.get_name().to_owned();
    for word in given {
        // What stands before a command of another one is its name alone.
        let Some(named) = command.find_subcommand(word) else { break };
        command = named;
        help = format!("{help} {word}");
    }
    help.push_str(" --help");
    Asked { command, help }
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
    let given = given();
    let at = given.iter().position(|given| given.starts_with(word.as_str()))?;
    // What it is the value of stands before it.
    let option = given[at.checked_sub(1)?].as_str();
    let option = if option.starts_with('-') { format!("{option}: ") } else { String::new() };
    Some(format!("{option}{} is negative: give a value of 0 or more", given[at]))
}

/// A command of `dualq shell` that does not stand behind `--`.
fn no_dashes(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let given = given();
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
fn first_paragraph(error: &clap::Error, asked: &Asked<'_>) -> String {
    let message = error.to_string();
    let paragraph: Vec<&str> =
        message.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => word.as_str(),
        _ => "",
    };
    let help = &asked.help;
    match error.kind() {
        ErrorKind::InvalidSubcommand if word(ContextKind::InvalidSubcommand) == "version" => {
            format!("{text}; dualq --version prints it")
        }
        // The library takes for alike what begins as long words end.
        ErrorKind::InvalidSubcommand => {
            let commands = asked.command.get_subcommands().filter(|one| !one.is_hide_set());
            let names: Vec<&str> = commands.map(Command::get_name).collect();
            let near = did_you_mean(word(ContextKind::InvalidSubcommand), &names);
            format!("{text}; {near}{help} lists the commands")
        }
        ErrorKind::InvalidValue => {
            let values: Vec<&str> = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(values)) => values.iter().map(String::as_str).collect(),
                _ => Vec::new(),
            };
            let near = did_you_mean(word(ContextKind::InvalidValue), &values);
            format!("{text}; {near}see {help}")
        }
        _ => {
            let tip = message.lines().find_map(|line| line.trim().strip_prefix("tip: "));
            // That something is to be a value hardly anybody means.
            let tip = tip.filter(|tip| !tip.starts_with("to pass"));
            let tip = tip.map_or(String::new(), |tip| format!("{tip}; "));
            format!("{text}; {tip}see {help}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::command;
    use super::*;

    fn said(words: &[&str]) -> String {
        let command = command();
        let error = command.clone().try_get_matches_from([&["dualq"], words].concat()).unwrap_err();
        let given: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        first_paragraph(&error, &asked(&command, &given))
    }

    #[test]
    fn each_fault_names_the_help_that_helps() {
        let said_of: [(&[&str], &str); 8] = [
            (&["run", "--bogus"], "unexpected argument '--bogus' found; see dualq run --help"),
            (&["run", "--sed", "1"], "; a similar argument exists: '--seed'; see dualq run --help"),
            (&["kernel", "build", "--bogus"], "; see dualq kernel build --help"),
            (&["kernel", "lst"], "; did you mean \"list\"? dualq kernel --help lists the commands"),
            (
                &["plna"],
                "unrecognized subcommand 'plna'; did you mean \"plan\"? dualq --help lists the commands",
            ),
            (&["frobnicate"], "'frobnicate'; dualq --help lists the commands"),
            (&["version"], "; dualq --version prints it"),
            (
                &["plan", "--link", "dls"],
                "docsis, ethernet]; did you mean \"dsl\"? see dualq plan --help",
            ),
        ];
        for (words, wanted) in said_of {
            let said = said(words);
            assert!(said.ends_with(wanted), "{words:?}: {said}");
        }
    }
}
