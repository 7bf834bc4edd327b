//! The file that keeps sysctls, and what else is read at boot.

use super::check::sysctl_key;
use super::linux::{Draft, sentence};
use super::sysctls::{Wanted, plain};
use super::{What, boot};
use crate::facts::{Os, Setting};

/// The key of a line of such a file.
fn key_of(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim())
}

/// Where a file stands among those that are read at boot: those of these folders by their names, all others later.
fn place(file: &str, systemd: bool) -> &str {
    match file.rsplit_once('/') {
        Some((folder, name)) if folder.ends_with("sysctl.d") => name,
        // For systemd-sysctl it is there by a link that distributions put.
        _ if systemd && file == "/etc/sysctl.conf" => "99-sysctl.conf",
        _ => "~",
    }
}

impl Draft<'_> {
    /// Sets what is wanted, now and at boot. If that is all that dualq is to set, what an earlier plan set besides goes; else it stays.
    pub(super) fn sysctls(&mut self, wanted: &[Wanted<'_>], is_all: bool) {
        let ours: Vec<String> = self.set_by_us();
        let mut lasting = Vec::new();
        for wanted in wanted {
            let running = self.facts.sysctls.get(wanted.key).cloned().unwrap_or_default();
            let changes = plain(&running) != wanted.value;
            if changes || wanted.against.is_some() || ours.iter().any(|key| key == wanted.key) {
                lasting.push(wanted);
            }
            if changes {
                let (key, after) = (wanted.key.to_owned(), wanted.value.clone());
                let what = What::Sysctl { key, before: running, after };
                self.push(what, wanted.why.clone(), wanted.source);
            }
        }
        let path = self.sysctl_path(&lasting);
        let left = |key: &str| !wanted.iter().any(|wanted| wanted.key == key);
        let kept = if is_all { Vec::new() } else { self.paragraphs(&left) };
        if is_all {
            for key in ours.iter().filter(|key| left(key)) {
                self.notes.push(format!(
                    "{key} is no longer set by dualq; its running value stays until the next boot"
                ));
            }
        }
        let mut content = boot::head(path, "Sysctls keep these values over a restart.");
        for Wanted { key, value, why, source, .. } in &lasting {
            content.push_str(&format!("\n# {} ({source})\n{key} = {value}\n", sentence(why)));
        }
        for paragraph in &kept {
            content.push_str(&format!("\n{paragraph}\n"));
        }
        if lasting.is_empty() && kept.is_empty() {
            content = boot::head(path, boot::NOTHING);
        }
        for file in [boot::SYSCTL, boot::SYSCTL_LAST] {
            if file == path && !(lasting.is_empty() && self.lines_of(file).is_empty()) {
                let why = "sysctls keep these values over a restart".to_owned();
                self.file(file, content.clone(), why, "sysctl.d(5), sysctl.conf(5)");
            } else if file != path && !self.lines_of(file).is_empty() {
                let why = "what an earlier plan set here is now in another file".to_owned();
                self.file(file, boot::head(file, boot::NOTHING), why, "sysctl.d(5)");
            }
        }
    }

    /// The keys that files of ours set.
    fn set_by_us(&self) -> Vec<String> {
        let files = [boot::SYSCTL, boot::SYSCTL_LAST];
        let lines = files.iter().flat_map(|path| self.lines_of(path));
        lines.filter_map(|line| key_of(&line).map(str::to_owned)).collect()
    }

    /// The paragraphs of files of ours that set a key which is `left`.
    fn paragraphs(&self, left: &dyn Fn(&str) -> bool) -> Vec<String> {
        let files = [boot::SYSCTL, boot::SYSCTL_LAST].map(|path| self.facts.files.get(path));
        let texts = files.into_iter().flatten().flat_map(|file| file.content.split("\n\n"));
        let kept = texts.filter(|text| {
            let mut keys = boot::working_lines(text).map(key_of).peekable();
            let kept = |key| left(key) && sysctl_key(key, Os::Linux).is_ok();
            keys.peek().is_some() && keys.all(|key| key.is_some_and(kept))
        });
        kept.map(|text| text.trim().to_owned()).collect()
    }

    /// Which of our files: the one that is read last, if that helps against somebody else's. Says who is in the way.
    fn sysctl_path(&mut self, lasting: &[&Wanted<'_>]) -> &'static str {
        let systemd = self.facts.distribution.init == "systemd";
        let (usual, last) = (place(boot::SYSCTL, systemd), place(boot::SYSCTL_LAST, systemd));
        let others: Vec<&Setting> = lasting.iter().filter_map(|wanted| wanted.against).collect();
        let helps = others.iter().any(|other| {
            let place = place(&other.file, systemd);
            place > usual && place < last
        });
        // Where nothing is set, what is there may stay where it is.
        let stays = lasting.is_empty() && !self.lines_of(boot::SYSCTL_LAST).is_empty();
        let path = if helps || stays { boot::SYSCTL_LAST } else { boot::SYSCTL };
        for Setting { file, line, key, value } in others {
            let place = place(file, systemd);
            if place > last {
                self.notes.push(format!(
                    "{file}, line {line}, sets {key} to {value} at boot and is read last: take that line out, or it wins"
                ));
            } else if place > usual {
                self.notes.push(format!(
                    "{file}, line {line}, sets {key} to {value}: {path} has its name to be read after it"
                ));
            }
        }
        path
    }
}
