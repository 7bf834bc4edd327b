//! Which kernels of a machine have a dualpi2 that is a module, and whose it is.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use dualq_host::building::Obstacle;
use serde::Serialize;

use crate::MODULE;
use crate::build::in_the_way;
use crate::install::Installation;

/// Who put a module there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// It came with the kernel.
    Kernel,
    /// DKMS.
    Dkms,
    /// `dualq module install`, by hand.
    Dualq,
    /// Somebody else.
    Other,
}

/// A module that is installed for a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The kernel's release.
    pub release: String,
    /// The file, as the machine knows it.
    pub file: String,
    /// Who put it there.
    pub by: By,
    /// Whether a signature is appended to it; nothing if the file cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
}

/// Where modules are put below a kernel's folder, and by whom.
const PLACES: [(&str, By); 5] = [
    ("updates/dualq", By::Dualq),
    ("updates/dkms", By::Dkms),
    ("updates", By::Other),
    // Where DKMS puts them on Fedora, and others by hand.
    ("extra", By::Other),
    ("kernel/net/sched", By::Kernel),
];

/// What the kernel's sign-file leaves at the end (scripts/sign-file.c).
const SIGNATURE: &[u8] = b"~Module signature appended~\n";

/// In bytes, unpacked; no module of one queue discipline is near it.
const LONGEST: u64 = 64 << 20;

impl Installation {
    /// All kernels that have one, by release.
    #[must_use]
    pub fn kernels(&self) -> Vec<Found> {
        let releases = names(&self.root.at("/lib/modules"));
        releases.iter().filter_map(|release| self.found(release)).collect()
    }

    fn found(&self, release: &str) -> Option<Found> {
        PLACES.iter().find_map(|(place, by)| {
            let folder = format!("/lib/modules/{release}/{place}");
            let files = names(&self.root.at(&folder));
            let name = files.iter().find(|name| {
                let packed = name.strip_prefix(MODULE).and_then(|rest| rest.strip_prefix(".ko"));
                matches!(packed, Some("" | ".gz" | ".xz" | ".zst"))
            })?;
            let file = format!("{folder}/{name}");
            let signed = is_signed(&self.root.at(&file)).ok();
            Some(Found { release: release.to_owned(), file, by: *by, signed })
        })
    }

    /// Whether the running kernel has it, built in or loaded.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.root.at("/sys/module").join(MODULE).exists()
    }

    /// What stands in the way of a module for the running kernel.
    #[must_use]
    pub fn obstacles(&self) -> Vec<Obstacle> {
        in_the_way(&self.root, &self.running(), None).0
    }

    /// What the running kernel is.
    #[must_use]
    pub fn running(&self) -> String {
        let release = fs::read_to_string(self.root.sysctl("kernel.osrelease"));
        release.unwrap_or_default().trim().to_owned()
    }
}

/// Whether a file ends so that may be compressed, as DKMS does where the kernel's own modules are.
fn is_signed(path: &Path) -> io::Result<bool> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let file = BufReader::new(File::open(path)?);
    let stream: Box<dyn Read> = match path.extension().and_then(|end| end.to_str()) {
        Some("gz") => Box::new(flate2::read::GzDecoder::new(file)),
        Some("xz") => Box::new(lzma_rust2::XzReader::new(file, false)),
        Some("zst") => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(file);
            Box::new(decoder.map_err(io::Error::other)?)
        }
        _ => Box::new(file),
    };
    // No more is kept of it than its end, and what is longer is no module.
    let mut stream = BufReader::new(stream.take(LONGEST + 1));
    let (mut end, mut length) = (Vec::new(), 0);
    loop {
        let part = stream.fill_buf()?;
        if part.is_empty() {
            return Ok(end == SIGNATURE);
        }
        let count = part.len();
        length += count as u64;
        if length > LONGEST {
            return Err(io::Error::other("it is longer than any module"));
        }
        end.extend_from_slice(part);
        end.drain(..end.len().saturating_sub(SIGNATURE.len()));
        stream.consume(count);
    }
}

/// What is in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use dualq_host::Root;

    use super::*;

    /// [`SIGNATURE`] as `xz --check=crc32` packs it, which is how the kernel wants it.
    const PACKED: &[u8] = b"\xfd7zXZ\x00\x00\x01i\x22\xde6\x02\x00!\x01\x16\x00\x00\x00t/\xe5\xa3\x01\x00\x1b~Module signature appended~\x0a\x00\xb2\xc4\x88\xc8\x00\x010\x1c\x97\xdf\xc1\xeb\x90B\x99\x0d\x01\x00\x00\x00\x00\x01YZ";

    #[test]
    fn packed_modules_tell_whether_they_are_signed() {
        let root = tempfile::tempdir().unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(SIGNATURE).unwrap();
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let zst = |bytes| ruzstd::encoding::compress_to_vec(bytes, level);
        for (release, end, bytes, signed) in [
            ("1", "", SIGNATURE.to_vec(), Some(true)),
            ("2", ".gz", gz.finish().unwrap(), Some(true)),
            ("3", ".xz", PACKED.to_vec(), Some(true)),
            ("4", ".zst", zst(SIGNATURE), Some(true)),
            ("5", ".zst", zst(b"ELF".as_slice()), Some(false)),
            ("6", ".xz", PACKED[..20].to_vec(), None),
        ] {
            let folder = root.path().join(format!("lib/modules/{release}/updates/dkms"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("{MODULE}.ko{end}")), bytes).unwrap();
            let found = Installation::below(Root::new(root.path())).found(release).unwrap();
            assert_eq!((found.by, found.signed), (By::Dkms, signed), "{release}{end}");
        }
    }
}
