"""`dualq.run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import index
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias, overload

from . import _dualq
from ._dualq import Results
from ._errors import ScenarioError
from ._program import call
from .scenario import Like, Many, Scenario, _Source, _source

World: TypeAlias = Literal["model", "kernel", "live"]

_MOST_SEEDS = 1000


def _options(**said: Any) -> dict[str, Any]:
    """What stands in for the scenario's own values, as the library takes it."""

    def words(name: str) -> list[str]:
        value = said[name]
        values = [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(one, str) for one in values):
            raise TypeError(f"{name} is {value!r}: give text, as a scenario's file has it, or a list of such")
        return values

    def word(name: str) -> str | None:
        value: str | None = said[name]
        if not isinstance(value, (str, NoneType)):
            raise TypeError(f"{name} is {value!r}: give a time as text, such as '10s'")
        return value

    return {
        **{name: words(name) for name in ("qdisc", "cc", "rate", "rtt")},
        **{name: word(name) for name in ("duration", "interval")},
        "distributions": said["distributions"],
    }


def _seed(seed: int) -> int:
    """One that the library can have."""
    if not 0 <= index(seed) < 2**64:
        raise ScenarioError(f"seed {seed}: give a whole number from 0 to {2**64 - 1}")
    return seed


def _seeds(seeds: int | range) -> tuple[int, int]:
    """The first and how many, which are no more than the program takes."""
    if not isinstance(seeds, range):
        first, count = 1, index(seeds)
    elif seeds.step != 1 or not seeds:
        raise ScenarioError(f"seeds is {seeds!r}: give some that follow each other, such as range(1, 6)")
    else:
        first, count = _seed(seeds.start), seeds.stop - seeds.start
        _seed(seeds.stop - 1)
    if not 1 <= count <= _MOST_SEEDS:
        raise ScenarioError(f"seeds is {seeds!r}: give 1 to {_MOST_SEEDS} of them")
    return first, count


def _threads(threads: int | None) -> int | None:
    """No more than there are cores, as the program has it: more gain nothing."""
    if threads is None:
        return None
    if index(threads) < 1:
        raise ScenarioError(f"threads is {threads}: give 1 or more, or leave it out for all cores")
    return min(threads, os.cpu_count() or 1)


@overload
def run(
    scenario: Like | None = None,
    *,
    world: World | Sequence[World] = "model",
    seeds: int | range = 1,
    qdisc: Many[str] | None = None,
    cc: Many[str] | None = None,
    rate: Many[str] | None = None,
    rtt: Many[str] | None = None,
    duration: str | None = None,
    interval: str | None = None,
    distributions: bool = False,
    kernel: str | None = None,
    threads: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Results: ...
@overload
def run(
    scenario: list[Scenario] | list[dict[str, Any]] | list[str] | list[Path] | list[Like],
    *,
    world: World | Sequence[World] = "model",
    seeds: int | range = 1,
    qdisc: Many[str] | None = None,
    cc: Many[str] | None = None,
    rate: Many[str] | None = None,
    rtt: Many[str] | None = None,
    duration: str | None = None,
    interval: str | None = None,
    distributions: bool = False,
    kernel: str | None = None,
    threads: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> list[Results]: ...


def run(
    scenario: Any = None,
    *,
    world: World | Sequence[World] = "model",
    seeds: int | range = 1,
    qdisc: Many[str] | None = None,
    cc: Many[str] | None = None,
    rate: Many[str] | None = None,
    rtt: Many[str] | None = None,
    duration: str | None = None,
    interval: str | None = None,
    distributions: bool = False,
    kernel: str | None = None,
    threads: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Results | list[Results]:
    """Plays a scenario, or all combinations of its lists, and says what came of it; of a list of scenarios, a list.

    `world` is `"model"`, `"kernel"`, `"live"` or several of them. `seeds` is how many, from 1 on, or a range.

    `qdisc`, `cc`, `rate`, `rtt`, `duration` and `interval` stand in for what the scenario says, as the program's options do.
    `distributions` gives outcomes what pictures show: distributions of delays, and series each 200 ms unless `interval` says otherwise.

    `kernel` is a version for the world kernel, else the newest is taken. The model runs on so many `threads`, or on all cores.
    `progress` is called now and then with the share that is done. Both are for the model alone.

    The interpreter is free meanwhile; Ctrl-C ends the run. Worlds other than the model are played by the program that came along.
    """
    many = isinstance(scenario, list)
    sources = [_source(one) for one in (scenario if many else [scenario])]
    said: dict[str, Any] = dict(qdisc=qdisc, cc=cc, rate=rate, rtt=rtt, duration=duration, interval=interval)
    options = _options(**said, distributions=distributions)
    worlds: list[str] = [world] if isinstance(world, str) else list(world)
    if worlds == ["model"] and kernel is None:
        played = _dualq.run(sources, options, _seeds(seeds), _threads(threads), progress)
    else:
        for name, value in (("threads", threads), ("progress", progress)):
            if value is not None and worlds != ["model"]:
                raise ScenarioError(f"{name} is for the model alone, and world is {world!r}: leave one of them out")
        played = [_elsewhere(one, worlds, _seeds(seeds), options, kernel) for one in sources]
    return played if many else played[0]


def _elsewhere(
    source: _Source, worlds: list[str], seeds: tuple[int, int], options: dict[str, Any], kernel: str | None
) -> Results:
    """The same by the program."""
    first, count = seeds
    arguments = ["run", "-", "--json", "--no-progress", "--world", ",".join(worlds), "--seed", str(first), "--seeds", str(count)]
    for name in ("qdisc", "cc", "rate", "rtt"):
        arguments += [word for value in options[name] for word in (f"--{name}", value)]
    for name in ("duration", "interval"):
        arguments += [f"--{name}", options[name]] if options[name] is not None else []
    arguments += ["--distributions"] if options["distributions"] else []
    arguments += ["--kernel", kernel] if kernel is not None else []
    folder = Path(source.folder) if source.folder else None
    return Results.from_json(call(arguments, source.text, folder))
