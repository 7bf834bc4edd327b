"""`dualq.sweep`: many points in the model, by whatever runs functions: threads here, processes, Dask, Ray."""

from __future__ import annotations

import builtins
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import islice
from operator import index
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Protocol, TypeAlias, Union

from . import _dualq
from ._dualq import Plan, Results, play
from ._errors import Error, RunError, ScenarioError
from ._run import _seed, _seeds
from .scenario import Like, _source, _value



class _Array(Protocol):
    """What numpy and pandas have."""

    def tolist(self) -> Any: ...


Values: TypeAlias = Union[str, int, float, bool, Sequence[Union[str, int, float, bool]], _Array]
"""What an axis has: a list or an array, or in a word a range (`"1mbit..1gbit:log"`) or a part of a value (`"dualpi2 target {1ms..50ms}"`)."""

_IN_FLIGHT = 2
"""Chunks for each worker: one that it plays, and one that waits for it."""

_MOST_IN_CHUNK = 10_000


def _chunk(version: str, jobs: list[tuple[str, int]]) -> tuple[float, list[str]]:
    """What a worker does: plays these one after the other, and says how long that took."""
    if version != _dualq.VERSION:
        raise RunError(f"this worker has dualq {_dualq.VERSION}, and who asks has {version}: install the same")
    begun = time.perf_counter()
    runs = play(jobs, 1)
    return time.perf_counter() - begun, runs


class _Pool:
    """Whatever runs functions, as futures of the standard library."""

    def __init__(self, executor: Any, retries: int, closing: ExitStack) -> None:
        self.workers = os.cpu_count() or 1
        self.submit: Callable[..., Future[Any]]
        kind = type(executor).__module__.partition(".")[0]
        if executor is None:
            threads = closing.enter_context(ThreadPoolExecutor(self.workers))
            self.submit = threads.submit
        elif isinstance(executor, Executor):
            self.workers = int(getattr(executor, "_max_workers", self.workers))
            self.submit = executor.submit
        elif kind == "distributed":
            self.workers = max(sum(executor.nthreads().values()), 1)
            self.submit = executor.get_executor(pure=False, retries=retries).submit
        elif getattr(executor, "__name__", None) == "ray":
            if not executor.is_initialized():
                executor.init()
            self.workers = max(int(executor.cluster_resources().get("CPU", 1)), 1)
            remote = executor.remote(_chunk).options(max_retries=retries)
            self.submit = lambda _, *arguments: remote.remote(*arguments).future()
        else:
            raise TypeError(
                f"{executor!r} runs nothing that is known here: give a concurrent.futures.Executor, a dask.distributed.Client or the module ray"
            )


class _Store:
    """A folder that may be elsewhere: in an object store, of which this machine then has a copy."""

    def __init__(self, folder: str | os.PathLike[str], closing: ExitStack) -> None:
        name = os.fspath(folder)
        self._remote: Any = None
        if "://" not in name:
            self.local = name
            return
        import fsspec

        self._remote, self._root = fsspec.core.url_to_fs(name)
        self.local = os.path.join(closing.enter_context(tempfile.TemporaryDirectory(prefix="dualq-")), "sweep")
        if self._remote.exists(self._root):
            for path in self._remote.find(self._root):
                inside = os.path.relpath(path, self._root)
                # What others are just writing is not there yet.
                if inside.partition(os.sep)[0] != "parts":
                    place = os.path.join(self.local, inside)
                    os.makedirs(os.path.dirname(place), exist_ok=True)
                    self._remote.get_file(path, place)

    def send(self, files: list[str]) -> None:
        """Copies files of the folder there. Object stores have a file whole or not at all."""
        if self._remote is not None:
            for file in files:
                place = f"{self._root}/{file}"
                self._remote.makedirs(os.path.dirname(place), exist_ok=True)
                self._remote.put_file(os.path.join(self.local, file), place)

    def send_plan(self) -> None:
        """The same of what a sweep keeps at its beginning."""
        plans = [f"plans/{plan.name}" for plan in (Path(self.local) / "plans").iterdir()]
        self.send(["README", *plans])


def _axes(axes: Mapping[str, Values] | None) -> list[str]:
    """As the command line writes them: `link.rate=10mbit,50mbit`."""

    def value(key: str, one: Any) -> str:
        # A comma of the value's own is none of the list.
        return one if isinstance(one, str) and "," not in one else _value(key, one)

    def words(key: str, values: Any) -> str:
        # Arrays of numpy and columns of pandas.
        if hasattr(values, "tolist"):
            values = values.tolist()
        if isinstance(values, (list, tuple, range)):
            return ",".join(value(key, one) for one in values)
        return values if isinstance(values, str) else value(key, values)

    if not isinstance(axes, (Mapping, NoneType)):
        raise TypeError(f"{axes!r} does not say what varies: give a dict of keys with their values, such as {{'link.rate': ['10mbit', '50mbit']}}")
    return [f"{key}={words(key, values)}" for key, values in (axes or {}).items()]


def sweep(
    scenario: Like | None = None,
    vary: Mapping[str, Values] | None = None,
    *,
    folder: str | os.PathLike[str],
    zip: Mapping[str, Values] | None = None,
    sample: int | None = None,
    sampling: Literal["latin", "random"] = "latin",
    sample_seed: int = 1,
    seeds: int | range = 1,
    distributions: bool = False,
    executor: Any = None,
    chunk_s: float = 1.0,
    retries: int = 3,
    progress: Callable[[float], object] | None = None,
) -> Results:
    """Plays all combinations of `vary`'s values in the model, with all seeds, and keeps each run in `folder`; what is there is not played again.

    `vary` has keys of the scenario file (`"link.rate"`, `"flow.0.cc"`) with lists of values, or ranges to draw `sample`s from, of which
    those that are the same count once. What is in `zip` varies together. The folder is that of `dualq sweep`, here or elsewhere (`s3://…`, by fsspec).

    `executor` is a `concurrent.futures.Executor`, a `dask.distributed.Client` or the module `ray`; without one, threads of this process
    play. Workers need the same dualq, and no folder: what they play comes back, and this process keeps it. They get chunks of about
    `chunk_s` seconds. A chunk whose worker dies is played again, `retries` times at most. `progress` is called with the share that is done.

    Whatever ends it, the same call goes on where it stopped.
    """
    source = _source(scenario)
    if sampling not in ("latin", "random"):
        raise ScenarioError(f"sampling is {sampling!r}: give 'latin' or 'random'")
    if sample is not None and index(sample) < 1:
        raise ScenarioError(f"sample is {sample}: give 1 or more")
    with ExitStack() as closing:
        store = _Store(folder, closing)
        draw = None if sample is None else (sample, _seed(sample_seed), sampling == "latin")
        plan = Plan(source, _axes(vary), _axes(zip), draw, _seeds(seeds), distributions, store.local)
        store.send_plan()
        missing = plan.missing()
        if missing:
            _play(plan, missing, _Pool(executor, retries, closing), store, chunk_s, retries, progress)
        if progress is not None:
            progress(1.0)
        return plan.results()


def _play(
    plan: Plan,
    missing: list[int],
    pool: _Pool,
    store: _Store,
    chunk_s: float,
    retries: int,
    progress: Callable[[float], object] | None,
) -> None:
    """Plays these points in chunks."""
    total, done = len(plan), len(plan) - len(missing)
    points = iter(missing)
    waiting: dict[Future[Any], tuple[list[int], int]] = {}
    left, each_s = len(missing), None

    def submit(numbers: list[int], tries: int) -> None:
        jobs = [plan.job(number) for number in numbers]
        waiting[pool.submit(_chunk, _dualq.VERSION, jobs)] = numbers, tries

    def fill() -> None:
        nonlocal left
        # The first points alone tell how long one takes; at the end all workers are to have something.
        fair = -(-left // (_IN_FLIGHT * pool.workers))
        size = 1 if each_s is None else max(1, min(int(chunk_s / max(each_s, 1e-6)), fair, _MOST_IN_CHUNK))
        while left and len(waiting) < _IN_FLIGHT * pool.workers:
            numbers = list(islice(points, size))
            left -= len(numbers)
            submit(numbers, 0)

    try:
        fill()
        while waiting:
            # Not for ever, so that Ctrl-C is seen by all kinds of futures.
            finished, _ = wait(waiting, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in finished:
                numbers, tries = waiting.pop(future)
                try:
                    took_s, runs = future.result()
                except (Error, KeyboardInterrupt):
                    raise
                except BrokenExecutor as error:
                    raise RunError(f"the executor's workers died; what is in the folder stays, and the same call goes on: {error}") from error
                except Exception as error:
                    if tries >= retries:
                        raise RunError(f"{len(numbers)} points failed {tries + 1} times: {error}") from error
                    submit(numbers, tries + 1)
                    continue
                store.send([plan.put(number, run) for number, run in builtins.zip(numbers, runs)])
                # Smoothed, for points differ.
                one_s = took_s / len(numbers)
                each_s = one_s if each_s is None else 0.7 * each_s + 0.3 * one_s
                done += len(numbers)
                if progress is not None:
                    progress(done / total)
            fill()
    finally:
        for future in waiting:
            future.cancel()
