//! Finds the settings in a text.

mod assignment;
mod command;
mod shell;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use super::{Line, MOST_STEPS, Recipe, Step, What};
use assignment::Place;
use text::Fence;

/// The longest line that is read as a whole, in bytes; continued ones count as one. Pages of HTML have long ones.
const LONGEST_LINE: usize = 64 << 10;
/// What is shown of a setting, in characters.
const SHOWN: usize = 400;
/// How deep commands may be in commands: `sh -c "sh -c …"`.
const DEEPEST: u32 = 4;

/// Reads the settings out of `text`.
pub(super) fn read(name: &str, text: &str) -> Recipe {
    let mut reader = Reader::new(name, text);
    let mut lines = (1..).zip(text.lines());
    while let Some((number, raw)) = lines.next() {
        let is_long = raw.len() > LONGEST_LINE;
        let mut line = if is_long { text::cut(raw, SHOWN) } else { text::plain(raw) };
        // A backslash at its end continues a line.
        while let Some(begun) = line.strip_suffix('\\')
            && begun.len() <= LONGEST_LINE
        {
            let Some((_, next)) = lines.next() else { break };
            let next = if next.len() > LONGEST_LINE { "" } else { next };
            line.truncate(begun.trim_end().len());
            line.push(' ');
            line.push_str(text::plain(next).trim_start());
        }
        if is_long || line.len() > LONGEST_LINE {
            reader.number = number;
            reader.not_understood(&line);
        } else {
            reader.line(number, raw, &line);
        }
        if reader.recipe.steps.len().max(reader.recipe.not_understood.len()) >= MOST_STEPS {
            reader.recipe.steps.truncate(MOST_STEPS);
            reader.recipe.cut = lines.next().map(|(next, _)| next);
            break;
        }
    }
    reader.finish()
}

/// What is known of a text as it is read.
struct Reader {
    recipe: Recipe,
    /// Whether `#` begins a comment wherever it stands, and never stands for a prompt.
    hash_is_comment: bool,
    /// The line that is read.
    number: u32,
    column: u32,
    /// What goes into a file until a line says that it ends.
    here: Option<(String, Place)>,
    fence: Fence,
    /// The file that the text last spoke of.
    place: Place,
    /// The section of systemd's files that the lines are in.
    section: Option<String>,
    /// What a script sets its variables to.
    variables: BTreeMap<String, String>,
    /// What the last `sysctl KEY` showed: such lines are its output.
    shown: Vec<String>,
    /// Whether `sysctl -p` was there: it shows what was set.
    reloaded: bool,
    /// The names that `static_routes` lists.
    routes: BTreeSet<String>,
    /// How many commands the one that is read is in.
    depth: u32,
}

impl Reader {
    fn new(name: &str, text: &str) -> Self {
        let is_code = [".conf", ".sh", ".rules", ".network"].iter().any(|end| name.ends_with(end));
        Self {
            recipe: Recipe { name: name.to_owned(), ..Recipe::default() },
            hash_is_comment: is_code || text.starts_with("#!"),
            number: 0,
            column: 1,
            here: None,
            fence: Fence::default(),
            place: Place::of_path(name),
            section: None,
            variables: BTreeMap::new(),
            shown: Vec::new(),
            reloaded: false,
            routes: BTreeSet::new(),
            depth: 0,
        }
    }

    fn finish(mut self) -> Recipe {
        for step in &mut self.recipe.steps {
            if let What::Route { listed: Some((name, listed)), .. } = &mut step.what {
                *listed = self.routes.contains(name);
            }
        }
        self.recipe
    }

    fn line(&mut self, number: u32, raw: &str, line: &str) {
        self.number = number;
        let indent = raw.chars().take_while(|c| c.is_whitespace()).count();
        self.column = u32::try_from(indent).unwrap_or(0).saturating_add(1);
        if self.recipe.target_claim.is_none() && text::claims_target(line) {
            self.recipe.target_claim = Some(number);
        }
        if let Some((end, place)) = &self.here {
            if line.trim() == end {
                self.here = None;
            } else {
                let place = place.clone();
                self.file_line(line, &place);
            }
            return;
        }
        if self.fence.take(line) {
            return;
        }
        self.any_line(line);
    }

    /// A line that may be a file's, a command or prose.
    fn any_line(&mut self, line: &str) {
        let line = text::without_bullet(line.trim());
        if line.is_empty() {
            return;
        }
        if let Some(rest) = line.strip_prefix('#') {
            self.mentioned(rest);
            let prompted = rest
                .strip_prefix(' ')
                .map(str::trim_start)
                .filter(|_| !self.hash_is_comment && !self.fence.hash_is_comment());
            // A commented line and a prompt look the same; a command is one only if all of it is understood.
            if let Some(rest) = prompted
                && command::is_known(rest)
            {
                self.command(rest);
            }
            return;
        }
        if line.starts_with(';') || line.starts_with("//") {
            return;
        }
        if let Some(rest) = text::without_prompt(line) {
            self.command(rest);
            return;
        }
        let place = self.place.clone();
        if self.file_line(line, &place) || self.command(line) {
            return;
        }
        self.mentioned(line);
        for snippet in text::snippets(line) {
            let place = self.place.clone();
            if !self.file_line(snippet, &place) && command::is_known(snippet) {
                self.command(snippet);
            }
        }
    }

    /// If the line speaks of a file, what follows is that file's.
    fn mentioned(&mut self, line: &str) {
        if let Some(place) = Place::mentioned(line) {
            self.place = place;
            self.section = None;
        }
    }

    /// Keeps a setting.
    fn step(&mut self, text: &str, place: &Place, what: What) {
        // One line of names of modules can ask for more than all lines should.
        if self.recipe.steps.len() > MOST_STEPS {
            return;
        }
        self.recipe.steps.push(Step {
            line: self.number,
            column: self.column,
            text: text::cut(text.trim(), SHOWN),
            file: place.path(),
            what,
        });
    }

    /// Keeps a line that looks like a command and is not understood.
    fn not_understood(&mut self, text: &str) {
        let line = Line { line: self.number, text: text::cut(text.trim(), SHOWN) };
        if self.recipe.not_understood.last() != Some(&line) {
            self.recipe.not_understood.push(line);
        }
    }
}

#[cfg(test)]
mod tests;
