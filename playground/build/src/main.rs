//! Builds the playground: the engine for WebAssembly, the page around it as one HTML file, and the npm package.
//!
//! `cargo run --manifest-path playground/Cargo.toml [FOLDER]` leaves them in the folder, or in `target/playground`. It needs cargo and the
//! target wasm32-unknown-unknown, and nothing else.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

const TARGET: &str = "wasm32-unknown-unknown";

/// A page that is larger is hard to send on.
const MOST_PAGE_BYTES: usize = 3_000_000;

/// The page's script, in the order in which its parts need each other. The report's own are shared: both are of one family.
const SCRIPT: [&str; 10] = [
    "crates/report/src/html/page/elements.js",
    "crates/report/src/html/page/colours.js",
    "crates/report/src/html/page/copy.js",
    "crates/report/src/html/page/module.js",
    "playground/page/state.js",
    "playground/page/scenario.js",
    "playground/page/side.js",
    "playground/page/draw.js",
    "playground/page/stories.js",
    "playground/page/main.js",
];
const STYLES: [&str; 2] = ["crates/report/src/html/page/page.css", "playground/page/page.css"];
const WORKER: [&str; 2] = ["crates/report/src/html/page/engine.js", "playground/page/worker.js"];

/// What the package has beside the engine.
const PACKAGE: [&str; 8] = [
    "playground/npm/package.json",
    "playground/npm/index.js",
    "playground/npm/index.d.ts",
    "crates/report/src/html/page/engine.js",
    "playground/npm/example.mjs",
    "playground/npm/README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let mut arguments = env::args_os().skip(1);
    let folder = arguments.next().map_or_else(|| root.join("target/playground"), PathBuf::from);
    if let Some(more) = arguments.next() {
        return Err(format!("{more:?}: give one folder, or none"));
    }
    let code = engine(&root)?;
    let page = page(&root, &code)?;
    if page.len() > MOST_PAGE_BYTES {
        return Err(format!("the page has {} bytes, more than {MOST_PAGE_BYTES}", page.len()));
    }
    let package = folder.join("npm");
    create(&package)?;
    for file in PACKAGE {
        let name = Path::new(file).file_name().unwrap_or_default();
        write(&package.join(name), read(&root, file)?.as_bytes())?;
    }
    write(&package.join("dualq.wasm"), &code)?;
    let file = folder.join("playground.html");
    write(&file, page.as_bytes())?;
    println!("{} ({} kB)", file.display(), page.len() / 1000);
    println!("{} ({} kB of WebAssembly)", package.display(), code.len() / 1000);
    Ok(())
}

/// The engine's module.
fn engine(root: &Path) -> Result<Vec<u8>, String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let library =
        Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    let library = library.map_err(|error| format!("cannot run rustc: {error}"))?;
    if !Path::new(String::from_utf8_lossy(&library.stdout).trim()).is_dir() {
        return Err(format!("the target {TARGET} is not installed: rustup target add {TARGET}"));
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = root.join("target/playground");
    let built = Command::new(cargo)
        .args([
            "build",
            "--profile",
            "engine",
            "--locked",
            "--package",
            "dualq-engine",
            "--target",
            TARGET,
        ])
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status();
    if !built.map_err(|error| format!("cannot run cargo: {error}"))?.success() {
        return Err("the engine does not compile".to_owned());
    }
    let file = target.join(TARGET).join("engine/dualq_engine.wasm");
    fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))
}

/// The page, with all that it needs inside.
fn page(root: &Path, code: &[u8]) -> Result<String, String> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let packed = packed.write_all(code).and_then(|()| packed.finish());
    let packed = packed.map_err(|error| format!("the engine cannot be packed: {error}"))?;
    let all = |files: &[&str]| -> Result<String, String> {
        files.iter().map(|file| read(root, file)).collect()
    };
    // A worker from text is no module: what it is made of stands in one scope.
    let worker = all(&WORKER)?.replace("\nexport class", "\nclass");
    let puts = [
        ("{{styles}}", all(&STYLES)?),
        ("{{engine}}", STANDARD.encode(packed)),
        ("{{worker}}", worker),
        ("{{script}}", all(&SCRIPT)?),
    ];
    let template = read(root, "playground/page/page.html")?;
    let (mut page, mut rest) = (String::new(), template.as_str());
    for (place, text) in &puts {
        let (before, behind) =
            rest.split_once(place).ok_or_else(|| format!("page.html has no {place}"))?;
        if text.contains("</script") || text.contains("</style") {
            return Err(format!("what is put in {place} ends its element"));
        }
        page.extend([before, text]);
        rest = behind;
    }
    Ok(page + rest)
}

fn read(root: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}

fn create(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Whole or not at all.
fn write(file: &Path, contents: &[u8]) -> Result<(), String> {
    let beside = file.with_extension("new");
    let written = fs::write(&beside, contents).and_then(|()| fs::rename(&beside, file));
    written.map_err(|error| format!("{}: {error}", file.display()))
}
