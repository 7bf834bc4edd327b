//! The documents: links between them lead somewhere, the book has all of them, and the README's picture is what its command draws.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

#[test]
fn the_book_has_all_documents() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    let there: BTreeSet<String> = fs::read_dir(root().join("docs"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
        .collect();
    assert_eq!(listed, there);
}

/// The gallery has each shipped scenario, with a picture that is there.
#[test]
fn the_gallery_has_all_scenarios() {
    let gallery = fs::read_to_string(root().join("docs/gallery.md")).unwrap();
    let links = links(&gallery);
    for entry in fs::read_dir(root().join("scenarios")).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".toml") else { continue };
        assert!(links.contains(&format!("../scenarios/{name}")), "{name}");
        let picture = |link: &&String| link.starts_with(&format!("pictures/{stem}-"));
        assert_eq!(links.iter().filter(picture).count(), 1, "{stem}");
    }
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
