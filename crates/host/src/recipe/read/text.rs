//! What is around settings in articles: HTML, code fences, prompts, bullets.

/// Tags that articles put into code.
const TAGS: [&str; 14] =
    ["code", "pre", "br", "p", "span", "div", "li", "ul", "td", "tr", "b", "em", "strong", "kbd"];
const ENTITIES: [(&str, &str); 9] = [
    ("&quot;", "\""),
    ("&#34;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&apos;", "'"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&nbsp;", " "),
    ("&amp;", "&"),
];
/// What a code block's language says if `#` begins a comment in it.
const COMMENTED: [&str; 9] =
    ["conf", "ini", "sysctl", "toml", "yaml", "properties", "systemd", "sh", "bash"];

/// The longest tag, in bytes. Without a bound a text of nothing but `<` would be searched anew from each.
const LONGEST_TAG: usize = 256;

/// The beginning of a text, in characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text.to_owned(),
    }
}

/// The line without HTML, and with plain quotes and spaces.
pub(super) fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('<') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        match tag(rest) {
            Some(length) => rest = &rest[length..],
            None => {
                text.push('<');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    if text.contains('&') {
        for (entity, character) in ENTITIES {
            text = text.replace(entity, character);
        }
    }
    text.replace(['\u{201c}', '\u{201d}', '\u{201e}'], "\"").replace(['\u{a0}', '\u{200b}'], " ")
}

/// How long the tag is that a text begins with, if it is one that articles put into code.
fn tag(text: &str) -> Option<usize> {
    let mut within = text.as_bytes().iter().take(LONGEST_TAG);
    let end = within.position(|byte| *byte == b'>')?;
    let inside = text[1..end].trim_start_matches('/');
    let name = inside.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    TAGS.contains(&name).then_some(end + 1)
}

/// Whether the line calls 5 ms the target that a discipline has by default.
pub(super) fn claims_target(line: &str) -> bool {
    let words = line.to_lowercase();
    let says_default =
        ["default", "\u{9ed8}\u{8ba4}", "standard"].iter().any(|word| words.contains(word));
    let says_five = ["5ms", "5 ms"].iter().any(|time| {
        words
            .match_indices(time)
            .any(|(at, _)| !words[..at].ends_with(|c: char| c.is_ascii_digit() || c == '.'))
    });
    says_default && says_five && words.contains("target")
}

/// The line without the `- `, `* ` or `1. ` of a list, or the `> ` of a quotation.
pub(super) fn without_bullet(line: &str) -> &str {
    for bullet in ["- ", "* ", "\u{2022} ", "> "] {
        if let Some(rest) = line.strip_prefix(bullet) {
            return rest.trim_start();
        }
    }
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match line[digits..].strip_prefix(". ") {
        Some(rest) if (1..=2).contains(&digits) => rest.trim_start(),
        _ => line,
    }
}

/// What stands behind a prompt, if there is one: `$ `, `% `, `root@host:~# `.
pub(super) fn without_prompt(line: &str) -> Option<&str> {
    for prompt in ["$ ", "% "] {
        if let Some(rest) = line.strip_prefix(prompt) {
            return Some(rest.trim_start());
        }
    }
    let at = ["# ", "$ "].iter().filter_map(|end| line.find(end)).min()?;
    let prompt = &line[..at];
    let is_prompt = prompt.contains('@')
        && prompt.split_whitespace().count() <= 2
        && !prompt.contains(['=', '"', '\'']);
    is_prompt.then(|| line[at + 2..].trim_start())
}

/// What a line of prose has between backticks.
pub(super) fn snippets(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).map(str::trim).filter(|snippet| !snippet.is_empty())
}

/// A block of code in an article.
#[derive(Default)]
pub(super) struct Fence {
    /// Its language, while lines are in it.
    language: Option<String>,
}

impl Fence {
    /// Whether the line begins or ends a block.
    pub(super) fn take(&mut self, line: &str) -> bool {
        let line = line.trim();
        let Some(rest) = line.strip_prefix("```").or_else(|| line.strip_prefix("~~~")) else {
            return false;
        };
        self.language = match self.language {
            Some(_) => None,
            None => Some(rest.trim_matches(['`', '~', ' ']).to_lowercase()),
        };
        true
    }

    /// Whether `#` begins a comment here, rather than stand for root's prompt.
    pub(super) fn hash_is_comment(&self) -> bool {
        self.language.as_deref().is_some_and(|language| COMMENTED.contains(&language))
    }
}
