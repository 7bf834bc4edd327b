//! What sweeps print and write, and what they refuse.

use super::*;

#[test]
fn what_there_is_and_what_is_best() {
    let at = tempfile::tempdir().unwrap();
    let aim = "probe.p99 < 200ms, max goodput";
    let said = well(at.path(), &sweep(&[&TWELVE[..], &["--folder", "out", "--aim", aim]].concat()));
    let from =
        |begin: &str| said.lines().skip_while(|line| !line.starts_with(begin)).collect::<Vec<_>>();
    assert!(from("link.rate").len() > 3, "{said}");
    assert!(
        from("No other of 3 has both less ssh RTT p99 (ms) and more goodput (Mbit/s):").len() > 1,
        "{said}"
    );
    let best = from("Best by \"probe.p99 < 200ms, max goodput\": link.rate=8mbit");
    assert!(
        best.len() >= 5 && best[1].contains("ssh RTT p99 (ms): ") && best[1].contains(" ± "),
        "{said}"
    );
    assert_eq!(best[4], "  No other's 95 % interval meets its own.");
    let unknown = ["sweep", "--show", "--folder", "out", "--aim", "min ect_delay.p50"];
    let shown_without = well(at.path(), &unknown);
    let told = "None is the best by \"min ect_delay.p50\"\n  ECT delay p50 (ms): no run has it\n";
    assert!(shown_without.ends_with(told), "{shown_without}");
    // The same from the folder alone, and as other formats.
    let shown = well(at.path(), &["sweep", "--show", "--folder", "out", "--aim", aim]);
    assert_eq!(said.split_once('\n').unwrap().1, shown);
    let csv = well(at.path(), &["sweep", "--show", "--folder", "out", "--csv"]);
    assert!(csv.starts_with("link.rate,") && csv.lines().count() == 4, "{csv}");
    let page = ["report", "out", "-o", "out.html", "--svg", "."];
    assert_eq!(well(at.path(), &page), "");
    for file in ["out.html", "out-comparison.svg", "out-sweep.svg", "out-front.svg"] {
        assert!(fs::metadata(at.path().join(file)).unwrap().len() > 1000, "{file}");
    }
    // The scenario has no name, so that what varies is the page's.
    let page = fs::read_to_string(at.path().join("out.html")).unwrap();
    assert!(page.contains("<title>sweep of link.rate</title>"), "{}", &page[..800]);
    let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    let points = data["fronts"][0]["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    assert!(points.iter().any(|point| point["leads"] == true), "{points:?}");
}

#[test]
fn seeds_are_added_until_a_mean_is_known() {
    let at = tempfile::tempdir().unwrap();
    let vary = ["--vary", "link.rate=2mbit,4mbit", "--seeds", "2", "--folder", "out"];
    let until = ["--until", "ci(probe.p99) < 10%", "--most-seeds", "12"];
    let said = dualq(at.path(), &sweep(&[&vary[..], &until].concat()));
    assert!(said.status.success(), "{}", text(&said.stderr));
    let document = document(at.path(), "out");
    let seeds = &document["seeds"];
    let most = seeds["count"].as_u64().unwrap();
    assert!(most > 2 && most <= 12 && most.is_multiple_of(2), "{seeds}");
    assert_eq!(seeds["least"], 2, "the one hardly varies");
    // Those that stopped before the most know their mean; the others had no more.
    for summary in document["summary"].as_array().unwrap() {
        let figures = summary["figures"].as_array().unwrap();
        let p99 = figures.iter().find(|figure| figure["name"] == "p99").unwrap();
        let number = |key: &str| p99[key].as_f64().unwrap();
        let (count, mean, deviation) = (number("seeds"), number("mean"), number("deviation"));
        // Twice the standard error is less than Student's t makes of it.
        let is_known = 2.0 * deviation / count.sqrt() <= 0.1 * mean;
        assert!(is_known || count >= 12.0, "{p99}");
    }
    let never = ["--until", "ci(probe.p99) < 1us", "--most-seeds", "5"];
    let output = dualq(at.path(), &sweep(&[&vary[..], &never].concat()));
    let said = text(&output.stderr);
    assert!(
        said.contains(
            "note: ci(probe.p99) < 1us does not hold in 1 of 2 scenarios with 5 seeds, the most"
        ),
        "{said}"
    );
}

#[test]
fn bad_input_is_one_line_and_nothing_is_made() {
    let at = tempfile::tempdir().unwrap();
    fs::write(at.path().join("file.toml"), "[link]\nrate = '5mbot'\n").unwrap();
    let into = ["--folder", "out"];
    let wrong: [(&[&str], &str); 20] = [
        (&["--vary", "link.rate"], "give KEY=VALUES"),
        (
            &["--vary", "link.rat=1mbit"],
            "error: --vary link.rat=1mbit: unknown key \"link.rat\"; did you mean \"rate\"?",
        ),
        (&["--vary", "link.rate=1mbit,2mbot"], "error: --vary link.rate=2mbot: link.rate: "),
        (&["--zip", "link.rate=1mbot"], "error: --zip link.rate=1mbot: link.rate: "),
        (
            &["--vary", "link.rate=1mbit..2mbit"],
            "error: --vary link.rate: a range has no end of values",
        ),
        (
            &["--zip", "link.rate=1mbit,2mbit", "--zip", "link.rtt=1ms"],
            "error: --zip link.rtt has 1 values",
        ),
        (&["--shard", "0/4"], "give I/N with I from 1 to N, such as 3/16"),
        (
            &["--until", "probe.p99 < 5%"],
            "error: --until: \"probe.p99 < 5%\": give ci(FIGURE) < BOUND",
        ),
        (
            &["--until", "ci(probe.p99) < 5"],
            "error: --until: \"5\": give a time, such as 20ms, or a share of the mean, such as 5%",
        ),
        (
            &["--aim", "max goodputs"],
            "error: --aim: no figure is called \"goodputs\"; there are goodput,",
        ),
        (&["--latin", "3", "--random", "3"], "cannot be used with"),
        (&["--latin", "0"], "error: --latin: \"0\": give a whole number of 1 or more"),
        (&["file.toml"], "error: file.toml: line 2: link.rate: "),
        (&["--most-seeds", "5"], "--until"),
        (&["--draw", "5"], "--latin"),
        (&["--report", "-"], "no room for the table: add --quiet, or give a file"),
        (&["--show", "--seeds", "5"], "--seeds"),
        (&["--show", "--world", "kernel"], "--world"),
        (&["--show", "--random", "5"], "--random"),
        (
            &["--seeds", "10", "--until", "ci(goodput) < 5%", "--most-seeds", "5"],
            "error: --most-seeds 5: each scenario gets 10 already, by --seeds; give as many or more",
        ),
    ];
    for (args, expected) in wrong {
        let said = failure(at.path(), 2, &[&["sweep"], args, &into].concat());
        assert!(said.contains(expected), "{said}");
        assert!(!at.path().join("out").exists(), "{args:?}");
    }
    let said = failure(at.path(), 1, &["sweep", "--show", "--folder", "out"]);
    assert_eq!(
        said,
        "error: --folder out: there is no such folder; without --show a sweep makes it"
    );
    let said = failure(at.path(), 1, &["sweep", "--show", "--folder", "."]);
    assert_eq!(
        said,
        "error: .: no folder of dualq sweep: it has no README that begins with \"Runs of dualq sweep, form 1\""
    );
    let said = failure(at.path(), 1, &["sweep", "--folder", "."]);
    assert_eq!(
        said,
        "error: .: no folder of dualq sweep, and not empty; give one that is empty, or a new one"
    );
    let said = failure(at.path(), 1, &["report", ".", "-o", "x.html"]);
    assert!(said.starts_with("error: .: no folder of dualq sweep: "), "{said}");
}

#[test]
fn samples_that_are_the_same_are_told() {
    let at = tempfile::tempdir().unwrap();
    let some = ["--vary", "flow.0.count=1..3", "--latin", "5", "--folder", "out", "--csv"];
    let output = dualq(at.path(), &sweep(&some));
    assert!(output.status.success());
    assert_eq!(text(&output.stdout).lines().count(), 4, "three runs below the titles");
    assert_eq!(
        text(&output.stderr),
        "note: 2 of 5 samples are the same as others, and are left out: there are few values to draw from\n"
    );
}

#[test]
fn a_search_says_what_it_tried_and_the_best_in_tcs_words() {
    let at = tempfile::tempdir().unwrap();
    let vary = ["--vary", "link.qdisc=dualpi2 target {1ms..60ms:log}", "--vary", "link.rtt=20ms"];
    let link = [
        "--vary",
        "link.rate=20mbit",
        "--vary",
        "flow.0.cc=cubic",
        "--vary",
        "duration=8s",
        "--vary",
        "warmup=2s",
    ];
    let call = [&["tune"], &vary[..], &link, &["--aim", "probe.p50 < 40ms, max goodput"]].concat();
    let said = failure(at.path(), 2, &call);
    assert!(
        said.starts_with("error: --aim: no figure is called \"probe.p50\"; there are "),
        "{said}"
    );
    let call =
        [&call[..call.len() - 1], &["probe.mean < 30ms, max goodput", "--tries", "16", "--json"]]
            .concat();
    let document: Value = serde_json::from_str(&well(at.path(), &call)).unwrap();
    let tries = document["tries"].as_array().unwrap();
    assert!((8..=16).contains(&tries.len()), "{}", tries.len());
    let mean = |one: &Value, name: &str| {
        let figures = one["figures"].as_array().unwrap();
        let figure = figures.iter().find(|figure| figure["name"] == name).unwrap();
        let values: Vec<f64> =
            figure["values"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        assert_eq!(values.len(), 3);
        values.iter().sum::<f64>() / 3.0
    };
    let best = &tries[document["best"].as_u64().unwrap() as usize];
    assert_eq!(best["keeps"], true);
    assert!(mean(best, "probe.0.mean") < 30.0);
    for other in tries.iter().filter(|one| one["keeps"] == true) {
        assert!(mean(other, "goodput") <= mean(best, "goodput"));
    }
    let qdisc = document["qdisc"].as_str().unwrap();
    assert_eq!(qdisc, format!("dualpi2 target {}", best["settings"]["target"].as_str().unwrap()));
    // The same call finds the same, in words.
    let words = well(at.path(), &call[..call.len() - 1]);
    assert!(words.contains(&format!("\n  tc qdisc replace dev DEV root {qdisc}\n")), "{words}");
    assert_eq!(words.lines().filter(|line| line.contains("target=")).count(), tries.len() + 1);
    let lists = ["tune", "--vary", "link.rate=1mbit,2mbit", "--aim", "max goodput"];
    assert!(failure(at.path(), 2, &lists).contains("a search is in ranges"));
    let said = failure(at.path(), 2, &["tune", "--aim", "max goodput"]);
    assert!(said.starts_with("error: --vary needs a range LEAST..MOST"), "{said}");
    // No packet of CUBIC's has ECT unless it asks for it.
    let aim = ["--vary", "link.rtt=20ms..30ms", "--tries", "4", "--aim", "min ect_delay.p50"];
    let said = failure(at.path(), 1, &[&["tune"], &link[..], &aim].concat());
    assert_eq!(said, "error: no try is the best by \"min ect_delay.p50\": no run has that");
    // What passes leaves nothing.
    assert_eq!(fs::read_dir(at.path()).unwrap().count(), 0);
}

/// What the help shows can be typed.
#[test]
fn the_searches_in_the_help_run() {
    let at = tempfile::tempdir().unwrap();
    let help = well(at.path(), &["tune", "--help"]).replace("\\\n", " ");
    let examples: Vec<&str> =
        help.lines().map(str::trim).filter(|line| line.starts_with("dualq tune ")).collect();
    assert_eq!(examples.len(), 2, "{help}");
    for example in examples {
        let words = format!("\"$DUALQ\" {} --tries 2", example.strip_prefix("dualq ").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", &words]).env("DUALQ", env!("CARGO_BIN_EXE_dualq")).current_dir(at.path());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
