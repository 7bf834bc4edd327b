//! Pages without a script: words, tables and pictures, in the styles of the other reports.

use std::fmt::Write as _;

use super::{STYLES, markup};
use crate::svg::Picture;

/// A page as it grows.
pub(crate) struct Still {
    title: String,
    body: String,
}

impl Still {
    pub(crate) fn new(title: &str) -> Self {
        let title = markup(title);
        Self { body: format!("<header><h1>{title}</h1>"), title }
    }

    /// A sentence on top, before any section.
    pub(crate) fn headline(&mut self, sentence: &str) {
        let _ = writeln!(self.body, "<p class=\"headline\">{}</p>", markup(sentence));
    }

    /// One below that.
    #[cfg(feature = "measured")]
    pub(crate) fn sentence(&mut self, sentence: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", markup(sentence));
    }

    /// How many bytes it has so far.
    pub(crate) const fn len(&self) -> usize {
        self.body.len()
    }

    pub(crate) fn section(&mut self, title: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", markup(title));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p class=\"soft\">{}</p>", markup(text));
    }

    pub(crate) fn code(&mut self, text: &str) {
        let _ = writeln!(self.body, "<pre tabindex=\"0\">{}</pre>", markup(text));
    }

    /// What follows until [`close`](Self::close) is hidden behind its summary.
    pub(crate) fn open(&mut self, summary: &str) {
        let _ = writeln!(self.body, "<details><summary>{}</summary>", markup(summary));
    }

    pub(crate) fn close(&mut self) {
        self.body.push_str("</details>\n");
    }

    /// A table whose first `words` columns are words; what is not as it should be is in bold.
    pub(crate) fn table(
        &mut self,
        label: &str,
        heads: &[&str],
        words: usize,
        rows: &[(bool, Vec<String>)],
    ) {
        let label = markup(label);
        let class = |at: usize| if at < words { " class=\"words\"" } else { "" };
        let _ = write!(
            self.body,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}, scrolls sideways\"><table aria-label=\"{label}\"><thead><tr>"
        );
        for (at, head) in heads.iter().enumerate() {
            let _ = write!(self.body, "<th scope=\"col\"{}>{}</th>", class(at), markup(head));
        }
        self.body.push_str("</tr></thead><tbody>\n");
        for (stands_out, cells) in rows {
            self.body.push_str(if *stands_out { "<tr class=\"differs\">" } else { "<tr>" });
            for (at, cell) in cells.iter().enumerate() {
                let _ = write!(self.body, "<td{}>{}</td>", class(at), markup(cell));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody></table></div>\n");
    }

    /// A picture by itself, whose styles touch nothing else.
    pub(crate) fn picture(&mut self, picture: &Picture, about: &str) {
        let mut encoded = String::with_capacity(picture.svg.len() * 5 / 4);
        for c in picture.svg.chars() {
            match c {
                '%' | '#' | '"' | '<' | '>' | '\n' | '&' => {
                    let _ = write!(encoded, "%{:02X}", u32::from(c));
                }
                c => encoded.push(c),
            }
        }
        let about = markup(about);
        let _ = writeln!(
            self.body,
            "<p class=\"picture\"><img alt=\"{about}\" src=\"data:image/svg+xml,{encoded}\"></p>"
        );
    }

    /// The page, made by `program`.
    pub(crate) fn page(self, program: &str) -> String {
        let Self { title, body } = self;
        let program = markup(program);
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>\n{STYLES}\n</style>\n</head>\n<body>\n<div id=\"page\">\n{body}</main>\n\
             <footer><p class=\"soft\">Made by {program}. This page has no script and asks nothing of any network.</p></footer>\n</div>\n</body>\n</html>\n"
        )
    }

    /// Ends what is on top; sections follow.
    pub(crate) fn begin(&mut self) {
        self.body.push_str("</header>\n<main>\n");
    }
}
