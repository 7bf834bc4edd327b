//! `dualq help WORD` of a word that is no command: what is said of it in the documents, which are inside the program.

use std::fmt::Write as _;
use std::io;

use clap::error::ErrorKind;
use dualq_qdisc::grammar::{KINDS, did_you_mean};
use dualq_tcp::Algorithm;

use crate::cli::Failure;
use crate::output::{print, text_width};
use crate::{examples, report};

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
    "model" "doctor" "recipe" "plan" "apply" "machines" "module" "verify" "watch" "security" "mtu" "measure" "measure-protocol" "embedding" "packages" "sweep" "python" "playground" "exercises"
};

/// The words after `dualq help`, if they are no command.
pub(crate) fn asked_for(error: &clap::Error) -> Option<String> {
    let mut given = std::env::args().skip(1);
    (error.kind() == ErrorKind::InvalidSubcommand && given.next()? == "help")
        .then(|| given.collect::<Vec<_>>().join(" "))
}

/// Prints what is known of these words.
pub(crate) fn run(words: &str) -> Result<(), Failure> {
    let name = words.strip_prefix("docs/").unwrap_or(words);
    let name = name.strip_suffix(".md").unwrap_or(name);
    if let Some(document) = DOCUMENTS.iter().find(|document| document.name == name) {
        return print(&mut io::stdout(), document.text);
    }
    let mut elsewhere = String::new();
    if examples::find(words).is_some() {
        let _ = writeln!(elsewhere, "It is a shipped scenario: dualq examples {words}");
    }
    if KINDS.contains(&words) || Algorithm::from_name(words).is_some() {
        let _ = writeln!(elsewhere, "What it is says: dualq explain {words}");
    }
    let found = search(words);
    if found.is_empty() && elsewhere.is_empty() {
        let hint = did_you_mean(words, &all_names());
        return Err(Failure::Usage(format!(
            "no command is called {words:?}, and no document speaks of it; {hint}`dualq help` lists the commands"
        )));
    }
    let text = elsewhere + &listed(words, &found);
    print(&mut io::stdout(), text.trim_start())
}

/// What a word that is misspelt may have been.
fn all_names() -> Vec<&'static str> {
    let documents = DOCUMENTS.iter().map(|document| document.name);
    let mut all: Vec<&str> = documents.chain(KINDS.iter().copied()).collect();
    all.extend(examples::names());
    all
}

/// A part of a document below a heading.
#[derive(Debug)]
struct Section {
    document: &'static str,
    heading: &'static str,
    text: String,
}

/// The sections of a document, without what Markdown marks words with.
fn sections(document: &Document) -> Vec<Section> {
    let mut all: Vec<Section> = Vec::new();
    let mut is_code = false;
    for line in document.text.lines() {
        is_code ^= line.starts_with("```");
        if !is_code && line.starts_with('#') {
            let heading = line.trim_start_matches('#').trim();
            all.push(Section { document: document.name, heading, text: String::new() });
        } else if let Some(last) = all.last_mut() {
            last.text += &plain(line);
            last.text.push('\n');
        }
    }
    all
}

/// A line without links, emphasis and marks of code.
fn plain(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(begin) = rest.find("](") {
        let (before, link) = rest.split_at(begin);
        let opened = before.rfind('[').unwrap_or(before.len());
        text += &before[..opened];
        text += before.get(opened + 1..).unwrap_or_default();
        rest = link.find(')').map_or("", |end| &link[end + 1..]);
    }
    text += rest;
    text.replace(['`', '*'], "")
}

/// The sections that have all words, those first whose heading has them, then those that have them most often.
fn search(words: &str) -> Vec<Section> {
    let wanted = words.to_lowercase();
    let wanted: Vec<&str> = wanted.split_whitespace().collect();
    let mut found: Vec<(usize, Section)> = Vec::new();
    for section in DOCUMENTS.iter().flat_map(sections) {
        let (heading, text) = (section.heading.to_lowercase(), section.text.to_lowercase());
        let often = |word: &&str| 20 * heading.matches(*word).count() + text.matches(*word).count();
        let least = wanted.iter().map(often).min().unwrap_or(0);
        if least > 0 {
            found.push((least, section));
        }
    }
    found.sort_by_key(|(often, _)| std::cmp::Reverse(*often));
    found.into_iter().map(|(_, section)| section).collect()
}

/// The places, each with the first line that has the word.
fn listed(words: &str, found: &[Section]) -> String {
    let wanted = words.to_lowercase();
    let first = wanted.split_whitespace().next().unwrap_or_default();
    let mut text = String::new();
    for section in found.iter().take(LISTED) {
        let _ = writeln!(text, "\n{}.md: {}", section.document, section.heading);
        let line = section.text.lines().find(|line| line.to_lowercase().contains(first));
        if let Some(line) = line {
            text += &report::list_of([("", line.trim())], text_width());
        }
    }
    if found.len() > LISTED {
        let _ = writeln!(text, "\n... and {} places more", found.len() - LISTED);
    }
    if let Some(section) = found.first() {
        let _ = writeln!(text, "\nOne of these documents: dualq help {}.md", section.document);
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
        assert_eq!(plain("![x](y"), "!x");
        assert_eq!(plain("no ](link"), "no ");
    }
}
