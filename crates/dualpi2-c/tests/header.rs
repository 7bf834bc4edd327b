//! The header that is checked in is the one that the sources make.

use std::path::Path;
use std::{env, fs};

#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("include/dualpi2.h");
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_config(cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap())
        .with_src(root.join("src/lib.rs"))
        .generate()
        .unwrap()
        .write(&mut header);
    let header = String::from_utf8(header).unwrap();
    if env::var_os("DUALPI2_BLESS").is_some() {
        fs::write(&path, header).unwrap();
        return;
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == header,
        "include/dualpi2.h is stale; refresh it with\n    DUALPI2_BLESS=1 cargo test -p dualpi2-c --test header"
    );
}
