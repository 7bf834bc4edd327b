//! The Python package, where there is a Python that has what its tests need: pytest, matplotlib, and a maturin that builds it. The
//! interpreter is `DUALQ_PYTHON`, else `python3`.

use std::path::Path;
use std::process::Command;

use tests_skipped::skipped;

#[test]
fn the_python_package_passes_its_tests() {
    let python = std::env::var("DUALQ_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = |module: &str| {
        let import = format!("import {module}");
        let output = Command::new(&python).args(["-c", &import]).output();
        output.is_ok_and(|output| output.status.success())
    };
    for module in ["maturin", "pytest", "matplotlib"] {
        if !has(module) {
            return skipped(&format!(
                "no {module}: pip install maturin pytest matplotlib pyarrow mypy, and DUALQ_PYTHON=path/to/python"
            ));
        }
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let folder = tempfile::tempdir().unwrap();
    let build = Command::new(package.join("build"))
        .args(["--debug"])
        .env("PYTHON", &python)
        .env("DUALQ_PROGRAM", env!("CARGO_BIN_EXE_dualq"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&build.stderr);
    assert!(build.status.success(), "{said}");
    // As its user installs it: in an environment of its own, which sees the packages of the one that has the tools.
    let environment = folder.path().join("venv");
    // Where no package of that name lies around.
    let run = |program: &Path, args: &[&str]| {
        let output =
            Command::new(program).args(args).current_dir(package.join("tests")).output().unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "{args:?}: {text}");
        text
    };
    let environment = environment.to_str().unwrap();
    run(Path::new(&python), &["-m", "venv", environment]);
    let own = Path::new(environment).join("bin/python");
    // The other's packages, wherever it has them.
    let sees = "import site, sys; print('\\n'.join(path for path in sys.path if path.endswith('-packages')))";
    let packages = run(Path::new(&python), &["-c", sees]);
    let place = run(&own, &["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]);
    std::fs::write(Path::new(place.trim()).join("tools.pth"), packages).unwrap();
    let wheel = std::fs::read_dir(package.join("target/wheels"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "whl"))
        .max_by_key(|path| path.metadata().and_then(|found| found.modified()).ok())
        .unwrap();
    run(
        &own,
        &["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel.to_str().unwrap()],
    );
    let said = run(&own, &["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "."]);
    for line in said.lines().filter(|line| line.starts_with("SKIPPED")) {
        skipped(line);
    }
}
