//! An SVG document of lines, boxes and text: as much of the format as charts need.

use std::fmt::Write as _;

use crate::words::one_line;

/// How wide all pictures are, in the units of their own coordinates.
pub(crate) const WIDTH: f64 = 640.0;

/// Where a text stands: it begins, has its middle, or ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// What is drawn so far.
#[derive(Default)]
pub(crate) struct Canvas {
    body: String,
    /// Styles that this picture alone has.
    styles: &'static str,
}

/// Colours are those of the reports (`html/page/colours.js`); viewers that know of dark grounds have the others.
const STYLE: &str = "text{font-family:Arial,'Liberation Sans','DejaVu Sans',Helvetica,sans-serif;font-size:12px;fill:#1b1f24}\
.h{font-size:14px;font-weight:bold}.b{font-weight:bold}.s{fill:#57606a;font-size:11px}.w{fill:#fff;font-size:11px}.o{stroke:#fff;stroke-width:3px;paint-order:stroke}\
.p{fill:#fff}.g{stroke:#d0d7de;fill:none}.x{stroke:#57606a;fill:none;stroke-dasharray:4 4}.e{stroke:#1b1f24;fill:none}.z{fill:#f3f5f7}\
.l{fill:none;stroke-width:1.6;stroke-linejoin:round}.k{stroke-width:3}.n{stroke-width:5;stroke-linecap:round}.f{stroke:none}.q{stroke:none;opacity:.4}\
.c0{stroke:#0072b2;fill:#0072b2}.c1{stroke:#ae5f52;fill:#ae5f52}.c2{stroke:#1b1f24;fill:#1b1f24}.c3{stroke:#897500;fill:#897500}\
.c4{stroke:#004d11;fill:#004d11}.c5{stroke:#a70068;fill:#a70068}.c6{stroke:#372f9e;fill:#372f9e}.l{fill:none}\
.d1{stroke-dasharray:8 4}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:10 3 2 3}.f,.q{stroke:none}\
@media(prefers-color-scheme:dark){text{fill:#e6eaee}.s{fill:#a3acb6}.w{fill:#14181d}.o{stroke:#14181d}.p{fill:#14181d}.g{stroke:#3a424b}.x{stroke:#a3acb6}\
.e{stroke:#e6eaee}.z{fill:#1e242b}\
.c0{stroke:#56b4e9;fill:#56b4e9}.c1{stroke:#dd523a;fill:#dd523a}.c2{stroke:#f2f4f6;fill:#f2f4f6}.c3{stroke:#f3cd44;fill:#f3cd44}\
.c4{stroke:#9dffa2;fill:#9dffa2}.c5{stroke:#bf6883;fill:#bf6883}.c6{stroke:#6c73f2;fill:#6c73f2}.l{fill:none}.f,.q{stroke:none}}";

/// One hue from little to much, so that it is read without colours too: away from the paper, be that light or dark.
const HEAT: &str = ".v{font-size:11px}.h0{fill:#eaf3fb}.h1{fill:#cfe3f4}.h2{fill:#abd0ea}.h3{fill:#7fb6dd}.h4{fill:#2b77ab}.h5{fill:#1a5f92}.h6{fill:#0d4470}\
@media(prefers-color-scheme:dark){.h0{fill:#1a2a3a}.h1{fill:#1d3a55}.h2{fill:#234c70}.h3{fill:#2b5f8a}.h4{fill:#5aa5dd}.h5{fill:#8cc4ee}.h6{fill:#c4e2f9}}";

/// How many steps that has.
pub(crate) const HEAT_STEPS: usize = 7;

/// How many colours there are.
pub(crate) const COLOURS: usize = 7;

/// A coordinate: a tenth of a unit is finer than anybody sees.
pub(crate) fn at(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// Text as it may stand in an element or an attribute.
fn escaped(text: &str) -> String {
    let line = one_line(text);
    line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Canvas {
    /// For heat maps: rectangles of the classes `h0` and so on.
    pub(crate) fn with_heat() -> Self {
        Self { styles: HEAT, ..Self::default() }
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        let (x, y, text) = (at(x), at(y), escaped(text));
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\"{anchor}{class}>{text}</text>");
    }

    /// A title, and what its figures are in behind it: one text, as how wide the first is hangs on the font that is there.
    pub(crate) fn title(&mut self, (x, y): (f64, f64), title: &str, unit: &str) {
        let (x, y, title, unit) = (at(x), at(y), escaped(title), escaped(unit));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\"><tspan class=\"b\">{title}</tspan><tspan class=\"s\" dx=\"8\">{unit}</tspan></text>"
        );
    }

    pub(crate) fn path(&mut self, d: &str, class: &str) {
        let _ = writeln!(self.body, "<path d=\"{d}\" class=\"{class}\"/>");
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let d = format!("M{},{} {},{}", at(from.0), at(from.1), at(to.0), at(to.1));
        self.path(&d, class);
    }

    pub(crate) fn rect(&mut self, (x, y): (f64, f64), (w, h): (f64, f64), class: &str) {
        let (x, y, w, h) = (at(x), at(y), at(w.max(0.0)), at(h.max(0.0)));
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" class=\"{class}\"/>"
        );
    }

    /// The document. `title` and `about` are for those who do not see it.
    pub(crate) fn document(self, height: f64, title: &str, about: &str) -> String {
        let (width, height, styles) = (at(WIDTH), at(height), self.styles);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-labelledby=\"t d\">\n<title id=\"t\">{}</title>\n<desc id=\"d\">{}</desc>\n<style>{STYLE}{styles}</style>\n\
             <rect width=\"{width}\" height=\"{height}\" class=\"p\"/>\n{}</svg>\n",
            escaped(title),
            escaped(about),
            self.body
        )
    }
}

/// How much wider bold letters are: those of DejaVu Sans, the widest of the fonts that pictures ask for.
pub(crate) const BOLD: f64 = 1.15;

/// How wide a text is at most. No font is at hand: these are the advances of Helvetica by kinds of letters, and a tenth more, for
/// other sans serifs are wider.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let advance = |c: char| match c {
        'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | '!' | ' ' => 0.28,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' | '"' | '·' => 0.35,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.86,
        'A'..='Z' => 0.7,
        c if c.is_ascii() || ('\u{a0}'..='\u{24f}').contains(&c) => 0.56,
        _ => 1.0,
    };
    1.1 * size * text.chars().map(advance).sum::<f64>()
}

/// The text, cut to a width.
pub(crate) fn fitted(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        if width(&cut, size) + width(&c.to_string(), size) + width("…", size) > most {
            break;
        }
        cut.push(c);
    }
    format!("{}…", cut.trim_end())
}

/// The text in lines that are no wider; a word that is wider is cut where it must be.
pub(crate) fn wrapped(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&longer, size) <= most {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            if width(&line, size) + width(&c.to_string(), size) > most {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines.retain(|line| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_name_holds_is_markup() {
        let mut canvas = Canvas::default();
        canvas.text((1.0, 2.55), Anchor::End, "s", "</text><script>\"&\n\u{202e}");
        let document = canvas.document(10.0, "a < b", "");
        assert!(document.contains("&lt;/text&gt;&lt;script&gt;&quot;&amp; \\u202e</text>"));
        assert!(document.contains("<title id=\"t\">a &lt; b</title>"));
        assert!(!document.contains("<script"));
    }

    #[test]
    fn lines_are_no_wider_than_they_may_be() {
        let text =
            "dualq run scenarios/narrow-vps.toml --report a-very-long-name-without-any-space.html";
        for most in [40.0, 100.0, 1000.0] {
            let lines = wrapped(text, 12.0, most);
            assert!(lines.iter().all(|line| width(line, 12.0) <= most), "{lines:?}");
            let all: String = lines.concat();
            assert_eq!(all.replace(' ', ""), text.replace(' ', ""));
        }
        assert_eq!(fitted("bfifo limit 1mb", 12.0, 400.0), "bfifo limit 1mb");
        assert!(width(&fitted("bfifo limit 1mb", 12.0, 50.0), 12.0) <= 50.0);
    }
}
