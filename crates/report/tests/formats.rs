//! What a report is written as, of results as they come and of a document that was read back.

use std::ops::ControlFlow;

use dualq_report::{Report, Style, csv, flent, html, json, svg, text};
use dualq_scenario::{Outcome, Scenario, Sweep};
use dualq_worlds::{Model, Observer, Origin, Results, Seeds, World, WorldError};
use serde_json::Value;

/// The model as if it were real Linux.
struct Twin;

impl World for Twin {
    fn name(&self) -> &'static str {
        "twin"
    }

    fn kernel_version(&self) -> Option<&str> {
        Some("7.3")
    }

    fn refuses(&self, scenario: &Scenario) -> Option<String> {
        Model.refuses(scenario)
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, WorldError> {
        Model.run(scenario, seed, observer)
    }
}

fn results(sweep: &str, worlds: &[&dyn World], seeds: u64) -> Results {
    let sweep = Sweep::parse(&format!("duration = '3s'\nwarmup = '1s'\n{sweep}")).unwrap();
    let seeds = Seeds::new(1, seeds).unwrap();
    Results::play(&sweep, worlds, seeds, &|_| ControlFlow::Continue(())).unwrap()
}

const QUEUES: &str = "[link]\nrate = '5mbit'\nqdisc = ['pfifo limit 100', 'dualpi2']\n[[flow]]\ncc = 'cubic'\n[[probe]]\nkind = 'ping'";

#[test]
fn all_formats_are_the_same_of_a_document_that_was_read_back() {
    for (worlds, seeds) in [(&[&Model as &dyn World][..], 1), (&[&Model, &Twin], 2)] {
        let results = results(QUEUES, worlds, seeds);
        let report = Report::of(&results);
        let document = json::write(&report);
        let read: Results = serde_json::from_str(&document).unwrap();
        let again = Report::of(&read);
        assert_eq!(json::write(&again), document);
        assert_eq!(csv::write(&again), csv::write(&report));
        let style = Style { width: Some(60), colour: true, graphs: true };
        assert_eq!(text::write(&again, &style), text::write(&report, &style));
    }
}

/// The document's summary, the table and the lines for spreadsheets have the same numbers.
#[test]
fn formats_agree() {
    let results = results(QUEUES, &[&Model], 1);
    let report = Report::of(&results);
    let document: Value = serde_json::from_str(&json::write(&report)).unwrap();
    let figures = document["summary"][1]["figures"].as_array().unwrap();
    let drops = figures.iter().find(|figure| figure["name"] == "drops").unwrap();
    assert_eq!((&drops["group"], &drops["unit"]), (&"queue".into(), &"count".into()));
    let drops = drops["mean"].as_f64().unwrap();
    assert_eq!(document["runs"][1]["outcome"]["queue"]["drops"].as_f64(), Some(drops));

    let lines = csv::write(&report);
    let mut lines = lines.lines();
    assert!(lines.next().unwrap().ends_with(",queue drops"));
    assert!(lines.nth(1).unwrap().ends_with(&format!(",{drops:.0}")));

    let page = text::write(&report, &Style::default());
    let row = page.lines().find(|line| line.starts_with("dualpi2 ")).unwrap();
    assert!(row.ends_with(&format!(" {drops:.0}")), "{row}");
}

#[test]
fn the_best_is_in_bold_only_where_colours_are_wanted() {
    let results = results(QUEUES, &[&Model], 1);
    let report = Report::of(&results);
    let plain = text::write(&report, &Style::default());
    assert!(!plain.contains('\x1b'));
    let coloured = text::write(&report, &Style { colour: true, ..Style::default() });
    let bold: Vec<&str> = coloured.lines().filter(|line| line.contains("\x1b[1m")).collect();
    assert_eq!(bold.len(), 1, "{coloured}");
    assert!(bold[0].starts_with("\x1b[1mdualpi2 "), "{coloured}");
    assert_eq!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", ""), plain);
}

/// Nothing in a document can steer a terminal.
#[test]
fn a_name_is_text() {
    let results = results(&format!("name = \"a\\u001b[2Jb\"\n{QUEUES}"), &[&Model], 1);
    let page = text::write(&Report::of(&results), &Style { colour: true, ..Style::default() });
    assert!(page.starts_with("a\\u001b[2Jb\n"), "{page}");
}

/// The CSV of series has what the document has: the same names, and each value.
#[test]
fn series_for_spreadsheets_are_those_of_the_document() {
    let results = results(&format!("distributions = true\n{QUEUES}"), &[&Model], 1);
    let document = serde_json::to_value(&results).unwrap();
    let text = csv::series(&results);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("qdisc,world,seed,t_s,series,of,flow,value"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    for run in document["runs"].as_array().unwrap() {
        let qdisc = run["settings"]["qdisc"].as_str().unwrap();
        let series = run["outcome"]["series"].as_object().unwrap();
        let times = series["t_s"].as_array().unwrap();
        for (name, lists) in
            series.iter().filter(|(key, _)| !["interval_s", "t_s"].contains(&key.as_str()))
        {
            let flat = |value: &Value| -> Vec<f64> {
                let mut numbers = Vec::new();
                let mut rest = vec![value];
                while let Some(value) = rest.pop() {
                    match value {
                        Value::Array(list) => rest.extend(list.iter().rev()),
                        value => numbers.extend(value.as_f64()),
                    }
                }
                numbers
            };
            let of_name = rows.iter().filter(|row| row[0] == qdisc && row[4] == name);
            let written: Vec<f64> = of_name.map(|row| row[7].parse().unwrap()).collect();
            assert_eq!(written, flat(lists), "{qdisc}: {name}");
        }
        let seen = rows.iter().filter(|row| row[0] == qdisc && row[4] == "queue_packets");
        assert_eq!(seen.count(), times.len());
    }
}

/// Whatever is in a document, the page holds it as data and nothing else, and carries the licence of what draws it.
#[test]
fn a_page_holds_names_as_data() {
    let mut results = results(&format!("distributions = true\n{QUEUES}"), &[&Model, &Twin], 2);
    results.name = "</script><script>alert(1)</script>".to_owned();
    let page = html::write(&[Report::of(&results)], "dualq test", None);
    assert!(!page.contains("<script>alert"), "a name became markup");
    assert!(page.contains("Copyright (c) 2022 Leon Sorokin"), "the licence comes along");
    let begins = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let ends = begins + page[begins..].find("</script>").unwrap();
    let data: Value = serde_json::from_str(&page[begins..ends]).unwrap();
    assert_eq!(data["title"], results.name);
    assert_eq!(data["rows"].as_array().unwrap().len(), 4);
    assert_eq!(data["worlds"].as_array().unwrap().len(), 2);
    // The model beside itself: nothing differs.
    let figures = data["worlds"][0]["figures"].as_array().unwrap();
    assert!(!figures.is_empty() && figures.iter().all(|figure| figure["differs"] == false));
    // The text of each row is a sweep of that very scenario.
    for row in data["rows"].as_array().unwrap() {
        let sweep = Sweep::parse(row["text"].as_str().unwrap()).unwrap();
        let scenarios = sweep.variants();
        assert_eq!(scenarios.len(), 1);
        assert!(results.runs().iter().any(|run| run.scenario == scenarios[0].scenario));
    }
}

/// Ten minutes with a hundred flows stay small, and say that they are thinned.
#[test]
fn a_page_of_a_long_run_is_small() {
    let flows = "[[flow]]\ncc = 'cubic'\ncount = 100\nspacing = '1ms'\n";
    let sweep =
        format!("interval = '20ms'\ndistributions = true\n{}{flows}", "[link]\nrate = '5mbit'\n");
    let mut results = results(&sweep, &[&Model], 1);
    // As if it had gone on for so long: the series again and again.
    let text = serde_json::to_string(&results).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    fn longer(value: &mut Value) {
        if let Value::Array(list) = value {
            if list.first().is_some_and(Value::is_array) {
                list.iter_mut().for_each(longer);
            } else {
                *list = list.iter().cycle().take(30_000).cloned().collect();
            }
        }
    }
    let series = document["runs"][0]["outcome"]["series"].as_object_mut().unwrap();
    series.values_mut().for_each(longer);
    let times: Vec<Value> = (1..=30_000).map(|at| Value::from(f64::from(at) * 0.02)).collect();
    series["t_s"] = Value::from(times);
    results = serde_json::from_value(document).unwrap();
    let page = html::write(&[Report::of(&results)], "dualq test", None);
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert!(page.contains("are thinned to"));
}

/// As flent wants it: its own tests' names, and series as long as their times.
#[test]
fn a_flent_file_has_the_kind_of_its_scenario() {
    use std::io::Read as _;
    let of = |sweep: &str| -> Value {
        let results = results(sweep, &[&Model], 1);
        let bytes = flent::write(&results.runs()[0]).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let (link, probe) =
        ("distributions = true\n[link]\nrate = '5mbit'\n", "[[probe]]\nkind = 'ping'\n");
    let flow =
        |direction: &str| format!("[[flow]]\ncc = 'cubic'\ncount = 2\ndirection = '{direction}'\n");
    for (sweep, name, series) in [
        (format!("{link}{}{probe}", flow("down")), "tcp_ndown", "TCP download::2"),
        (
            format!("{link}[link.up]\nrate = '1mbit'\n{}{probe}", flow("up")),
            "tcp_nup",
            "TCP upload::2",
        ),
        (
            format!("{link}[link.up]\nrate = '1mbit'\n{}{}{probe}", flow("up"), flow("down")),
            "rrul_be",
            "TCP upload BE2",
        ),
    ] {
        let document = of(&sweep);
        assert_eq!(document["metadata"]["NAME"], name);
        let results = document["results"].as_object().unwrap();
        assert!(results.contains_key(series) && results.contains_key("Ping (ms) ICMP"), "{name}");
        let times = document["x_values"].as_array().unwrap().len();
        assert!(results.values().all(|list| list.as_array().unwrap().len() == times), "{name}");
    }
    let plain = results(QUEUES, &[&Model], 1);
    assert_eq!(flent::write(&plain.runs()[0]), Err(flent::FlentError::NoSingleFlows));
}

/// Nobody is called the best who does no better, or who cannot be told to.
#[test]
fn a_tie_has_no_best() {
    let of = |sweep: &str| {
        let results = results(sweep, &[&Model], 1);
        let report = Report::of(&results);
        let style = Style { width: None, colour: true, graphs: true };
        (text::write(&report, &style), html::write(&[report], "test", None))
    };
    let flows = "[[flow]]\ncc = 'cubic'\n[[probe]]\nkind = 'ping'";
    let of_queues = |queues: &str, flows: &str| {
        of(&format!("[link]\nrate = '5mbit'\nqdisc = {queues}\n{flows}"))
    };
    // The limits differ, and none is reached.
    let (table, page) = of_queues("['pfifo limit 5000', 'pfifo limit 6000']", flows);
    assert!(table.contains("\nOf 2 none is best: all have the same power.\n"), "{table}");
    assert!(!table.contains("Best") && !table.contains('\u{1b}'), "{table}");
    assert!(page.contains("none is best") && !page.contains("\"best\":true"));
    let (table, page) =
        of_queues("['pfifo limit 5000', 'pfifo limit 6000', 'netem loss 100%']", flows);
    assert!(table.contains("\nBest (and one other): pfifo limit 5000: "), "{table}");
    assert!(page.contains("pfifo limit 5000 (and one other) is best by power"));
    assert_eq!(page.matches("\"best\":true").count(), 1);
    let links =
        "[link]\nrate = ['5mbit', '6mbit']\nqdisc = ['pfifo limit 5000', 'pfifo limit 6000']";
    let (table, _) = of(&format!("{links}\n{flows}"));
    assert!(table.contains("\nOver 6 Mbit/s and 50.00 ms: of 2 none is best: all"), "{table}");
    let (table, page) = of("flow = []\n[link]\nrate = '5mbit'\nqdisc = ['pfifo', 'fq_codel']");
    assert!(table.contains("Of 2 none is best: power takes goodput"), "{table}");
    assert!(page.contains("none is best: power takes goodput"));
    let (table, page) = of_queues("['fq_codel', 'netem loss 100%']", flows);
    // No answer is no short delay.
    let never = table.lines().find(|line| line.starts_with("netem loss 100%"));
    assert!(!never.unwrap().contains('▏') && table.contains('█'), "{table}");
    assert!(page.contains(
        "netem loss 100% is worst, at 0.0 Mbit/s, and the probe was never answered after the warm-up. Without answers"
    ));
}

/// Documents that differ in a key are compared by it, as if one file had varied that; those of different questions are not.
#[test]
fn documents_that_differ_in_a_key_are_a_sweep() {
    let at = |rate: &str| QUEUES.replace("5mbit", rate);
    let [one, other] = ["5mbit", "8mbit"].map(|rate| results(&at(rate), &[&Model], 1));
    let page = |results: &[&Results]| -> Value {
        let reports: Vec<Report<'_>> = results.iter().map(|results| Report::of(results)).collect();
        let page = html::write(&reports, "dualq", None);
        let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
        serde_json::from_str(data).unwrap()
    };
    let both = page(&[&one, &other]);
    assert_eq!(both["settings"], serde_json::json!(["qdisc", "link.rate"]));
    let axis = |name: &str, at: u32, values: [&str; 2]| serde_json::json!({ "name": name, "at": at, "values": values });
    let queues = axis("qdisc", 0, ["pfifo limit 100", "dualpi2"]);
    assert_eq!(
        both["sweep"],
        serde_json::json!([queues, axis("link.rate", 1, ["5Mbit", "8Mbit"])])
    );
    let rates: Vec<&str> = both["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["settings"][1].as_str().unwrap())
        .collect();
    assert_eq!(rates, ["5Mbit", "5Mbit", "8Mbit", "8Mbit"]);
    let single = page(&[&one]);
    assert_eq!(
        (&single["settings"], &single["sweep"]),
        (&serde_json::json!(["qdisc"]), &serde_json::json!([]))
    );
    let strange = results(
        &QUEUES.replace("cubic", "reno").replace("5mbit", "3mbit").replace("ping", "ssh"),
        &[&Model],
        1,
    );
    let mixed = page(&[&one, &strange]);
    assert_eq!(
        (&mixed["settings"], &mixed["sweep"]),
        (&serde_json::json!(["qdisc"]), &serde_json::json!([]))
    );
}

/// Links that differ in what is no rate and no round-trip time are told apart in words too.
#[test]
fn the_headline_tells_links_apart() {
    let lossy = QUEUES
        .replace("rate = '5mbit'", "rate = '5mbit'\nloss = ['0%', '0.5%']\nmtu = [1500, 576]");
    let results = results(&lossy, &[&Model], 1);
    let page = html::write(&[Report::of(&results)], "dualq", None);
    for words in ["loss 0%, an MTU of 1500: of 2", "loss 0.5%, an MTU of 576: of 2"] {
        assert_eq!(page.matches(words).count(), 1, "{words}");
    }
}

/// The picture of this name, if there is something for it.
fn picture(results: &Results, name: &str) -> Option<String> {
    let pictures = svg::pictures(&Report::of(results)).into_iter();
    pictures.into_iter().find(|picture| picture.name == name).map(|picture| picture.svg)
}

/// Who names no scenario has a command for a name, which stands below each picture anyway; on the page it is the title alone.
#[test]
fn a_command_is_said_once() {
    let mut results = results(QUEUES, &[&Model], 1);
    let command = "dualq run --rate 5mbit --qdisc dualpi2";
    results.name = command.to_owned();
    results.origin = Some(Origin { command: command.to_owned(), ..Origin::default() });
    let comparison = picture(&results, "comparison").unwrap();
    let texts = comparison.matches(&format!("{command}</text>")).count();
    assert_eq!(texts, 1, "{comparison}");
    assert!(comparison.contains(">Latency under load and goodput</text>"), "{comparison}");
    let page = html::write(&[Report::of(&results)], "dualq", None);
    assert!(page.contains("\"headline\":[\"Of 2 that were compared "));
    let both = html::write(&[Report::of(&results), Report::of(&results)], "dualq", None);
    assert!(both.contains(&format!("\"headline\":[\"{command}: of 2 that were compared ")));
}

/// A run of one interval has points that no line leads to.
#[test]
fn a_point_alone_is_seen() {
    let time = |interval: &str| {
        let played = results(&format!("interval = '{interval}'\n{QUEUES}"), &[&Model], 1);
        picture(&played, "time").unwrap()
    };
    assert!(time("3s").contains("class=\"c0 l n\""), "{}", time("3s"));
    assert!(!time("1s").contains("class=\"c0 l n\""));
}

/// A name that is too long leaves what a picture shows in its title.
#[test]
fn a_title_is_not_cut_off_by_a_name() {
    let mut results = results(QUEUES, &[&Model], 1);
    results.name = "name ".repeat(40);
    let comparison = picture(&results, "comparison").unwrap();
    assert!(comparison.contains("…: Latency under load and goodput</text>"), "{comparison}");
}

/// Numbers of many digits beside the bars of delays end before the goodput's bars begin.
#[test]
fn long_delays_have_room() {
    let played = results(QUEUES, &[&Model], 1);
    let mut document = serde_json::to_value(&played).unwrap();
    let probe = &mut document["runs"][0]["outcome"]["probe"][0];
    for figure in ["p50_ms", "p99_ms", "max_ms"] {
        probe[figure] = 1_234_567.89.into();
    }
    let results: Results = serde_json::from_value(document).unwrap();
    let picture = picture(&results, "comparison").unwrap();
    let place = |text: &str| -> f64 {
        let line = picture.lines().find(|line| line.contains(text)).unwrap();
        line.split('"').nth(1).unwrap().parse().unwrap()
    };
    let (numbers, goodput) = (place(" · 12345"), place(">Goodput"));
    assert!(numbers + 6.0 * "1234567.89 · 1234567.89".len() as f64 <= goodput + 6.0, "{picture}");
}

/// A heat map has each number of the table, in the order of the values and not of the ranks; a line has a place for each value.
#[test]
fn sweeps_have_the_numbers_of_the_table() {
    let both = QUEUES.replace("'5mbit'", "['8mbit', '5mbit']");
    let of_two = results(&both, &[&Model], 1);
    let report = Report::of(&of_two);
    let map = picture(&of_two, "sweep").unwrap();
    let at = report.figures.columns.iter().position(|column| column.name == "above base").unwrap();
    for row in &report.figures.rows {
        let number = report.figures.columns[at].show(&row.values[at]);
        assert!(map.contains(&format!(">{number}</text>")), "{number}");
    }
    let places: Vec<usize> =
        [">5Mbit<", ">8Mbit<"].iter().map(|value| map.find(value).unwrap()).collect();
    assert!(places.is_sorted() && map.contains("class=\"h6\"") && map.contains("class=\"h0\""));

    let rates = QUEUES.replace("'5mbit'", "['9mbit', '5mbit', '7mbit']");
    let one = rates.replace("['pfifo limit 100', 'dualpi2']", "'dualpi2'");
    let of_one = results(&one, &[&Model, &Twin], 2);
    let lines = picture(&of_one, "sweep").unwrap();
    let axes = lines.matches(">5Mbit<").count();
    assert!(axes > 2 && lines.matches(">7Mbit<").count() == axes, "{axes}");
    assert!(lines.contains(">twin<") && lines.contains("One standard deviation either way."));
    assert_eq!(picture(&results(QUEUES, &[&Model], 1), "sweep"), None);
}

/// Of transfers that did not all end a curve ends below 1; sizes at random have a chart for each class.
#[test]
fn completions_by_size_count_what_did_not_end() {
    let flows = "distributions = true\n[link]\nrate = '5mbit'\n[[flow]]\ncc = 'cubic'\ncount = 8\nspacing = '350ms'\nsize";
    let page = |results: &Results| html::write(&[Report::of(results)], "dualq", None);
    let fixed = results(&format!("{flows} = '400kb'"), &[&Model], 1);
    let ended = fixed.runs()[0].outcome.flow[0].completion_s.iter().flatten().count();
    assert!(ended > 0 && ended < 8, "{ended}");
    assert!(picture(&fixed, "completions-cdf").unwrap().contains(">410 kB<"));
    let share = format!("{}]}}", ended as f64 / 8.0);
    assert!(page(&fixed).contains(&share), "{share}");
    let random = results(&format!("{flows} = '1kb..100kb'"), &[&Model], 2);
    let by_size = picture(&random, "completions-cdf").unwrap();
    for class in [">below 10 kB<", ">10 kB to 100 kB<"] {
        assert_eq!(by_size.matches(class).count(), 1, "{class}");
    }
    let without = flows.replace("distributions = true", "");
    let plain = results(&format!("{without} = '1kb..100kb'"), &[&Model], 1);
    assert_eq!(picture(&plain, "completions-cdf"), None);
    assert_eq!(picture(&results(QUEUES, &[&Model], 1), "completions-cdf"), None);
}

/// As long as the world's evening of scenarios: all of them differ, with long names and reasons.
#[test]
fn a_page_of_eight_thousand_scenarios_can_be_opened() {
    let quantity = |number: usize, at: usize| {
        let (one, other) = (number as f64 * 1.37 + at as f64, number as f64 * 0.71 + 1.0);
        let units = ["(Mbit/s)", "(ms)", "(ms)", "retransmissions", "drops", "fairness"];
        serde_json::json!({ "what": format!("figure {at} {}", units[at % 6]), "model": one, "kernel": other, "agrees": number.is_multiple_of(3) })
    };
    let run = |number: usize| {
        let all = |count: usize| (0..count).map(|at| quantity(number, at)).collect::<Vec<_>>();
        serde_json::json!({
            "name": format!("scenario-{number}-of-a-long-evening"), "agrees": number.is_multiple_of(9), "twin": false,
            "quantities": all(6), "figures": all(20), "lacking": ["something"], "limits": ["a limit of the machine"],
        })
    };
    let missing = |number: usize| serde_json::json!({ "name": format!("other-{number}"), "reason": "what the model does not have" });
    let document = |runs: usize| {
        let document = serde_json::json!({
            "version": 1, "command": "check", "twin": false, "world": "model", "kernel": null,
            "runs": (0..runs).map(run).collect::<Vec<_>>(), "not_modelled": (0..runs).map(missing).collect::<Vec<_>>(),
        });
        dualq_report::agreement::Document::read(&document.to_string()).unwrap()
    };
    let page = document(8_000).page("dualq");
    assert!(page.len() < 10 << 20, "{} bytes", page.len());
    assert!(page.contains(
        " of 8000, those that differ first: the others are left out to keep this page small."
    ));
    assert!(page.contains(" of 8000 scenarios are left out to keep this page small"));
    assert!(page.contains("; and 7950 more."));
    // What differs stands before what agrees.
    assert!(page.contains("scenario-1-of") && !page.contains("<td class=\"words\">agrees</td>"));
    // A page of some has all.
    let page = document(300).page("dualq");
    assert!(!page.contains("left out") && page.contains("scenario-299-of"));
}

/// UDP has no acknowledgements, and what arrived of it is a throughput all the same.
#[test]
fn what_arrives_of_udp_is_told() {
    let link = "[link]\nrate = '10mbit'\nqdisc = ['pfifo limit 100', 'dualpi2']\n";
    let of = |more: &str| results(&format!("{link}[[udp]]\nrate = '20mbit'\n{more}"), &[&Model], 1);
    let alone = of("");
    let report = Report::of(&alone);
    let lines = csv::write(&report);
    let mut lines = lines.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let titles = lines.next().unwrap();
    let (arrived, lost) = ("UDP cbr Mbits/sec", "UDP cbr lost");
    let at = |title: &str| titles.iter().position(|other| *other == title).expect(title);
    for line in lines {
        let number = |title| line[at(title)].parse::<f64>().unwrap();
        assert!((9.0..10.0).contains(&number(arrived)), "{line:?}");
        assert!((0.4..0.6).contains(&number(lost)), "{line:?}");
    }
    let page = text::write(&report, &Style::default());
    let worst = page.lines().find(|line| line.starts_with("Worst: ")).expect("no tie");
    assert!(worst.contains(": 9.1 Mbits/sec while the probe"), "{worst}");
    assert!(worst.ends_with("% of UDP's packets were lost"), "{worst}");
    let page = html::write(&[report], "test", None);
    assert!(page.contains("% of UDP's packets were lost"));
    // Half of the link leaves a flow something to be ranked by.
    let beside = format!("{link}[[udp]]\nrate = '5mbit'\n[[flow]]\ncc = 'cubic'");
    let page = text::write(&Report::of(&results(&beside, &[&Model], 1)), &Style::default());
    assert!(page.contains("; of UDP arrived 4."), "{page}");
}

/// The figures of the pings that were answered are not those of all.
#[test]
fn lost_pings_are_told() {
    let link = |loss: &str| format!("[link]\nrate = '10mbit'\nloss = '{loss}'\n");
    let ping = "[[probe]]\nkind = 'ping'\ninterval = '10ms'";
    let page = |loss: &str, more: &str| {
        let results = results(&format!("{}{more}", link(loss)), &[&Model], 1);
        text::write(&Report::of(&results), &Style::default())
    };
    let (lossy, whole) = (page("90%", ping), page("0", ping));
    let titles = |page: &str| page.lines().nth(3).unwrap().to_owned();
    assert!(titles(&lossy).contains("p99   lost"), "{lossy}");
    assert!(lossy.contains("% of the pings were lost"), "{lossy}");
    // Where nothing is lost, nothing is said of it but in the CSV.
    assert!(!whole.contains("lost"), "{whole}");
    let whole = results(&format!("{}{ping}", link("0")), &[&Model], 1);
    assert!(csv::write(&Report::of(&whole)).contains("ping RTT lost"));
    // A second probe that hears nothing is no blank alone.
    let both = page("100%", &format!("{ping}\n{ping}"));
    assert!(both.contains("probe 2 (ping) was never answered after the warm-up"), "{both}");
}

/// Documents of versions that did not count lost pings are read.
#[test]
fn documents_without_counts_of_pings_are_read() {
    let now = results("[link]\nrate = '10mbit'\n[[probe]]\nkind = 'ping'", &[&Model], 1);
    let mut document = serde_json::to_value(&now).unwrap();
    let probe = &mut document["runs"][0]["outcome"]["probe"][0];
    assert_eq!(probe["lost"], 0);
    let probe = probe.as_object_mut().unwrap();
    probe.retain(|key, _| !["sent", "lost"].contains(&key.as_str()));
    let read: Results = serde_json::from_value(document).unwrap();
    assert_eq!(read.runs()[0].outcome.probe[0].sent, None);
    let page = text::write(&Report::of(&read), &Style::default());
    assert!(page.contains("while the probe is answered"), "{page}");
}

/// The bottleneck may be an element of the path: its queue has figures, or it is said that it has none.
#[test]
fn queues_of_elements_have_figures_or_are_named() {
    let run = |more: &str| {
        let link = "[link]\nrate = '20mbit'\nqdisc = 'dualpi2'\n";
        results(&format!("{link}{more}\n[[flow]]\ncc = 'cubic'"), &[&Model], 1)
    };
    let page = |results: &Results| text::write(&Report::of(results), &Style::default());
    let remark = "figures of the queue are of link.qdisc alone: what waits, is marked or dropped in other queues (behind 2) is in none";
    let hops = run("behind = [{ delay = '1ms' }, { rate = '10mbit', qdisc = 'fq_codel' }]");
    let told = page(&hops);
    assert!(told.contains("queue behind 2") && !told.contains(remark), "{told}");
    // As `live` and older versions have it.
    let mut document: Value = serde_json::from_str(&json::write(&Report::of(&hops))).unwrap();
    let outcome = document["runs"][0]["outcome"].as_object_mut().unwrap();
    assert_eq!(outcome["other_queues"][0]["at"], "behind 2");
    assert!(outcome["other_queues"][0]["queue"]["drops"].as_u64().unwrap() > 0, "{outcome:#?}");
    assert!(outcome.remove("other_queues").is_some());
    let without: Results = serde_json::from_value(document).unwrap();
    assert!(page(&without).contains(remark), "{}", page(&without));
    let none = page(&run("behind = [{ delay = '1ms' }]"));
    assert!(!none.contains("alone") && !none.contains("queue behind"), "{none}");
}

/// A run hardly longer than the delay ends before it is known what becomes of most packets: that is said, and they do not count as arrived.
#[test]
fn packets_on_their_way_at_the_end_are_no_success() {
    let dense = "duration = '20ms'\nwarmup = '0s'\nudp = [{ packet = 44, rate = '2gbit' }]\n\
                 [link]\nrate = '20mbit'\nrtt = '20ms'\nqdisc = 'pfifo_fast'\n";
    let page = |scenario: &str| {
        let (sweep, seeds) = (Sweep::parse(scenario).unwrap(), Seeds::new(1, 1).unwrap());
        let results = Results::play(&sweep, &[&Model], seeds, &|_| ControlFlow::Continue(()));
        text::write(&Report::of(&results.unwrap()), &Style::default())
    };
    let short = page(dense);
    let lost = short.split_once("% of UDP's packets were lost").expect("a queue of 1000").0;
    let lost: f64 = lost.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(lost > 3.0, "{short}");
    assert!(short.contains("at the end it was open whether 9"), "{short}");
    let longer = page(&dense.replace("'20ms'\nwarmup", "'2s'\nwarmup").replace("2gbit", "200mbit"));
    assert!(longer.contains("% of UDP's packets were lost"), "{longer}");
    assert!(!longer.contains("it was open"), "{longer}");
}
