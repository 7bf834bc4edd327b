//! `dualq help WORD`: of a command its help, of any other word what is said of it in the documents, which are inside the program.

use std::fmt::Write as _;
use std::io;

use clap::{Arg, Args, Command};
use dualq_qdisc::grammar::{KINDS, did_you_mean};
use dualq_tcp::Algorithm;

use crate::cli::Failure;
use crate::output::{cannot_print, print, text_width};
use crate::{examples, report};

pub(crate) const EXAMPLES: &str = "\
Examples:
  dualq help run               # as dualq run --help
  dualq help retransmits       # where the documents speak of it
  dualq help mtu.md            # a whole document, of those inside the program";

#[derive(Args)]
pub(crate) struct HelpArgs {
    /// A command, the name of a document, or words to look for in the documents; all commands are listed without
    #[arg(value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// How many places are listed; more help nobody.
const LISTED: usize = 8;

/// A document, by the name of its file in `docs/`.
struct Document {
    name: &'static str,
    text: &'static str,
}

macro_rules! documents {
    ($($name:literal)*) => {
        &[$(Document { name: $name, text: include_str!(concat!("../docs/", $name, ".md")) }),*]
    };
}

const DOCUMENTS: &[Document] = documents! {
    "first-steps" "gallery" "scenario" "results" "figures" "report" "kernel" "live" "shell" "check" "replay" "queues-and-controls" "l4s"
    "model" "agreement" "doctor" "recipe" "plan" "apply" "machines" "module" "verify" "watch" "security" "mtu" "measure" "measure-protocol" "embedding" "packages" "sweep" "python" "playground" "exercises"
};

/// The commands whose document has another name than they.
const DOCUMENT_OF: [(&str, &str); 9] = [
    ("run", "scenario"),
    ("tune", "sweep"),
    ("examples", "gallery"),
    ("explain", "queues-and-controls"),
    ("confirm", "apply"),
    ("rollback", "apply"),
    ("status", "apply"),
    ("serve", "measure"),
    ("completions", "packages"),
];

/// The name of the document that says more about a command.
pub(crate) fn document_of(command: &str) -> Option<&'static str> {
    let named = DOCUMENT_OF.iter().find(|(name, _)| *name == command);
    named.map(|(_, document)| *document).or_else(|| document(command).map(|found| found.name))
}

/// The names of all documents, as they are asked for.
pub(crate) fn documents() -> impl Iterator<Item = String> {
    DOCUMENTS.iter().map(|document| format!("{}.md", document.name))
}

/// The document of that name, which may be that of its file.
fn document(name: &str) -> Option<&'static Document> {
    let name = name.to_lowercase();
    let name = name.strip_prefix("docs/").unwrap_or(&name);
    let name = name.strip_suffix(".md").unwrap_or(name);
    DOCUMENTS.iter().find(|document| document.name == name)
}

/// Prints what is known of these words.
pub(crate) fn run(args: &HelpArgs, command: Command) -> Result<(), Failure> {
    // Who asks for help with options that they have typed wants that of their command.
    let words = args.words.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
    let words: Vec<&str> = words.collect();
    if let ([], [option, ..]) = (words.as_slice(), args.words.as_slice()) {
        return print(&mut io::stdout(), &of_option(&command, option)?);
    }
    if let Some(help) = of_command(command, &words) {
        return help.print().map_err(|error| cannot_print(&error));
    }
    let words = words.join(" ");
    let elsewhere = elsewhere(&words);
    if let Some(document) = document(&words) {
        let space = if elsewhere.is_empty() { "" } else { "\n" };
        return print(&mut io::stdout(), &[document.text, space, &elsewhere].concat());
    }
    let found = search(&words);
    if found.is_empty() && elsewhere.is_empty() {
        let hint = did_you_mean(&words, &all_names());
        return Err(Failure::Usage(format!(
            "no command is called {words:?}, and no document speaks of it; {hint}`dualq help` lists the commands"
        )));
    }
    let text = elsewhere + &listed(&words, &found);
    print(&mut io::stdout(), text.trim_start())
}

/// The help of the command that the words name one inside the other, which the library has as an error; none if one of them is no command.
fn of_command(command: Command, words: &[&str]) -> Option<clap::Error> {
    let mut named = &command;
    for word in words {
        named = named.find_subcommand(word)?;
    }
    let asked = [&["dualq"], words, &["--help"]].concat();
    command.try_get_matches_from(asked).err()
}

/// Which commands have an option, and what it does there.
fn of_option(command: &Command, option: &str) -> Result<String, Failure> {
    let name = option.trim_start_matches('-').split('=').next().unwrap_or_default();
    let is_it = |arg: &&Arg| match name.chars().collect::<Vec<_>>().as_slice() {
        [short] => arg.get_short() == Some(*short),
        _ => arg.get_long() == Some(name),
    };
    let shown = shown_below(command, "");
    let has = |(name, command): &(String, &Command)| {
        let arg = command.get_arguments().find(is_it)?;
        Some((name.clone(), arg.get_help()?.to_string()))
    };
    let found: Vec<(String, String)> = shown.iter().filter_map(has).collect();
    if found.is_empty() {
        let all = shown.iter().flat_map(|(_, command)| command.get_arguments());
        let longs = all.filter_map(Arg::get_long);
        let longs: Vec<String> = longs.map(|long| format!("--{long}")).collect();
        let longs: Vec<&str> = longs.iter().map(String::as_str).collect();
        let hint = did_you_mean(&format!("--{name}"), &longs);
        return Err(Failure::Usage(format!(
            "no command has an option {option}; {hint}`dualq help` lists the commands"
        )));
    }
    let list = report::list_of(
        found.iter().map(|(name, does)| (name.as_str(), does.as_str())),
        text_width(),
    );
    Ok(format!(
        "{option} is an option of\n{list}\nAll options of one of them: dualq help COMMAND\n"
    ))
}

/// The commands below one, each by the words that call it, and those below these.
fn shown_below<'c>(command: &'c Command, words: &str) -> Vec<(String, &'c Command)> {
    let mut all = Vec::new();
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let words = format!("{words} {}", command.get_name()).trim_start().to_owned();
        let below = shown_below(command, &words);
        all.push((words, command));
        all.extend(below);
    }
    all
}

/// Where else something of this name is.
fn elsewhere(words: &str) -> String {
    let mut text = String::new();
    if examples::find(words).is_some() {
        let _ = writeln!(text, "It is a shipped scenario: dualq examples {words}");
    }
    if KINDS.contains(&words) || Algorithm::from_name(words).is_some() {
        let _ = writeln!(text, "What it is says: dualq explain {words}");
    }
    text
}

/// What a word that is misspelt may have been.
fn all_names() -> Vec<&'static str> {
    let documents = DOCUMENTS.iter().map(|document| document.name);
    let mut all: Vec<&str> = documents.chain(KINDS.iter().copied()).collect();
    all.extend(examples::names());
    all
}

/// Whether a document speaks of these words.
pub(crate) fn is_known(words: &str) -> bool {
    !search(words).is_empty()
}

/// A part of a document below a heading.
#[derive(Debug)]
struct Section {
    document: &'static str,
    heading: &'static str,
    /// Its paragraphs and the items of its lists, each in one line.
    prose: Vec<String>,
    /// The lines of its code and its tables.
    other: Vec<String>,
}

/// The sections of a document, without what Markdown marks words with.
fn sections(document: &Document) -> Vec<Section> {
    let mut all: Vec<Section> = Vec::new();
    let (mut is_code, mut goes_on) = (false, false);
    for line in document.text.lines() {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        if !is_code && line.starts_with('#') {
            let heading = line.trim_start_matches('#').trim();
            let (prose, other) = (Vec::new(), Vec::new());
            all.push(Section { document: document.name, heading, prose, other });
            goes_on = false;
            continue;
        }
        let Some(last) = all.last_mut() else { continue };
        let bare = plain(line);
        let bare = bare.trim();
        // What is indented below a blank line is code too.
        let is_indented = line.starts_with("    ") && !goes_on;
        let is_code = is_code || fence || is_indented;
        let is_prose = !is_code && !bare.starts_with(['|', '<']) && !bare.is_empty();
        match last.prose.last_mut() {
            Some(paragraph) if is_prose && goes_on && !bare.starts_with("- ") => {
                paragraph.push(' ');
                paragraph.push_str(bare);
            }
            _ if is_prose => last.prose.push(bare.trim_start_matches("- ").to_owned()),
            _ if !fence => last.other.push(bare.trim_matches(['|', ' ']).to_owned()),
            _ => {}
        }
        goes_on = is_prose;
    }
    all
}

/// A line without links, emphasis and marks of code; of a picture nothing is left.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(begin) = rest.find("](") {
        let (before, link) = rest.split_at(begin);
        let opened = before.rfind('[').unwrap_or(before.len());
        match before[..opened].strip_suffix('!') {
            Some(before) => text += before,
            None => {
                text += &before[..opened];
                text += before.get(opened + 1..).unwrap_or_default();
            }
        }
        rest = link.find(')').map_or("", |end| &link[end + 1..]);
    }
    text += rest;
    text.replace(['`', '*'], "")
}

/// How a word is looked for.
#[derive(Clone, Copy)]
enum Match {
    /// By itself, or with a plural's s: `red` is not in `shared`, nor `pie` in `fq_pie`.
    Whole,
    Part,
}

impl Match {
    /// How often a text has a word; both in small letters.
    fn count(self, text: &str, word: &str) -> usize {
        let is_inside = |c: char| c.is_alphanumeric() || c == '_';
        let is_whole = |at: usize| {
            let (before, behind) = (&text[..at], &text[at + word.len()..]);
            let behind = behind.strip_prefix('s').unwrap_or(behind);
            !before.ends_with(is_inside) && !behind.starts_with(is_inside)
        };
        let found = text.match_indices(word).map(|(at, _)| at);
        match self {
            Self::Whole => found.filter(|at| is_whole(*at)).count(),
            Self::Part => found.count(),
        }
    }

    fn is_in(self, text: &str, word: &str) -> bool {
        self.count(&text.to_lowercase(), word) > 0
    }
}

/// A section that has all words, and how these were found.
struct Found {
    section: Section,
    how: Match,
}

/// The sections that have all words, those first that say what they are, or whose heading has them, then those that have them most often. Parts of words count only
/// where nothing has them whole.
fn search(words: &str) -> Vec<Found> {
    let wanted = words.to_lowercase();
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    for how in [Match::Whole, Match::Part] {
        let mut found: Vec<(usize, Found)> = Vec::new();
        for section in DOCUMENTS.iter().flat_map(sections) {
            let heading = section.heading.to_lowercase();
            let text = [section.prose.join("\n"), section.other.join("\n")].join("\n");
            let text = text.to_lowercase();
            let often = |word: &&str| {
                let defined = usize::from(section.definition(word).is_some());
                60 * defined + 20 * how.count(&heading, word) + how.count(&text, word)
            };
            let least = wanted.iter().map(often).min().unwrap_or(0);
            if least > 0 {
                found.push((least, Found { section, how }));
            }
        }
        found.sort_by_key(|(often, _)| std::cmp::Reverse(*often));
        if !found.is_empty() {
            return found.into_iter().map(|(_, found)| found).collect();
        }
    }
    Vec::new()
}

/// How many columns of a table have names: of those that have groups the second.
const NAMING: usize = 2;

impl Section {
    /// The line of a table that says what a word is, for it stands alone in a column of names.
    fn definition(&self, word: &str) -> Option<&str> {
        let is_name = |cell: &str| cell.trim().to_lowercase() == word;
        let is_rule = |at: usize| self.other.get(at).is_some_and(|line| line.starts_with("--"));
        let lines = self.other.iter().enumerate();
        // Below a rule stands what a table has, above the titles of its columns.
        let rows = lines.skip_while(|(at, _)| !is_rule(*at));
        let mut rows = rows.filter(|(at, line)| line.contains('|') && !is_rule(at + 1));
        let found = rows.find(|(_, line)| line.split('|').take(NAMING).any(is_name));
        found.map(|(_, line)| line.as_str())
    }
}

impl Found {
    /// What is shown of it: what says what the word is, else the first sentence with all words, or with one of them; a line of code or of a table if no sentence has any.
    fn line(&self, wanted: &[&str]) -> Option<&str> {
        let Section { prose, other, .. } = &self.section;
        let has = |text: &str, word: &&str| self.how.is_in(text, word);
        let all = |text: &&str| wanted.iter().all(|word| has(text, word));
        let any = |text: &&str| wanted.iter().any(|word| has(text, word));
        let all_parts: Vec<&str> =
            prose.iter().flat_map(|paragraph| sentences(paragraph)).collect();
        // Sources and items of lists have no end.
        let whole = || all_parts.iter().copied().filter(|part| part.ends_with(['.', '?', '!']));
        let parts = || all_parts.iter().copied();
        let defined = match wanted {
            [word] => self.section.definition(word),
            _ => None,
        };
        defined
            .or_else(|| whole().find(all))
            .or_else(|| whole().find(any))
            .or_else(|| parts().find(any))
            .or_else(|| other.iter().map(String::as_str).find(any))
            .or_else(|| parts().next())
    }
}

/// The sentences of a paragraph: behind each of them comes a space and something large.
fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let ends = paragraph.match_indices(['.', '?', '!', ':']).map(|(at, _)| at + 1);
    let ends = ends.filter(|end| {
        let behind = paragraph[*end..].strip_prefix(' ');
        behind.is_some_and(|behind| behind.starts_with(char::is_uppercase))
    });
    let mut begin = 0;
    ends.chain([paragraph.len()]).map(move |end| {
        let sentence = paragraph[begin..end].trim();
        begin = end;
        sentence
    })
}

/// The places, each with what it says of the words.
fn listed(words: &str, found: &[Found]) -> String {
    let wanted = words.to_lowercase();
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    let mut text = String::new();
    for one in found.iter().take(LISTED) {
        let _ = writeln!(text, "\n{}.md: {}", one.section.document, plain(one.section.heading));
        if let Some(line) = one.line(&wanted) {
            text += &report::list_of([("", line)], text_width());
        }
    }
    if found.len() > LISTED {
        let _ = writeln!(text, "\n... and {} places more", found.len() - LISTED);
    }
    if let Some(one) = found.first() {
        let document = one.section.document;
        let _ = writeln!(text, "\nOne of these documents: dualq help {document}.md");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn all_documents_are_inside() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut found: Vec<String> = names
            .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
            .filter(|name| name != "SUMMARY")
            .collect();
        let mut inside: Vec<&str> = DOCUMENTS.iter().map(|document| document.name).collect();
        found.sort();
        inside.sort_unstable();
        assert_eq!(found, inside);
    }

    #[test]
    fn words_without_their_marks() {
        assert_eq!(plain("a [`b`](c.md#d) **e** (f)"), "a b e (f)");
        assert_eq!(plain("a ![x](y) b"), "a  b");
        assert_eq!(plain("![x](y"), "");
        assert_eq!(plain("no ](link"), "no ");
    }

    #[test]
    fn whole_words_go_before_parts() {
        assert_eq!(Match::Whole.count("shared red, measured reds fq_red", "red"), 2);
        assert_eq!(Match::Part.count("shared red", "red"), 2);
        assert!(search("pie").iter().all(|found| matches!(found.how, Match::Whole)));
        let parts = search("dualp");
        assert!(!parts.is_empty() && parts.iter().all(|found| matches!(found.how, Match::Part)));
    }

    #[test]
    fn what_is_shown_is_a_sentence() {
        let text = "# A\n\n| ack | x |\n\n![ack](y)\n\nOne line of it.\nAn ack is\nshort. More.\n- an item\n";
        let found = sections(&Document { name: "a", text }).remove(0);
        assert_eq!(found.prose, ["One line of it. An ack is short. More.", "an item"]);
        let found = Found { section: found, how: Match::Whole };
        assert_eq!(found.line(&["ack"]), Some("An ack is short."));
        assert_eq!(found.line(&["x"]), Some("ack | x"));
        assert_eq!(found.line(&["nowhere"]), Some("One line of it."));
        let text = "# A\n\nAn ack is short.\n\n| ack | what |\n|---|---|\n| TCP | ack | it |\n";
        let found = sections(&Document { name: "a", text }).remove(0);
        assert_eq!(found.definition("ack"), Some("TCP | ack | it"));
        assert_eq!((found.definition("it"), found.definition("what")), (None, None));
        let found = Found { section: found, how: Match::Whole };
        assert_eq!(found.line(&["ack"]), Some("TCP | ack | it"));
    }

    #[test]
    fn commands_have_documents() {
        for (command, name) in DOCUMENT_OF {
            assert!(document(name).is_some_and(|found| found.name == name), "{command}");
        }
        assert_eq!(document_of("mtu"), Some("mtu"));
        assert_eq!(document_of("man"), None);
    }
}
