//! The model in WebAssembly: in node and in a real browser it gives the program's bytes, over all shipped scenarios; and the page around it, by clicks, keys and touch.
//!
//! Wants the target `wasm32-unknown-unknown` (`rustup target add`) and `node`; the page wants `chromium` too, the types `tsc`, which `DUALQ_TSC` may name.
//! `DUALQ_AXE` and `DUALQ_PICTURES` are as in `browser.rs`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tests_skipped::skipped;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// What is built once for all tests: the page and the package, or what is missing for that.
static BUILT: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !there("node") {
        return Err("no node: apt-get install nodejs".to_owned());
    }
    let rustc = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"])
        .output();
    let library = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if !library.is_ok_and(|library| Path::new(&library).is_dir()) {
        return Err(
            "no wasm32-unknown-unknown: rustup target add wasm32-unknown-unknown".to_owned()
        );
    }
    let folder = Path::new(ROOT).join("target/playground");
    let built = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--manifest-path", "playground/Cargo.toml", "--"])
        .arg(&folder)
        // What is compiled for tests is not what this is compiled with.
        .env_remove("RUSTFLAGS")
        .env("CARGO_TARGET_DIR", &folder)
        .current_dir(ROOT)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Ok(folder)
});

fn built() -> Option<&'static Path> {
    match &*BUILT {
        Ok(folder) => Some(folder),
        Err(missing) => {
            assert!(env::var_os("DUALQ_REQUIRE_BROWSER").is_none(), "{missing}");
            skipped(missing);
            None
        }
    }
}

/// The browser, unless it is missing, which is then said.
fn chromium() -> Option<&'static str> {
    let there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(there);
    if found.is_none() {
        assert!(env::var_os("DUALQ_REQUIRE_BROWSER").is_none(), "no chromium");
        skipped("no chromium: apt-get install chromium");
    }
    found
}

/// All shipped scenarios as requests, each with the program's document of the same.
static SCENARIOS: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let shipped = Path::new(ROOT).join("scenarios");
    let trace = fs::read_to_string(shipped.join("lte.trace")).unwrap();
    for file in fs::read_dir(&shipped).unwrap().flatten().map(|file| file.path()) {
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let name = file.file_stem().unwrap().to_str().unwrap();
        // As long as shows what each is about, on a machine that is slow; and what the command line has beside a file.
        let options: &[(&str, &str)] = match name {
            "web" => &[("qdisc", "fq_codel"), ("cc", "cubic")],
            "ipsec-mtu" => &[("seed", "3")],
            "gso-10g" | "lossy-lan" => &[("duration", "500ms"), ("interval", "100ms")],
            "l4s" => &[("duration", "1500ms")],
            _ => &[("duration", "3s")],
        };
        let mut request = Map::new();
        request.insert("scenario".to_owned(), fs::read_to_string(&file).unwrap().into());
        if name == "lte" {
            request.insert("files".to_owned(), json!({ "lte.trace": trace }));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
        command.args(["run", "--json", "--no-progress"]).arg(&file);
        for (option, value) in options {
            command.arg(format!("--{option}")).arg(value);
            let value = match *option {
                "qdisc" | "cc" => json!([value]),
                "seed" => json!(value.parse::<u64>().unwrap()),
                _ => Value::from(*value),
            };
            request.insert((*option).to_owned(), value);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let written = |extension: &str| folder.path().join(format!("{name}.{extension}"));
        fs::write(written("json"), json!({ "run": request }).to_string()).unwrap();
        fs::write(written("out"), output.stdout).unwrap();
    }
    folder
});

/// Runs a script of `tests/browser` with these arguments.
fn node(script: &str, arguments: &[&Path]) {
    let mut node = Command::new("node");
    node.arg(Path::new(ROOT).join("tests/browser").join(script)).args(arguments);
    let output = node.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    println!("{}", String::from_utf8_lossy(&output.stdout));
}

/// The npm package in node: the program's bytes, steps, observers, refusals.
#[test]
fn the_package_gives_the_programs_bytes() {
    let Some(folder) = built() else { return };
    node("engine.mjs", &[&folder.join("npm"), SCENARIOS.path()]);
    let example = Command::new("node").arg(folder.join("npm/example.mjs")).output().unwrap();
    assert!(example.status.success(), "{}", String::from_utf8_lossy(&example.stderr));
    insta::assert_snapshot!("example", String::from_utf8_lossy(&example.stdout));
}

/// What the package's types say is what whoever writes TypeScript may do with it, and no more.
#[test]
fn the_packages_types_are_the_compilers() {
    let Some(folder) = built() else { return };
    let compiler = env::var_os("DUALQ_TSC").unwrap_or_else(|| "tsc".into());
    if Command::new(&compiler).arg("--version").output().is_err() {
        skipped("no tsc: npm install --global typescript, or DUALQ_TSC=PATH");
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let user = here.path().join("types.ts");
    fs::copy(Path::new(ROOT).join("tests/browser/types.ts"), &user).unwrap();
    fs::write(here.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
    let modules = here.path().join("node_modules");
    fs::create_dir(&modules).unwrap();
    std::os::unix::fs::symlink(folder.join("npm"), modules.join("dualq")).unwrap();
    let checked = Command::new(&compiler)
        .args(["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom"])
        .args(["--module", "nodenext", "--types", ""])
        .arg(&user)
        .current_dir(here.path())
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// A report that carries the engine: its reader turns the knobs, and the report is of that.
#[test]
fn a_report_that_simulates() {
    let (Some(folder), Some(chromium)) = (built(), chromium()) else { return };
    let here = tempfile::tempdir().unwrap();
    let (plan, page) = (here.path().join("plan.toml"), here.path().join("report.html"));
    let text = "name = 'knobs'\nduration = '6s'\nwarmup = '2s'\n[link]\nrate = '5mbit'\nrtt = '20ms'\nqdisc = ['pfifo', 'fq_codel']\n[[flow]]\ncc = 'cubic'\n[[probe]]\nkind = 'ping'\n";
    fs::write(&plan, text).unwrap();
    let dualq = |program: &Path, plan: &Path, page: &Path, interactive: &str| {
        let mut dualq = Command::new(program);
        dualq.arg("run").arg(plan).args(["--quiet", "--seed", "7", "--report"]).arg(page);
        dualq.arg(interactive).output().unwrap()
    };
    let program = Path::new(env!("CARGO_BIN_EXE_dualq"));
    let engine = folder.join("npm/dualq.wasm");
    let given = |file: &Path| format!("--interactive={}", file.display());
    for (interactive, why) in [
        (given(&plan), "plan.toml: it is no WebAssembly module: give the dualq.wasm"),
        ("--interactive".to_owned(), "/share/dualq/dualq.wasm is there: dualq's archive and"),
    ] {
        let refused = dualq(program, &plan, &page, &interactive);
        assert_eq!(refused.status.code(), Some(2));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
        assert!(!page.exists(), "nothing half written");
    }
    let written = dualq(program, &plan, &page, &given(&engine));
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));

    // As it is unpacked from an archive: the engine is beside the program. The scenario has a trace, which goes along.
    let unpacked = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let installed = unpacked.path().join("dualq");
    fs::hard_link(program, &installed).unwrap();
    fs::copy(&engine, unpacked.path().join("dualq.wasm")).unwrap();
    let (traced, traced_page) = (here.path().join("traced.toml"), here.path().join("traced.html"));
    let text = text.replace("rate = '5mbit'", "trace = 'lte.trace'").replace("knobs", "traced");
    fs::write(&traced, text).unwrap();
    let trace = Path::new(ROOT).join("scenarios/lte.trace");
    fs::copy(&trace, here.path().join("lte.trace")).unwrap();
    let written = dualq(&installed, &traced, &traced_page, "--interactive");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let package = folder.join("npm");
    let pages = [&page, &package, &plan, &traced_page, &traced, &trace].map(PathBuf::as_path);
    node("knobs.mjs", &[&[Path::new(chromium)], &pages[..]].concat());
}

/// The page: one file of at most 3 MB, its stories, figures, links and looks.
#[test]
fn the_page_in_a_browser() {
    let (Some(folder), Some(chromium)) = (built(), chromium()) else { return };
    let page = folder.join("playground.html");
    assert!(fs::metadata(&page).unwrap().len() <= 3_000_000);
    let pictures = env::var_os("DUALQ_PICTURES").map(|all| PathBuf::from(all).join("playground"));
    if let Some(pictures) = &pictures {
        fs::create_dir_all(pictures).unwrap();
    }
    let package = folder.join("npm");
    let mut arguments = vec![Path::new(chromium), &page, &package, SCENARIOS.path()];
    arguments.extend(pictures.as_deref());
    node("playground.mjs", &arguments);
}
