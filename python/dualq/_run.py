"""`dualq.run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from . import _dualq
from ._dualq import Results
from ._errors import ScenarioError
from ._program import call
from .scenario import Like, Many, Scenario, _Source, _source

World: TypeAlias = Literal["model", "kernel", "live"]


def _words(value: Many[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _options(**said: Any) -> dict[str, Any]:
    """What stands in for the scenario's own values, as the library takes it."""
    lists = {name: _words(said[name]) for name in ("qdisc", "cc", "rate", "rtt")}
    return {**lists, **{name: said[name] for name in ("duration", "interval", "distributions")}}


def _seeds(seeds: int | range) -> tuple[int, int]:
    """The first and how many."""
    if isinstance(seeds, range):
        if seeds.step != 1 or not seeds:
            raise ScenarioError(f"seeds is {seeds!r}: give some that follow each other, such as range(1, 6)")
        return seeds.start, len(seeds)
    return 1, seeds


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

    `kernel` is a version for the world kernel, else the newest is taken. The model runs on as many `threads`, or all cores.
    `progress` is called now and then with the share that is done (in the model).

    The interpreter is free meanwhile; Ctrl-C ends the run. Worlds other than the model are played by the program that came along.
    """
    many = isinstance(scenario, list)
    sources = [_source(one) for one in (scenario if many else [scenario])]
    said: dict[str, Any] = dict(qdisc=qdisc, cc=cc, rate=rate, rtt=rtt, duration=duration, interval=interval)
    options = _options(**said, distributions=distributions)
    worlds: list[str] = [world] if isinstance(world, str) else list(world)
    if worlds == ["model"] and kernel is None:
        played = _dualq.run(sources, options, _seeds(seeds), threads, progress)
    else:
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
