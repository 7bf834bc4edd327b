//! The documents: links between them lead somewhere, the book has all of them, the pages of scenarios are as these are, and the README's
//! picture is what its command draws.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dualq_scenario::{Overrides, Sweep};
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Markdown files of the project.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() {
                if name != "target" && (!name.starts_with('.') || name == ".ci") {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 30, "{found:?}");
    found
}

/// The lines of a document that are not code.
fn prose(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if !fenced {
            // Spans of code are every other part between backticks.
            lines.push(line.split('`').step_by(2).collect::<Vec<_>>().join("code"));
        }
    }
    lines
}

/// What a heading's anchor is on GitHub and in the book: its letters and digits, small, with hyphens for spaces.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut fenced = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug = slug(heading.trim());
        let count = seen.entry(slug.clone()).or_default();
        anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
        *count += 1;
    }
    anchors
}

/// Where the links of a text lead.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let text = prose(text).join("\n");
    for part in text.split("](").skip(1) {
        links.extend(part.split(')').next().map(|link| link.trim().to_owned()));
    }
    for line in text.lines() {
        if let Some((_, link)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            links.push(link.trim().to_owned());
        }
    }
    links
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    let mut followed = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let elsewhere = ["http://", "https://", "mailto:"];
            // Names of Rust's items are rustdoc's to check.
            if elsewhere.iter().any(|scheme| link.starts_with(scheme)) || link.contains("::") {
                continue;
            }
            followed += 1;
            let (path, anchor) = link.split_once('#').map_or((&*link, None), |(p, a)| (p, Some(a)));
            let target = match path {
                "" => document.clone(),
                path => document.parent().unwrap().join(path),
            };
            let said = || format!("{}: {link}", document.strip_prefix(root()).unwrap().display());
            if !target.exists() {
                broken.push(said());
            } else if let Some(anchor) = anchor
                && target.extension().is_some_and(|extension| extension == "md")
                && !anchors(&fs::read_to_string(&target).unwrap()).contains(anchor)
            {
                broken.push(format!("{} (no such heading)", said()));
            }
        }
    }
    assert!(followed > 100, "{followed}");
    assert_eq!(broken, [""; 0], "links that lead nowhere");
}

/// What stands between fences, and what stands between backticks elsewhere.
fn code(text: &str) -> (Vec<String>, BTreeSet<String>) {
    let (mut blocks, mut spans) = (Vec::new(), BTreeSet::new());
    for (index, part) in text.split("```").enumerate() {
        if index % 2 == 1 {
            blocks.push(part.to_owned());
        } else {
            let odd = part.split('`').skip(1).step_by(2);
            spans.extend(odd.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    (blocks, spans)
}

/// CI runs the first two of the English one, and compares what it shows.
#[test]
fn the_chinese_readme_has_the_commands_of_the_english_one() {
    let read = |name: &str| code(&fs::read_to_string(root().join(name)).unwrap());
    let ((english, spans), (chinese, theirs)) = (read("README.md"), read("README.zh.md"));
    assert!(english.len() > 5);
    assert_eq!(english, chinese);
    // Words of one's own language are in neither.
    let unknown: Vec<&String> =
        theirs.difference(&spans).filter(|span| span.contains(' ')).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_book_has_all_documents() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    let docs = root().join("docs");
    let there: BTreeSet<String> = documents()
        .iter()
        .filter_map(|path| Some(path.strip_prefix(&docs).ok()?.to_str()?.to_owned()))
        .filter(|name| name != "SUMMARY.md")
        .collect();
    assert_eq!(listed, there);
}

/// The gallery has each shipped scenario, with a picture that is there.
#[test]
fn the_gallery_has_all_scenarios() {
    let gallery = fs::read_to_string(root().join("docs/gallery.md")).unwrap();
    let links = links(&gallery);
    for stem in scenarios() {
        assert!(links.contains(&format!("scenarios/{stem}.md")), "{stem}");
        let picture = |link: &&String| link.starts_with(&format!("pictures/{stem}-"));
        assert_eq!(links.iter().filter(picture).count(), 1, "{stem}");
    }
}

/// The names of the shipped scenarios.
fn scenarios() -> Vec<String> {
    let files = fs::read_dir(root().join("scenarios")).unwrap().flatten();
    let names = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut stems: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned())).collect();
    stems.sort();
    stems
}

/// The tables of figures that documents have, of which each scenario's page shows its own rows.
struct Tables {
    readme: String,
    kernel: String,
    pictures: Vec<String>,
}

impl Tables {
    fn read() -> Self {
        let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
        let pictures = fs::read_dir(root().join("docs/pictures")).unwrap().flatten();
        let mut pictures: Vec<String> =
            pictures.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        // That of the gallery first.
        let gallery = read("docs/gallery.md");
        pictures.sort_by_key(|name| (!gallery.contains(&format!("pictures/{name}")), name.clone()));
        Self { readme: read("README.md"), kernel: read("docs/kernel.md"), pictures }
    }

    /// The row of the README.
    fn in_readme(&self, stem: &str) -> String {
        let named = format!("[`{stem}`](scenarios/{stem}.toml)");
        let row = self.readme.lines().find(|line| line.starts_with('|') && line.contains(&named));
        let row = row.unwrap_or_else(|| panic!("the README has no row of {stem}"));
        let (_, cells) = row.trim_start_matches('|').split_once('|').unwrap();
        format!("|{cells}").replace("](docs/", "](../")
    }

    /// The rows of real Linux and the model: below that which names the scenario are those that name none.
    fn in_both_worlds(&self, stem: &str) -> Vec<String> {
        let table = self.kernel.split("## The shipped scenarios").nth(1).unwrap();
        let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        let (mut found, mut is_mine) = (Vec::new(), false);
        for row in rows.take_while(|line| line.starts_with('|')) {
            let (_, cells) = row.split_once('|').unwrap();
            if let Some(name) = cells.trim_start().strip_prefix('`') {
                is_mine = name.split('`').next() == Some(stem);
            }
            if is_mine {
                let (what, rest) = cells.split_once('|').unwrap();
                let what = what.split_once(", ").map_or("", |(_, what)| what.trim());
                found.push(format!("| {what} |{rest}"));
            }
        }
        found
    }
}

/// The page of a scenario, of its file and of the figures that documents have.
fn page_of(stem: &str, tables: &Tables) -> String {
    let folder = root().join("scenarios");
    let source = fs::read_to_string(folder.join(format!("{stem}.toml"))).unwrap();
    let sweep = Sweep::parse_in(&folder, &source, &Overrides::default()).unwrap();
    let mut page = format!(
        "<!-- Made of the scenario's file and of the tables in README.md and docs/kernel.md by DUALQ_BLESS=1 cargo test -p dualq --test documents -->\n\n\
         # {}\n\n{}.\n\n```sh\ndualq run scenarios/{stem}.toml\n```\n\n",
        sweep.name,
        sweep.about.trim_end_matches('.')
    );
    let is_comment = |line: &&str| line.starts_with('#');
    let comments = source.lines().take_while(is_comment);
    for line in comments.clone().map(|line| line.trim_start_matches('#').trim()) {
        page.push_str(line);
        // Where a line ends a sentence a paragraph ends.
        page.push_str(if line.ends_with('.') { "\n\n" } else { "\n" });
    }
    for picture in tables.pictures.iter().filter(|name| {
        name.strip_prefix(stem).is_some_and(|rest| rest.starts_with('-') && rest.ends_with(".svg"))
    }) {
        let what = picture[stem.len() + 1..].trim_end_matches(".svg").replace('-', " ");
        page.push_str(&format!("![{}: {what}](../pictures/{picture})\n\n", sweep.name));
    }
    page.push_str("## Figures\n\n| what it shows | published | here |\n|---|---|---|\n");
    page.push_str(&format!("{}\n\n", tables.in_readme(stem)));
    for published in &sweep.published {
        page.push_str(&format!("- Published: {published}\n"));
    }
    let both = tables.in_both_worlds(stem);
    if !both.is_empty() {
        page.push_str("\nOn real Linux in virtual time and in the model ([with which seed and kernel, and why they differ](../kernel.md#the-shipped-scenarios)):\n\n");
        page.push_str("| | | published | Linux 7.3.4 | model |\n|---|---|--:|--:|--:|\n");
        page.push_str(&format!("{}\n", both.join("\n")));
    }
    let text: Vec<&str> = source.lines().skip(comments.count()).collect();
    page.push_str(&format!(
        "\n## The file\n\n`scenarios/{stem}.toml`, without the comment above; [what its keys mean](../scenario.md).\n\n```toml\n{}\n```\n",
        text.join("\n").trim()
    ));
    page
}

#[test]
fn the_pages_of_scenarios_are_as_their_files() {
    let tables = Tables::read();
    let folder = root().join("docs/scenarios");
    for stem in scenarios() {
        let (path, page) = (folder.join(format!("{stem}.md")), page_of(&stem, &tables));
        if std::env::var_os("DUALQ_BLESS").is_some() {
            fs::write(&path, &page).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            there, page,
            "DUALQ_BLESS=1 cargo test -p dualq --test documents writes it anew"
        );
    }
    let pages = fs::read_dir(&folder).unwrap().count();
    assert_eq!(pages, scenarios().len(), "a page of a scenario that is gone");
    // All rows of the table of both worlds are on a page.
    let rows = tables.kernel.split("## The shipped scenarios").nth(1).unwrap();
    let rows = rows.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let all = rows.take_while(|line| line.starts_with('|')).count();
    let shown: usize = scenarios().iter().map(|stem| tables.in_both_worlds(stem).len()).sum();
    assert_eq!(shown, all);
}

/// The other pictures take longer: CI draws them with `docs/pictures/make.sh`.
#[test]
fn the_picture_of_the_readme_is_what_its_command_draws() {
    let folder = tempfile::tempdir().unwrap();
    // The command stands in the picture, so it is called as the script calls it.
    std::os::unix::fs::symlink(root().join("scenarios"), folder.path().join("scenarios")).unwrap();
    fs::create_dir_all(folder.path().join("target/pictures")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.args(["run", "scenarios/narrow-vps.toml", "--svg", "target/pictures"]);
    command.args(["--quiet", "--no-progress"]).current_dir(folder.path());
    assert!(command.status().unwrap().success());
    let name = "narrow-vps-comparison.svg";
    let drawn = fs::read_to_string(folder.path().join("target/pictures").join(name)).unwrap();
    let shown = fs::read_to_string(root().join("docs/pictures").join(name)).unwrap();
    assert!(drawn == shown, "docs/pictures/make.sh draws it anew");
    assert!(drawn.len() < 60_000);
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(links(&readme).contains(&format!("docs/pictures/{name}")));
}

/// The names of all fields of a document, without those below the objects that are tc's.
fn fields(value: &Value, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                all.insert(key.clone());
                if key != "tc" {
                    fields(value, all);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| fields(value, all)),
        _ => {}
    }
}

/// What programs read has a page that names each of its fields.
#[test]
fn documents_for_programs_are_described() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = folder.path().join("one.jsonl");
    let all = fs::read_to_string(root().join("tests/data/linux-7.3/narrow.jsonl")).unwrap();
    fs::write(&recorded, all.lines().next().unwrap()).unwrap();
    let recorded = recorded.to_str().unwrap();
    let capture = "examples/captures/two-hosts.pcap";
    for (page, args) in [
        ("check", &["check", recorded, "--seeds", "2", "--json"][..]),
        ("replay", &["replay", capture, "--rate", "20mbit", "--json", "--distributions"]),
        ("mtu", &["mtu", "127.0.0.1", "--json"]),
    ] {
        let mut dualq = Command::new(env!("CARGO_BIN_EXE_dualq"));
        let output = dualq.args(args).current_dir(root()).output().unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut found = BTreeSet::new();
        fields(&document, &mut found);
        // The series are those of pictures, and distributions are described elsewhere.
        for of_series in [
            "arrived_mbit",
            "delivered_mbit",
            "delay_min_ms",
            "delay_max_ms",
            "marks",
            "drops",
            "interval_s",
            "samples",
            "share",
        ] {
            found.remove(of_series);
        }
        let text = fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap();
        let missing: Vec<_> =
            found.iter().filter(|field| !text.contains(&format!("`{field}`"))).collect();
        assert!(missing.is_empty(), "docs/{page}.md says nothing of {missing:?}");
    }
}
