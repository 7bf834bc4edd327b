"""`dualq.run` and what comes of it."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import dualq
from dualq import Flow, Link, Scenario

SHORT = {"duration": "4s", "warmup": "1s", "link": {"rate": "10mbit", "rtt": "20ms"}, "flow": [{"cc": "cubic"}]}
LONG = {"duration": "2000s", "link": {"rate": "1gbit"}, "flow": [{"cc": "cubic"}]}


def test_dict_toml_and_typed_scenarios_say_the_same() -> None:
    typed = Scenario(duration="4s", warmup="1s", link=Link(rate="10mbit", rtt="20ms"), flow=[Flow(cc="cubic")])
    text = typed.to_toml()
    documents = [json.loads(dualq.run(one).to_json()) for one in (SHORT, typed, text)]
    for document in documents:
        del document["origin"]
    assert documents[0] == documents[1] == documents[2]


def test_a_file_names_its_files_relative_to_itself(tmp_path: Path) -> None:
    (tmp_path / "rate.trace").write_text("1\n2\n3\n4\n")
    file = tmp_path / "trace.toml"
    file.write_text('duration = "2s"\nwarmup = "0s"\n[link]\ntrace = "rate.trace"\n[[flow]]\ncc = "cubic"\n')
    assert dualq.run(file)[0].outcome.goodput_mbit > 5
    file.write_text("duration = 3\n")
    with pytest.raises(dualq.ScenarioError, match=r"trace\.toml: line 1: duration: write it as a string, in quotes"):
        dualq.run(file)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    flow = {"cc": "cubic", "count": numpy.int64(2)}
    assert dualq.run({**SHORT, "flow": [flow]})[0].scenario["flow"][0]["count"] == 2
    with pytest.raises(dualq.ScenarioError, match="flow.count: give a whole number"):
        dualq.run({**SHORT, "flow": [{**flow, "count": numpy.float64(1.5)}]})
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(dualq.ScenarioError, match="/dev/zero: it is longer than 100 MiB"):
        dualq.run(Path("/dev/zero"))
    with pytest.raises(dualq.ScenarioError, match=r"latin\.toml: a scenario is text in UTF-8"):
        dualq.run(tmp_path / "latin.toml")


def test_every_key_of_the_documented_file_is_a_field() -> None:
    page = Path(__file__).parents[2] / "docs/scenario.md"
    table = page.read_text().split("| key | default |")[1].split("\n\n")[0]
    kinds = {"": Scenario, "link": Link, "link.up": dualq.UpLink, "sender": dualq.Sender, "receiver": dualq.Receiver,
             "flow": Flow, "udp": dualq.Udp, "probe": dualq.Probe}
    kind, seen = Scenario, 0
    for row in table.splitlines()[2:]:
        key = row.split("|")[1].strip()
        if key.startswith("**"):
            kind = kinds[key.strip("*`[]")]
            continue
        for name in key.replace("*list*", "").replace(", or ", ", ").split(", "):
            assert name.strip("` []").split(".")[-1] in kind.__dataclass_fields__, row
            seen += 1
    assert seen > 60


def test_lists_are_combinations_and_seeds_are_repetitions() -> None:
    results = dualq.run({**SHORT, "link": {**SHORT["link"], "qdisc": ["pfifo", "fq_codel"]}}, seeds=range(3, 5))
    assert [(run.settings, run.seed) for run in results] == [
        ({"qdisc": kind}, seed) for kind in ("pfifo", "fq_codel") for seed in (3, 4)
    ]
    assert (results.worlds, results.seeds, len(results)) == (["model"], range(3, 5), 4)
    assert [run.seed for run in results[1::-1]] == [4, 3] and results[9:] == []
    pfifo, fq_codel = results[0].outcome, results[-1].outcome
    assert pfifo.probe[0].p99_ms > 2 * fq_codel.probe[0].p99_ms
    assert results[0].scenario["link"]["rtt"] == "20ms"
    several = dualq.run([SHORT, SHORT], cc="reno", rate=["5mbit", "6mbit"])
    assert [[run.settings for run in one] for one in several] == [[{"rate": "5Mbit"}, {"rate": "6Mbit"}]] * 2


def test_the_outcome_is_that_of_the_program() -> None:
    program = subprocess.run(
        [dualq.program(), "run", "-", "--json"],
        input=Scenario(duration="4s", warmup="1s").to_toml(), capture_output=True, text=True, check=True,
    )
    theirs = dualq.Results.from_json(program.stdout)
    ours = dualq.run(Scenario(duration="4s", warmup="1s"))
    assert ours[0].outcome == theirs[0].outcome
    assert ours.text() == theirs.text()


def test_every_key_of_the_document_is_in_the_outcome() -> None:
    scenario = {
        **SHORT, "distributions": True, "receiver": {"ecn": "accurate"},
        "link": {"rate": "10mbit", "rtt": "20ms", "up": {"rate": "2mbit"}},
        "flow": [{"cc": "prague"}, {"cc": "cubic", "size": "10kb..100kb", "count": 5}], "udp": [{"kind": "voice"}],
    }
    results = dualq.run(scenario)
    document = json.loads(results.to_json())["runs"][0]["outcome"]

    def compare(written: object, made: object, where: str) -> int:
        if isinstance(written, list):
            assert isinstance(made, list) and len(made) == len(written), where
            return sum(compare(*pair, where) for pair in zip(written, made))
        if isinstance(written, dict) and not isinstance(made, dict):
            return sum(compare(value, getattr(made, key), f"{where}.{key}") for key, value in written.items())
        assert written == made, where
        return 1

    assert compare(document, results[0].outcome, "outcome") > 200


def test_figures_have_units() -> None:
    results = dualq.run(SHORT, seeds=2)
    figures = {(one.group, one.name): one for one in results.figures()}
    p99 = figures["ssh RTT", "p99"]
    assert (p99.unit, p99.seeds, p99.world) == ("ms", 2, "model")
    assert p99.mean == pytest.approx(sum(run.outcome.probe[0].p99_ms for run in results) / 2, abs=1e-3)
    assert str(p99).endswith(" ms")
    assert [dualq.unit(name) for name in ("p99_ms", "goodput_mbit", "srtt_ms_p50", "mean_s", "below_bytes", "drops")] == [
        "ms", "Mbit/s", "ms", "s", "bytes", None]


def test_columns_are_those_of_parquet_and_are_not_copied() -> None:
    pyarrow, compute = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.compute"))
    results = dualq.run({**SHORT, "link": {**SHORT["link"], "qdisc": ["pfifo", "fq_codel"]}})
    series = results.series()
    assert series.names[:3] == ["qdisc", "world", "seed"] and len(series) == len(series["t_s"])
    one, other = series.to_arrow(), series.to_arrow()
    assert one.column("t_s").type == pyarrow.float64()
    # The same memory twice, so it was not copied.
    addresses = [table.column("t_s").chunk(0).buffers()[1].address for table in (one, other)]
    assert addresses[0] == addresses[1]
    flows = one.filter(compute.equal(one["of"], "flows"))
    assert flows["goodput_mbit"].to_pylist()[:4] == results[0].outcome.series.goodput_mbit[0]
    # It outlives what it is from.
    del results, series, other
    assert one.num_rows > 0 and flows["cwnd"].null_count == 0
    with pytest.raises(KeyError, match="no column .+; there are"):
        dualq.run(SHORT).summary()["nope"]


def test_data_frames() -> None:
    results = dualq.run(SHORT)
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert isinstance(results.summary().to_pandas(), pandas.DataFrame)
    frame = results.series().to_polars()
    assert isinstance(frame, polars.DataFrame) and frame.height == len(results.series())


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ({"link": {"rate": "20mbti"}}, 'link.rate: "20mbti" is not a rate: '),
        ({"lnk": {}}, 'unknown key "lnk"; did you mean "link"?'),
        ("duration = '1s'\nwarmup = '3s'", "line 2: warmup: 3s of a duration of 1s leave nothing to measure"),
        ({"flow": [{"cc": "nope"}]}, 'flow.cc: unknown congestion control "nope"; known are reno, '),
        ({"name": "a\"b\\c\nd\x7fe"}, None),
    ],
)
def test_bad_scenarios_are_told_in_the_words_of_the_program(scenario: object, said: str | None) -> None:
    if said is None:
        assert dualq.run({**SHORT, **scenario}).name == scenario["name"]
        return
    with pytest.raises(dualq.ScenarioError) as error:
        dualq.run(scenario)
    assert str(error.value).startswith(said)
    assert isinstance(error.value, ValueError) and isinstance(error.value, dualq.Error)


def test_bad_arguments() -> None:
    with pytest.raises(dualq.ScenarioError, match='^rate: "1x" is not a rate'):
        dualq.run(SHORT, rate="1x")
    with pytest.raises(TypeError, match="of a file give pathlib.Path"):
        dualq.run("scenario")
    with pytest.raises(TypeError, match="a set has no place in a scenario"):
        dualq.run({"link": {"rate": {1}}})
    # What is no number that Rust has, and what would take all memory.
    for seeds in (0, -1, 10**9, 10**30, range(10**30, 10**30 + 1), range(-3, 2)):
        with pytest.raises(dualq.ScenarioError, match="^seeds? .+ give "):
            dualq.run(SHORT, seeds=seeds)
    with pytest.raises(dualq.ScenarioError, match="threads is 0: give 1 or more"):
        dualq.run(SHORT, threads=0)
    with pytest.raises(TypeError, match=r"rate is \[50\]: give text"):
        dualq.run(SHORT, rate=[50])  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="duration is 1: give a time as text"):
        dualq.run(SHORT, duration=1)  # type: ignore[call-overload]
    with pytest.raises(dualq.ScenarioError, match="qdisc: pie is given twice"):
        dualq.run(SHORT, qdisc=["pie", "fq", "pie"])
    with pytest.raises(ValueError, match="not a document of dualq run"):
        dualq.Results.from_json("{}")


def test_other_worlds_are_played_by_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(dualq.ScenarioError, match="nope"):
        dualq.run(SHORT, world=["model", "nope"])  # type: ignore[list-item]
    with pytest.raises(dualq.ScenarioError, match="the model runs on no kernel"):
        dualq.run(SHORT, kernel="7.3")
    with pytest.raises(dualq.ScenarioError, match=r"threads is for the model alone, and world is \['model', 'kernel'\]"):
        dualq.run(SHORT, world=["model", "kernel"], threads=1)
    with pytest.raises(dualq.ScenarioError, match="progress is for the model alone, and world is 'live'"):
        dualq.run(SHORT, world="live", progress=print)
    listed = subprocess.run([dualq.program(), "kernel", "list", "--json"], capture_output=True, text=True)
    if '"current": true' not in listed.stdout:
        pytest.skip("no kernel is built: dualq kernel build")
    both = dualq.run(SHORT, world=["model", "kernel"])
    assert [run.world for run in both] == ["model", "kernel"] and both[1].kernel


def test_results_travel_and_show_themselves() -> None:
    results = dualq.run(SHORT)
    again = pickle.loads(pickle.dumps(results))
    assert again.to_json() == results.to_json()
    run = pickle.loads(pickle.dumps(dualq.run(SHORT, qdisc=["pie", "fq"], seeds=2)[3]))
    assert (run.settings, run.seed, run.world) == ({"qdisc": "fq"}, 2, "model")
    assert run.outcome == dualq.run(SHORT, qdisc="fq", seeds=range(2, 3))[0].outcome
    with pytest.raises(TypeError, match="send the results that it is of, or to_arrow"):
        pickle.dumps(results.series())
    assert results.to_html().startswith("<!") and results._repr_html_().startswith("<svg")
    assert "comparison" in dict(results.pictures())
    assert results.to_csv().startswith("goodput")


def test_the_interpreter_is_free_and_progress_is_told() -> None:
    shares: list[float] = []
    ticks, over = [0], threading.Event()

    def tick() -> None:
        while not over.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    dualq.run({**SHORT, "duration": "400s"}, seeds=4, progress=shares.append)
    over.set()
    thread.join()
    assert ticks[0] > 10 and shares == sorted(shares) and shares[-1] == 1.0


def test_what_progress_raises_ends_the_run() -> None:
    shares: list[float] = []

    def stop(share: float) -> None:
        shares.append(share)
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        dualq.run(LONG, progress=stop)
    # Whoever was asked to stop did not go on to the end.
    assert 0 <= shares[0] < 0.5


@pytest.mark.parametrize("what", ["dualq.run(LONG)", "dualq.Simulation(LONG).finish()"])
def test_ctrl_c_ends_a_run(what: str) -> None:
    code = f"import dualq\nLONG = {LONG!r}\nprint('go', flush=True)\ntry:\n    {what}\nexcept KeyboardInterrupt:\n    print('ended')\n"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert process.stdout is not None and process.stdout.readline() == "go\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out == "ended\n"


def test_a_forked_process_plays_too() -> None:
    dualq.run(SHORT)
    child = os.fork()
    if child == 0:
        os._exit(0 if dualq.run(SHORT)[0].outcome.goodput_mbit > 1 else 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


def test_the_program_is_there() -> None:
    version = subprocess.run([sys.executable, "-m", "dualq", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.strip() == f"dualq {dualq.__version__}"
