//! Wrong calls, and what the program says.

use super::{dualq, folder};

/// The one line that is said, and the exit status.
fn refused(args: &[&str]) -> (String, Option<i32>) {
    let folder = folder();
    let (output, stdout, stderr) = dualq(folder.path(), args);
    assert_eq!(stdout, "", "{args:?}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    (stderr, output.status.code())
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    let usage = [
        (&["measure", "a b", "--token-file", "token"][..], "HOST"),
        (&["measure", "localhost"], "--token-file"),
        (&["measure", "localhost", "--token-file", "token", "--max-time", "1s"], "--max-time"),
        (&["measure", "localhost", "--token-file", "token", "--max-bytes", "0"], "--max-bytes"),
        (&["measure", "localhost", "--token-file", "token", "--rate", "50"], "--rate"),
        (&["measure", "localhost", "--token-file", "token", "--streams", "0"], "--streams"),
        (&["measure", "--http", "https://localhost/x"], "--http: https is not spoken here"),
        (&["measure", "--http", "localhost"], "http://example.org/large.iso"),
        (&["measure", "--http", "http://localhost/x", "--direction", "upload"], "--direction"),
        (&["measure", "localhost", "--iperf3", "--token-file", "token"], "--token-file"),
        (
            &["measure", "localhost", "--token-file", "token", "--scenario", "-"],
            "--scenario -: standard output is taken",
        ),
        (&["serve"], "--token-file"),
        (&["serve", "--token-file", "token", "--allow", "10.0.0.0/33"], "--allow"),
        (&["serve", "--token-file", "token", "--listen", "9332"], "--listen"),
    ];
    for (args, option) in usage {
        let (said, status) = refused(args);
        assert!(said.contains(option) && status == Some(2), "{args:?}: {status:?} {said}");
    }
    let failures = [
        (&["measure", "no-such-host.invalid", "--token-file", "token"][..], "cannot find the host"),
        (
            &["measure", "127.0.0.1", "--token-file", "token", "--port", "1"],
            "cannot reach 127.0.0.1:1",
        ),
        (&["measure", "127.0.0.1", "--token-file", "nothing"], "cannot read nothing"),
        (&["measure", "127.0.0.1", "--token-file", "/dev/null"], "64 hexadecimal digits"),
        (
            &["measure", "127.0.0.1", "--token-file", "/dev/zero"],
            "cannot read /dev/zero: it is no text",
        ),
        (
            &["serve", "--token-file", "token", "--listen", "192.0.2.1:9"],
            "cannot listen at 192.0.2.1:9",
        ),
        (&["serve", "--new", "token"], "token is there already"),
    ];
    for (args, what) in failures {
        let (said, status) = refused(args);
        assert!(said.contains(what) && status == Some(1), "{args:?}: {status:?} {said}");
    }
}

#[test]
fn the_help_teaches_by_examples() {
    for command in ["measure", "serve"] {
        let (output, stdout, _) = dualq(folder().path(), &[command, "--help"]);
        assert!(output.status.success());
        insta::assert_snapshot!(format!("{command}_help"), stdout);
    }
}
