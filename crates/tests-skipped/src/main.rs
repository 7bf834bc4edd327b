//! One line, after a test run: how many tests were skipped, and what they want.
#![forbid(unsafe_code)]

fn main() {
    println!("{}", tests_skipped::summary().unwrap_or_else(|| "no test has run".to_owned()));
}
