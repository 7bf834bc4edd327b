//! In every test run, so that one in which nothing is skipped is known as well.

#[test]
fn is_noted() {
    tests_skipped::note_test_run();
}
