//! What a folder keeps, and what it says of files that are not its own.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use dualq_sweep::{Axis, Folder, FolderError, Plan, PlayError, Point, Shard, Space, Step, Work};
use dualq_worlds::{Model, Progress, Results, Run, Seeds, Settings, World as _, WorldError};

fn plan(vary: &str, seeds: u64) -> Plan {
    let source = "name = 'small'\nduration = '2s'\nwarmup = '1s'\n[link]\nrate = '5mbit'";
    let space = Space { vary: vec![Axis::parse(vary).unwrap()], ..Space::of(source) };
    Plan::new(&space, &[&Model], Seeds::new(3, seeds).unwrap()).unwrap()
}

fn run(point: &Point<'_>) -> Run {
    let mut goes_on = |_| ControlFlow::Continue(());
    Run {
        settings: Settings::default(),
        world: "model".to_owned(),
        seed: point.seed,
        scenario: point.scenario.clone(),
        outcome: Model.run(point.scenario, point.seed, &mut goes_on).unwrap(),
        kernel: None,
    }
}

/// What git and object stores make of it, which keep no empty folders.
#[test]
fn a_copy_without_its_empty_folders_is_the_same() {
    let at = tempfile::tempdir().unwrap();
    let plan = plan("link.rtt=10ms,20ms", 1);
    let folder = filled(at.path(), &plan);
    fs::remove_dir(at.path().join("parts")).unwrap();
    let folder = Folder::open(folder.path()).unwrap();
    let point = plan.points().next().unwrap();
    let file = folder.put(&point.key, &run(&point)).unwrap();
    assert!(at.path().join(file).is_file() && folder.has(&point.key));
    fs::remove_dir_all(at.path().join("plans")).unwrap();
    folder.keep(plan.record()).unwrap();
    assert_eq!(folder.plans().unwrap().len(), 1);
}

fn filled(path: &Path, plan: &Plan) -> Folder {
    let folder = Folder::open(path).unwrap();
    folder.keep(plan.record()).unwrap();
    for point in plan.points() {
        folder.put(&point.key, &run(&point)).unwrap();
    }
    folder
}

/// Any file of a point.
fn a_point(folder: &Path) -> PathBuf {
    let first = |path: &Path| fs::read_dir(path).unwrap().next().unwrap().unwrap().path();
    first(&first(&folder.join("points")))
}

#[test]
fn what_comes_out_is_the_document_of_an_ordinary_run() {
    let there = tempfile::tempdir().unwrap();
    let plan = plan("link.qdisc=fq,dualpi2", 2);
    let folder = filled(there.path(), &plan);
    let gathered = folder.results(&folder.plans().unwrap()[0]).unwrap();
    assert_eq!(gathered.missing, 0);
    let runs = gathered.results.runs();
    let seen: Vec<(&str, u64)> =
        runs.iter().map(|run| (run.settings.0[0].1.as_str(), run.seed)).collect();
    assert_eq!(seen, [("fq", 3), ("fq", 4), ("dualpi2", 3), ("dualpi2", 4)]);
    assert_eq!(gathered.results.name, "small");
    // Read back as any other.
    let text = serde_json::to_string(&gathered.results).unwrap();
    assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), gathered.results);
    // The runs are those that one call makes of a file.
    let file = "name = 'small'\nduration = '2s'\nwarmup = '1s'\n[link]\nrate = '5mbit'\nqdisc = ['fq', 'dualpi2']";
    let sweep = dualq_scenario::Sweep::parse(file).unwrap();
    let goes_on = |_| ControlFlow::Continue(());
    let at_once = Results::play(&sweep, &[&Model], Seeds::new(3, 2).unwrap(), &goes_on).unwrap();
    let outcomes = |results: &Results| -> Vec<_> {
        results.runs().iter().map(|run| run.outcome.clone()).collect()
    };
    assert_eq!(outcomes(&gathered.results), outcomes(&at_once));
}

/// Whoever is told of a run and asks to stop at that moment finds it in the folder.
#[test]
fn a_run_that_was_told_is_there() {
    let there = tempfile::tempdir().unwrap();
    let plan = plan("link.qdisc=fq,dualpi2", 4);
    let folder = Folder::open(there.path()).unwrap();
    folder.keep(plan.record()).unwrap();
    let work = Work {
        plan: &plan,
        worlds: &[&Model],
        folder: &folder,
        shard: Shard::default(),
        more: None,
    };
    let told = AtomicUsize::new(0);
    let watch = |step| match step {
        Step::Played(Progress::Run) => {
            told.fetch_add(1, Ordering::SeqCst);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    let ended = work.play(&watch);
    assert!(matches!(ended, Err(PlayError::World(WorldError::Interrupted))), "{ended:?}");
    let kept = plan.points().filter(|point| folder.has(&point.key)).count();
    assert_eq!(kept, told.into_inner());
    assert!(kept > 0);
}

#[test]
fn some_scenarios_may_have_more_seeds_and_some_none() {
    let there = tempfile::tempdir().unwrap();
    let all = plan("link.qdisc=fq,pie,dualpi2", 4);
    let folder = Folder::open(there.path()).unwrap();
    for point in all.points() {
        if [(0, 3), (0, 4), (0, 5), (2, 3), (2, 5), (2, 6)].contains(&(point.number, point.seed)) {
            folder.put(&point.key, &run(&point)).unwrap();
        }
    }
    let gathered = folder.results(all.record()).unwrap();
    let counts: Vec<usize> = gathered.results.scenarios().map(|one| one.runs().len()).collect();
    // What is not from the first seed on waits for those before it.
    assert_eq!((counts, gathered.missing), (vec![3, 1], 1));
    let seeds = gathered.results.seeds();
    assert_eq!((seeds.count(), seeds.least()), (3, 1));
    let text = serde_json::to_string(&gathered.results).unwrap();
    assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), gathered.results);
    // Without a word of it, it is no whole document.
    let strict = text.replace(",\"least\":1", "");
    assert_ne!(strict, text);
    assert!(
        serde_json::from_str::<Results>(&strict).unwrap_err().to_string().starts_with("runs: ")
    );
}

#[test]
fn what_is_not_its_own_is_refused_in_a_line() {
    let there = tempfile::tempdir().unwrap();
    let path = |name: &str| there.path().join(name);
    fs::create_dir(path("foreign")).unwrap();
    fs::write(path("foreign/letter.txt"), "dear").unwrap();
    let said = Folder::open(path("foreign")).unwrap_err().to_string();
    assert!(
        said.ends_with(
            "no folder of dualq sweep, and not empty; give one that is empty, or a new one"
        ),
        "{said}"
    );
    assert!(!path("foreign/points").exists());
    for name in ["foreign", "nothing", "foreign/letter.txt"] {
        let said = Folder::read(path(name)).unwrap_err().to_string();
        assert!(said.contains(": no folder of dualq sweep: it has no README"), "{said}");
    }
    let said = Folder::open(path("foreign/letter.txt")).unwrap_err().to_string();
    assert!(said.starts_with("cannot read ") && said.ends_with(": Not a directory"), "{said}");
    let empty = Folder::open(path("empty")).unwrap();
    // Nothing is made for what may be refused yet.
    assert!(!path("empty").exists());
    assert!(empty.plans().unwrap_err().to_string().ends_with(": no sweep is in it yet"));
    let plan = plan("link.qdisc=fq", 1);
    let said = empty.results(plan.record()).unwrap_err().to_string();
    assert!(said.ends_with(": none of the sweep's runs is there yet"), "{said}");
}

#[test]
fn files_that_were_changed_are_told() {
    let there = tempfile::tempdir().unwrap();
    let plan = plan("link.qdisc=fq", 1);
    let folder = filled(there.path(), &plan);
    let file = a_point(there.path());
    let whole = fs::read_to_string(&file).unwrap();
    let said = |text: &str| {
        fs::write(&file, text).unwrap();
        folder.results(plan.record()).unwrap_err().to_string()
    };
    let remove = "; remove it, and the same sweep makes it again";
    let torn = said(&whole[..whole.len() / 2]);
    assert!(
        torn.contains(": no run of dualq sweep: EOF while parsing") && torn.ends_with(remove),
        "{torn}"
    );
    let other = said(&whole.replace("\"seed\":3", "\"seed\":4"));
    assert!(other.contains(": a run of something else than its name says"), "{other}");
    // As the end of power may leave it: it counts as not there.
    let empty = said("");
    assert!(empty.ends_with("none of the sweep's runs is there yet"), "{empty}");
    assert!(!folder.has(&plan.points().next().unwrap().key));
    let plans = there.path().join("plans");
    fs::write(plans.join("x.json"), "{}").unwrap();
    assert!(
        folder
            .plans()
            .unwrap_err()
            .to_string()
            .contains("x.json: no plan of dualq sweep: missing field")
    );
}

#[test]
fn what_never_ends_fills_no_memory() {
    let there = tempfile::tempdir().unwrap();
    let plan = plan("link.qdisc=fq", 1);
    let folder = filled(there.path(), &plan);
    fs::File::create(a_point(there.path())).unwrap().set_len(1 << 40).unwrap();
    let said = folder.results(plan.record()).unwrap_err().to_string();
    assert!(
        said.ends_with(": it is no text; remove it, and the same sweep makes it again"),
        "{said}"
    );
    std::os::unix::fs::symlink("/dev/zero", there.path().join("plans/x.json")).unwrap();
    let said = folder.plans().unwrap_err().to_string();
    assert!(said.contains("x.json: it is no text; remove it"), "{said}");
    let marker = there.path().join("README");
    fs::remove_file(&marker).unwrap();
    std::os::unix::fs::symlink("/dev/zero", marker).unwrap();
    assert!(matches!(Folder::read(there.path()), Err(FolderError::NoFolder(_))));
}

#[test]
fn what_was_left_long_ago_goes_away() {
    let there = tempfile::tempdir().unwrap();
    filled(there.path(), &plan("link.qdisc=fq", 1));
    let (old, new) = (there.path().join("parts/part-old"), there.path().join("parts/part-new"));
    for path in [&old, &new] {
        fs::write(path, "half").unwrap();
    }
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    fs::File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
    Folder::open(there.path()).unwrap();
    assert!(!old.exists() && new.exists());
}
