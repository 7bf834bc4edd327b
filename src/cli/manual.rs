//! `dualq man`: pages of the manual, made of the same source as `--help`.

use std::io;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use dualq_units::plain;

use super::{Failure, front};
use crate::output::{Folder, Named, print};
use crate::run::PROGRAM;

pub(crate) const EXAMPLES: &str = "\
Examples:
  All pages, for man(1) to find:
    dualq man ~/.local/share/man/man1
    man dualq-run

  The first alone:
    dualq man | man -l -";

#[derive(Args)]
pub(crate) struct ManArgs {
    /// The folder to write them into; without one the first page is printed
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs) -> Result<(), Failure> {
    // The template of the help is for terminals.
    let mut command = front::with_documents(super::Cli::command());
    command.build();
    let Some(folder) = &args.folder else {
        let page = page(&command, &[]).map_err(|error| Failure::Run(plain(&error)))?;
        return print(&mut io::stdout(), &page);
    };
    let folder = Folder::open(folder)?;
    let mut pages = Vec::new();
    let mut left = vec![(&command, Vec::new())];
    while let Some((command, see)) = left.pop() {
        let page = page(command, &see).map_err(|error| Failure::Run(plain(&error)))?;
        pages.push(folder.file(&format!("{}.1", name(command)), page.as_bytes())?);
        let below = command.get_subcommands().filter(|one| !one.is_hide_set());
        left.extend(below.map(|one| (one, near(command, one))));
    }
    // All of them, or none.
    pages.into_iter().try_for_each(Named::finish)
}

/// What the page of a command is called: `dualq-kernel-build`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The pages that whoever reads that of `one` may want too: that of the command above it, and those beside it in its group.
fn near(above: &Command, one: &Command) -> Vec<String> {
    let beside = front::GROUPS.iter().map(|(_, names)| *names);
    let beside = beside.filter(|names| names.contains(&one.get_name())).flatten();
    let beside = beside.filter(|other| **other != one.get_name());
    let beside = beside.filter_map(|other| above.find_subcommand(other));
    let below = one.get_subcommands().filter(|one| !one.is_hide_set());
    [above].into_iter().chain(beside).chain(below).map(|other| name(other).to_owned()).collect()
}

fn page(command: &Command, see: &[String]) -> io::Result<String> {
    let man = Man::new(command.clone()).source(PROGRAM).manual("Manual of dualq");
    let mut bytes = Vec::new();
    man.render_title(&mut bytes)?;
    man.render_name_section(&mut bytes)?;
    man.render_synopsis_section(&mut bytes)?;
    man.render_description_section(&mut bytes)?;
    let mut roff = Roff::new();
    if see.is_empty() {
        grouped(&mut roff, command);
    } else if command.has_subcommands() {
        man.render_subcommands_section(&mut bytes)?;
    }
    man.render_options_section(&mut bytes)?;
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    examples(&mut roff, &text);
    roff.control("SH", ["SEE ALSO"]);
    let mut also: Vec<String> = see.iter().map(|page| format!("{page}(1)")).collect();
    let more = text.lines().find_map(|line| line.strip_prefix(front::MORE));
    also.push(more.unwrap_or("dualq help WORD").to_owned());
    roff.text([roman(also.join(", "))]);
    bytes.extend(roff.render().into_bytes());
    // Each part has the same preamble.
    let preamble = Roff::new().render();
    let page = String::from_utf8_lossy(&bytes).replace(&preamble, "");
    Ok(preamble + &page)
}

/// The commands by what their user wants.
fn grouped(roff: &mut Roff, command: &Command) {
    roff.control("SH", ["COMMANDS"]);
    for (group, names) in front::GROUPS {
        roff.control("SS", [group]);
        for one in names.iter().filter_map(|name| command.find_subcommand(name)) {
            roff.control("TP", []);
            roff.text([bold(name(one)), roman("(1)")]);
            roff.text([roman(one.get_about().map(ToString::to_string).unwrap_or_default())]);
        }
    }
}

/// A line of what the help says behind the options.
#[derive(PartialEq)]
enum Line<'a> {
    /// What the examples below it are of.
    Caption(&'a str),
    /// As it is typed.
    Example(&'a str),
    Prose(&'a str),
    Blank,
}

impl<'a> Line<'a> {
    fn new(line: &'a str) -> Self {
        match line.strip_prefix("  ") {
            _ if line.is_empty() => Self::Blank,
            Some(indented) if indented.ends_with([':', '?']) => Self::Caption(indented),
            Some(indented) => Self::Example(indented),
            None => Self::Prose(line),
        }
    }
}

fn examples(roff: &mut Roff, text: &str) {
    let lines = text.lines().filter(|line| *line != "Examples:" && !line.starts_with(front::MORE));
    let (mut section, mut is_verbatim) = ("", false);
    for line in lines.map(Line::new) {
        let is_example = matches!(line, Line::Example(_));
        if is_verbatim && !is_example {
            roff.control("EE", []);
        }
        let wanted = match line {
            Line::Blank => section,
            Line::Prose(_) => "NOTES",
            Line::Caption(_) | Line::Example(_) => "EXAMPLES",
        };
        if wanted != section {
            roff.control("SH", [wanted]);
            section = wanted;
        }
        if is_example && !is_verbatim {
            roff.control("EX", []);
        }
        is_verbatim = is_example;
        match line {
            Line::Caption(text) | Line::Example(text) | Line::Prose(text) => {
                roff.text([roman(text)])
            }
            Line::Blank => roff.control("PP", []),
        };
    }
    if is_verbatim {
        roff.control("EE", []);
    }
}
