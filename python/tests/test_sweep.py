"""`dualq.sweep`: the folder, and who plays."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dualq

BASE = {"duration": "2s", "warmup": "1s", "link": {"rtt": "20ms"}, "flow": [{"cc": "cubic"}]}
VARY = {"link.rate": ["5mbit", "10mbit"], "link.qdisc": ["pfifo", "dualpi2 target 5ms"]}


def figures(results: dualq.Results) -> list[tuple[Any, ...]]:
    return [(run.settings, run.seed, run.outcome) for run in results]


def expected() -> list[tuple[Any, ...]]:
    link = {"rtt": "20ms", "rate": VARY["link.rate"], "qdisc": VARY["link.qdisc"]}
    results = dualq.run({**BASE, "link": link}, seeds=2)
    return [({f"link.{what}": value for what, value in run.settings.items()}, run.seed, run.outcome) for run in results]


def normal(points: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Without the words of rates, which a scenario file and an axis write differently."""
    return [(settings["link.qdisc"], seed, outcome) for settings, seed, outcome in points]


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many points each chunk had that was asked for."""
    from dualq import _sweep

    chunks: list[int] = []
    inner = _sweep._chunk

    def chunk(version: str, jobs: list[tuple[str, int]]) -> tuple[float, list[str]]:
        chunks.append(len(jobs))
        return inner(version, jobs)

    monkeypatch.setattr(_sweep, "_chunk", chunk)
    return chunks


def test_threads_play_what_is_missing_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks, shares = counting(monkeypatch), list[float]()
    results = dualq.sweep(BASE, VARY, folder=tmp_path / "s", seeds=2, progress=shares.append)
    assert normal(figures(results)) == normal(expected())
    assert sum(chunks) == 8 and shares == sorted(shares) and shares[-1] == 1
    again = dualq.sweep(BASE, VARY, folder=tmp_path / "s", seeds=2)
    assert sum(chunks) == 8 and figures(again) == figures(results)
    more = dualq.sweep(BASE, VARY, folder=tmp_path / "s", seeds=3)
    assert sum(chunks) == 12 and len(more) == 12


def test_chunks_are_about_as_long_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = counting(monkeypatch)
    dualq.sweep(BASE, {"link.rate": "1mbit..10mbit"}, folder=tmp_path / "s", sample=200, chunk_s=0.05)
    assert sum(chunks) == 200 and max(chunks) > 1 and len(chunks) > 10


def test_samples_and_parts_of_values(tmp_path: Path) -> None:
    results = dualq.sweep(
        BASE, {"link.rate": "1mbit..10mbit:log", "link.qdisc": "dualpi2 target {5ms..50ms}"}, folder=tmp_path / "s", sample=5
    )
    assert len(results) == 5 and set(results[0].settings) == {"link.rate", "target"}
    with pytest.raises(dualq.ScenarioError, match="a range has no end of values; draw a sample of it"):
        dualq.sweep(BASE, {"link.rate": "1mbit..10mbit"}, folder=tmp_path / "t")
    with pytest.raises(dualq.ScenarioError, match="nope"):
        dualq.sweep(BASE, {"link.nope": ["1"]}, folder=tmp_path / "t")
    with pytest.raises(dualq.ScenarioError, match="sampling is 'sobol': give 'latin' or 'random'"):
        dualq.sweep(BASE, VARY, folder=tmp_path / "t", sample=2, sampling="sobol")  # type: ignore[arg-type]
    with pytest.raises(dualq.ScenarioError, match="sample is -1: give 1 or more"):
        dualq.sweep(BASE, VARY, folder=tmp_path / "t", sample=-1)
    with pytest.raises(TypeError, match="link.rate: None has no place in a scenario"):
        dualq.sweep(BASE, {"link.rate": None}, folder=tmp_path / "t")  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="does not say what varies: give a dict"):
        dualq.sweep(BASE, ["link.rate=5mbit"], folder=tmp_path / "t")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="runs nothing that is known here"):
        dualq.sweep(BASE, VARY, folder=tmp_path / "t", executor=3)


def test_values_may_be_of_a_range_or_an_array(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    for values in (range(1, 3), numpy.arange(1, 3), list(numpy.arange(1, 3))):
        results = dualq.sweep(BASE, {"flow.0.count": values}, folder=tmp_path / "s")
        assert [run.settings for run in results] == [{"flow.0.count": "1"}, {"flow.0.count": "2"}]


def test_what_is_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(share: float) -> None:
        if share >= 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dualq.sweep(BASE, VARY, folder=tmp_path / "s", seeds=2, chunk_s=0, progress=stop)
    chunks = counting(monkeypatch)
    results = dualq.sweep(BASE, VARY, folder=tmp_path / "s", seeds=2)
    assert 0 < sum(chunks) <= 4 and normal(figures(results)) == normal(expected())


def test_processes_play_too(tmp_path: Path) -> None:
    with ProcessPoolExecutor(2) as executor:
        results = dualq.sweep(BASE, VARY, folder=tmp_path / "s", seeds=2, executor=executor)
        assert normal(figures(results)) == normal(expected())
        # What a worker raises comes back as it is.
        with pytest.raises(dualq.ScenarioError, match="gone"):
            executor.submit(_raises).result()


def _raises() -> None:
    raise dualq.ScenarioError("gone")


def test_a_pool_whose_worker_dies_leaves_a_folder_to_go_on_with(tmp_path: Path) -> None:
    slow = {**BASE, "duration": "400s"}
    with ProcessPoolExecutor(2) as executor:
        list(executor.map(abs, range(8)))
        victim = next(iter(executor._processes))
        killer = threading.Timer(0.7, os.kill, (victim, signal.SIGKILL))
        killer.start()
        with pytest.raises(dualq.RunError, match="workers died; what is in the folder stays"):
            dualq.sweep(slow, VARY, folder=tmp_path / "s", seeds=20, executor=executor, chunk_s=0.1)
        killer.join()
    results = dualq.sweep(slow, VARY, folder=tmp_path / "s", seeds=20)
    assert len(results) == 80


def test_another_version_is_refused() -> None:
    from dualq._sweep import _chunk

    with pytest.raises(dualq.RunError, match="this worker has dualq .*install the same"):
        _chunk("0.0.0", [])


def test_what_fails_again_and_again_is_told(tmp_path: Path) -> None:
    from concurrent.futures import Future

    class Fails(Executor):
        calls = 0

        def submit(self, *_: Any, **__: Any) -> "Future[Any]":
            self.calls += 1
            future: Future[Any] = Future()
            future.set_exception(OSError("no such machine"))
            return future

    fails = Fails()
    with pytest.raises(dualq.RunError, match="1 points failed 3 times: no such machine"):
        dualq.sweep(BASE, VARY, folder=tmp_path / "s", executor=fails, retries=2)
    assert fails.calls >= 3


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, str]]:
    """A file system that is no folder here, and a folder in it with its scheme."""
    fsspec = pytest.importorskip("fsspec", reason="no fsspec: pip install fsspec")
    if request.param == "memory":
        yield fsspec.filesystem("memory"), "memory://bucket/sweep"
        return
    pytest.importorskip("s3fs", reason="no s3fs: pip install s3fs")
    moto = pytest.importorskip("moto.server", reason="no moto: pip install 'moto[server,s3]'")
    # A server of its own on this machine, that speaks S3 over HTTP and takes any key.
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "AWS_DEFAULT_REGION": "us-east-1"}.items():
            monkeypatch.setenv(name, value)
        files = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False)
        files.mkdir("bucket")
        yield files, "s3://bucket/sweep"
    finally:
        server.stop()


def test_folders_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: tuple[Any, str]) -> None:
    files, folder = store
    chunks = counting(monkeypatch)
    results = dualq.sweep(BASE, VARY, folder=folder, seeds=2)
    assert normal(figures(results)) == normal(expected()) and sum(chunks) == 8
    names = [name for name in files.find(folder) if "/points/" in name]
    assert len(names) == 8
    files.rm(names[0])
    again = dualq.sweep(BASE, VARY, folder=folder, seeds=2)
    assert sum(chunks) == 9 and figures(again) == figures(results)
    # Another sweep, of which nothing was kept yet: the copy here lacks folders in which there was no file.
    assert len(dualq.sweep(BASE, {"link.rate": ["7mbit"]}, folder=folder)) == 1 and sum(chunks) == 10
    # What others did meanwhile is seen, also where nothing was missing before.
    dualq.sweep(BASE, VARY, folder=folder, seeds=2)
    files.rm(names[1])
    assert figures(dualq.sweep(BASE, VARY, folder=folder, seeds=2)) == figures(results)
    assert sum(chunks) == 11
    # The same folder here is one of `dualq sweep`.
    files.get(folder, str(tmp_path / "here"), recursive=True)
    assert figures(dualq.sweep(BASE, VARY, folder=tmp_path / "here", seeds=2)) == figures(results)
    assert sum(chunks) == 11


def test_dask_plays_and_a_worker_may_be_killed(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="no Dask: pip install 'dask[distributed]'")
    slow = {**BASE, "duration": "200s"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            pids = client.run(os.getpid)
            killer = threading.Timer(1.0, os.kill, (next(iter(pids.values())), signal.SIGKILL))
            killer.start()
            results = dualq.sweep(slow, VARY, folder=tmp_path / "s", seeds=20, executor=client, chunk_s=0.2)
            killer.join()
            assert set(client.run(os.getpid).values()) != set(pids.values())
    assert normal(figures(results)) == normal(figures(dualq.sweep(slow, VARY, folder=tmp_path / "t", seeds=20)))


def test_ray_plays_and_a_worker_may_be_killed(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="no Ray: pip install ray")
    slow = {**BASE, "duration": "200s"}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        # A worker tells who it is; then that one is killed while it plays.
        killed: list[int] = []

        def kill() -> None:
            time.sleep(1.0)
            mine = {int(name) for name in os.listdir("/proc") if name.isdigit()}
            for process in sorted(mine):
                try:
                    title = Path(f"/proc/{process}/cmdline").read_bytes()
                except OSError:
                    continue
                if title.startswith(b"ray::_chunk") and not killed:
                    killed.append(process)
                    os.kill(process, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        results = dualq.sweep(slow, VARY, folder=tmp_path / "s", seeds=20, executor=ray, chunk_s=0.2)
        killer.join()
        assert killed
    finally:
        ray.shutdown()
    assert normal(figures(results)) == normal(figures(dualq.sweep(slow, VARY, folder=tmp_path / "t", seeds=20)))
