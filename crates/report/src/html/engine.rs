//! The engine that a page can carry: the model in WebAssembly.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

/// What WebAssembly modules begin with, and the version of their form.
const MAGIC: &[u8] = b"\0asm\x01\0\0\0";

/// What asks the engine, in a worker.
const WORKER: &str = concat!(include_str!("page/engine.js"), include_str!("page/run.js"));

/// The engine of the playground, as pages have it.
#[derive(Clone, Debug)]
pub struct Engine(String);

/// Why a file is no engine for a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEngine {
    /// It is something else.
    #[error(
        "it is no WebAssembly module: give the dualq.wasm that `cargo run --manifest-path playground/Cargo.toml` builds"
    )]
    NoModule,
    /// It is no engine, or that of another version.
    #[error("it is not the engine of {0}: give the dualq.wasm that was built of the same sources")]
    Other(String),
}

impl Engine {
    /// Takes the engine's module, which has to be of `program`, the one that makes the page.
    ///
    /// # Errors
    /// If it is another file.
    ///
    /// # Panics
    /// Never: memory takes all.
    pub fn read(module: &[u8], program: &str) -> Result<Self, NoEngine> {
        if !module.starts_with(MAGIC) {
            return Err(NoEngine::NoModule);
        }
        // Its documents name what made them, and so it has the name in it.
        if !module.windows(program.len()).any(|bytes| bytes == program.as_bytes()) {
            return Err(NoEngine::Other(program.to_owned()));
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        let packed = packed.write_all(module).and_then(|()| packed.finish());
        let packed = STANDARD.encode(packed.expect("memory takes all"));
        // A worker from text is no module: what it is made of stands in one scope.
        let worker = WORKER.replace("\nexport class", "\nclass");
        Ok(Self(format!(
            "<script type=\"application/octet-stream\" id=\"engine\">{packed}</script>\n<script type=\"text/plain\" id=\"worker\">\n{worker}</script>"
        )))
    }

    /// The elements of a page that hold it.
    pub(super) fn elements(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_is_no_engine() {
        let read = |module: &[u8]| Engine::read(module, "dualq 1.2.3").map(|engine| engine.0);
        assert_eq!(read(b"<html>"), Err(NoEngine::NoModule));
        let other = [MAGIC, b"dualq 1.2.4"].concat();
        assert_eq!(read(&other), Err(NoEngine::Other("dualq 1.2.3".to_owned())));
        let elements = read(&[MAGIC, b"of dualq 1.2.3."].concat()).unwrap();
        assert_eq!(elements.matches("</script>").count(), 2, "nothing in it ends its element");
        assert!(!elements.contains("export class"), "no module");
    }
}
