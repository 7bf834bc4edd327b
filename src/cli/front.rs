//! What is seen first: of `dualq` alone, and of its help.

use std::fmt::Write as _;

use clap::Command;

use crate::output::text_width;
use crate::{help, report};

/// What `dualq` says when nothing is asked for.
pub(crate) const WELCOME: &str = "\
dualq finds out why SSH, calls and games crawl while something large is sent, and cures it.

  dualq doctor                      is this machine's TCP and queue as it should be?
  dualq plan --rate 48mbit          what to change here, and why; then apply, confirm, rollback
  dualq measure --http URL          what a real path does to everybody else while it is loaded
  dualq mtu HOST                    SSH works and bulk transfers hang: who eats large packets?
  dualq run narrow-vps              simulate it: queues and congestion controls side by side
  dualq shell --rate 20mbit         work behind a slow link of your own, in real time
  dualq explain dualpi2             what a queue discipline does, and when not to use it
  dualq help WORD                   what the documents say of it: ECN, tunnel, black hole

All commands: dualq --help. One of them, with examples: dualq COMMAND --help.
";

/// Commands by what their user wants.
pub(super) const GROUPS: [(&str, &[&str]); 5] = [
    ("Find out", &["doctor", "measure", "mtu", "watch", "explain"]),
    ("Cure this machine", &["plan", "apply", "confirm", "rollback", "status", "verify", "module"]),
    ("Simulate and compare", &["run", "sweep", "tune", "examples", "report", "replay"]),
    ("Try for real", &["shell", "serve"]),
    ("More", &["kernel", "check", "completions", "man", "help"]),
];

/// The help of the whole has groups, which the library does not know of commands.
pub(super) fn grouped(command: Command) -> Command {
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        let _ = write!(text, "\n{group}:\n");
        let about = |name: &'static str| {
            let found = command.find_subcommand(name).and_then(Command::get_about);
            found.map(ToString::to_string).unwrap_or_default()
        };
        let rows: Vec<(&str, String)> = names.iter().map(|name| (*name, about(name))).collect();
        // One column for all groups.
        let rows = rows.iter().map(|(name, what)| (format!("{name:11}"), what)).collect::<Vec<_>>();
        text += &report::list_of(
            rows.iter().map(|(name, what)| (name.as_str(), what.as_str())),
            text_width(),
        );
    }
    text.push_str("\nOptions:\n{options}\n\nOne command, with examples: dualq COMMAND --help\nA word, in commands and documents: dualq help WORD");
    command.help_template(text)
}

/// What the line with the name of a document begins with.
pub(super) const MORE: &str = "More: ";

/// The help of a command ends with where more is said.
pub(super) fn with_documents(command: Command) -> Command {
    command.mut_subcommands(|one| match help::document_of(one.get_name()) {
        Some(document) => naming(one, document),
        None => one,
    })
}

fn naming(command: Command, document: &str) -> Command {
    let examples = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    command
        .after_help(format!("{examples}{MORE}dualq help {document}.md"))
        .mut_subcommands(|one| naming(one, document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        use clap::CommandFactory as _;

        let command = super::super::Cli::command();
        let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(shown, grouped);
    }
}
