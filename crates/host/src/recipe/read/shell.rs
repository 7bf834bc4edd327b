//! As much of a shell's grammar as recipes use: words, quotes, redirections, what is chained.

use std::collections::BTreeMap;

/// The longest `${NAME:-value}`, in bytes.
const LONGEST_NAME: usize = 256;

/// A simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// Its words, quotes taken off and known variables put in.
    pub(super) words: Vec<String>,
    /// The file that its output goes to.
    pub(super) output: Option<String>,
    /// What ends the lines below that it reads.
    pub(super) here: Option<String>,
    /// Whether its output goes to the next command.
    pub(super) piped: bool,
}

/// Cuts a line into simple commands.
pub(super) fn split(line: &str, variables: &BTreeMap<String, String>) -> Vec<Simple> {
    let mut commands = Vec::new();
    let mut simple = Simple::default();
    // What the next word is for.
    let mut next = Role::Word;
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        if first == '#' {
            break;
        }
        if let Some((operator, after)) = operator(rest) {
            match operator {
                Operator::Output => next = Role::Output,
                Operator::Here => next = Role::Here,
                Operator::Drop => next = Role::Nothing,
                Operator::Pipe | Operator::End => {
                    simple.piped = matches!(operator, Operator::Pipe);
                    commands.push(std::mem::take(&mut simple));
                    next = Role::Word;
                }
            }
            rest = after.trim_start();
            continue;
        }
        let (word, after) = word(rest, variables);
        match std::mem::replace(&mut next, Role::Word) {
            Role::Word => simple.words.push(word),
            Role::Output => simple.output = Some(word),
            Role::Here => simple.here = Some(word),
            Role::Nothing => {}
        }
        rest = after.trim_start();
    }
    commands.push(simple);
    commands.retain(|command| !command.words.is_empty() || command.here.is_some());
    commands
}

enum Role {
    Word,
    Output,
    Here,
    Nothing,
}

enum Operator {
    Output,
    Here,
    /// A redirection that changes nothing here: `2>&1`, `< file`.
    Drop,
    Pipe,
    End,
}

/// The operator that a text begins with, and what follows it.
fn operator(text: &str) -> Option<(Operator, &str)> {
    const OPERATORS: [(&str, Operator); 17] = [
        ("<<<", Operator::Drop),
        ("<<-", Operator::Here),
        ("<<", Operator::Here),
        ("<", Operator::Drop),
        ("2>>", Operator::Drop),
        ("2>", Operator::Drop),
        ("&>>", Operator::Drop),
        ("&>", Operator::Drop),
        (">>", Operator::Output),
        (">|", Operator::Output),
        (">&", Operator::Drop),
        (">", Operator::Output),
        ("&&", Operator::End),
        ("||", Operator::End),
        ("&", Operator::End),
        ("|", Operator::Pipe),
        (";", Operator::End),
    ];
    OPERATORS.into_iter().find_map(|(sign, operator)| Some((operator, text.strip_prefix(sign)?)))
}

/// The word that a text begins with, and what follows it.
fn word<'a>(text: &'a str, variables: &BTreeMap<String, String>) -> (String, &'a str) {
    let mut word = String::new();
    let mut quote = None;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, c) if c.is_whitespace() => return (word, &text[at..]),
            (None, '>' | '<' | '|' | '&' | ';') => return (word, &text[at..]),
            (None | Some('"'), '\\') => word.extend(characters.next().map(|(_, escaped)| escaped)),
            (None | Some('"'), '$') => {
                let (value, length) = variable(&text[at..], variables);
                word.push_str(&value);
                while characters.peek().is_some_and(|(next, _)| *next < at + length) {
                    characters.next();
                }
            }
            (_, other) => word.push(other),
        }
    }
    (word, "")
}

/// The value of the variable that a text begins with, or the text itself if nothing sets it; and its length.
fn variable(text: &str, variables: &BTreeMap<String, String>) -> (String, usize) {
    let (name, length) = match text[1..].strip_prefix('{') {
        Some(braced) => match braced.bytes().take(LONGEST_NAME).position(|byte| byte == b'}') {
            Some(end) => (&braced[..end], end + 3),
            None => return ("$".to_owned(), 1),
        },
        None => {
            let end = text[1..]
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(text.len() - 1);
            (&text[1..=end], end + 1)
        }
    };
    // `${NAME:-value}`
    let (name, default) = name.split_once(":-").map_or((name, None), |(name, or)| (name, Some(or)));
    let value = variables.get(name).map(String::as_str).or(default).unwrap_or(&text[..length]);
    (value.to_owned(), length)
}
