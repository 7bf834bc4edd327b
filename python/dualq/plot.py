"""Pictures with matplotlib that look like those of the report: its colours, its order, its units.

Each function draws into `axes`, or a new figure, and returns the axes. `results.pictures()` has the report's own pictures as SVG.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._dualq import Results, Run
from ._figures import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .outcome import DelayDistribution

COLOURS = ["#0072b2", "#ae5f52", "#1b1f24", "#897500", "#004d11", "#a70068", "#372f9e"]
"""Those of the report, on light paper."""

HEAT = ["#eaf3fb", "#cfe3f4", "#abd0ea", "#7fb6dd", "#2b77ab", "#1a5f92", "#0d4470"]
"""From little to much, as in the report's maps."""

_DASHES = ["solid", (0, (5, 2.5)), (0, (1.25, 2)), (0, (6, 2, 1.25, 2))]
_INK, _SOFT, _LINE = "#1b1f24", "#57606a", "#d0d7de"

STYLE: Any = {
    "axes.edgecolor": _LINE,
    "axes.grid": True,
    "axes.labelcolor": _SOFT,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.family": "sans-serif",
    "font.sans-serif": ["Arial", "Liberation Sans", "DejaVu Sans", "Helvetica"],
    "font.size": 9,
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "text.color": _INK,
    "xtick.color": _SOFT,
    "ytick.color": _SOFT,
}
"""For `matplotlib.rc_context(dualq.plot.STYLE)`: how figures of your own look like these."""

SERIES = {
    "goodput_mbit": "Goodput (Mbit/s)",
    "rtt_ms": "Round-trip time (ms)",
    "queue_delay_ms": "Queue delay (ms)",
    "queue_packets": "Packets in the queue",
    "probability": "Probability",
    "queue_drops": "Drops",
    "queue_marks": "Marks",
    "cwnd": "Congestion window (segments)",
    "ssthresh": "Slow-start threshold (segments)",
    "in_flight": "In flight (segments)",
    "pacing_mbit": "Pacing rate (Mbit/s)",
    "srtt_ms": "Smoothed round-trip time (ms)",
    "retransmits": "Sent again (segments)",
}
"""What can be drawn over time, with the words beside the axis."""


def _axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    import matplotlib
    from matplotlib import pyplot

    # Before the styles, which end with the block: what a notebook's backend sets with the first figure is to stay.
    figure = pyplot.figure(figsize=(6.4, 3.4), layout="constrained")
    with matplotlib.rc_context(STYLE):
        return figure.add_subplot()


def _styles() -> Iterator[dict[str, Any]]:
    """Colours, and dashes where these begin again."""
    for dash in _DASHES:
        for colour in COLOURS:
            yield {"color": colour, "linestyle": dash, "linewidth": 1.6}


def _first_seed(results: Results | Sequence[Run] | Run) -> list[Run]:
    """A run of each scenario in each world: lines of several seeds would hide each other."""
    if isinstance(results, Run):
        return [results]
    runs = list(results)
    return [run for run in runs if run.seed == runs[0].seed]


def _label(run: Run, runs: Sequence[Run]) -> str:
    """What sets it apart from the others."""
    words = list(run.settings.values())
    if len({other.world for other in runs}) > 1:
        words.append(run.world)
    return ", ".join(words) or run.world


def _whose(run: Run, name: str, number: int) -> str:
    """Whose list it is of several."""
    groups = run.scenario["probe"] if name == "rtt_ms" else run.scenario["flow"]
    word = groups[number]["kind" if name == "rtt_ms" else "cc"]
    same = [group for group in groups if group.get("kind" if name == "rtt_ms" else "cc") == word]
    return str(word) if len(same) == 1 else f"{word} {number + 1}"


def time(results: Results | Sequence[Run] | Run, name: str = "goodput_mbit", *, axes: Axes | None = None) -> Axes:
    """A series over time, of each run with the first seed: names are those of `SERIES`."""
    if name not in SERIES:
        raise ValueError(f"no series is called {name!r}; there are {', '.join(SERIES)}")
    axes = _axes(axes)
    runs, styles = _first_seed(results), _styles()
    for run in runs:
        series = run.outcome.series
        values: Any = getattr(series, name)
        lists = values if values and isinstance(values[0], list) else [values]
        for number, one in enumerate(lists):
            words = [_label(run, runs)] if len(runs) > 1 else []
            words += [_whose(run, name, number)] if len(lists) > 1 else []
            drawn = [float("nan") if value is None else value for value in one]
            axes.plot(series.t_s, drawn, label=": ".join(words) or _label(run, runs), **next(styles))
    axes.set(xlabel="Time (s)", ylabel=SERIES[name], xlim=(0, None), ylim=(0, None))
    _legend(axes)
    return axes


def distribution(
    results: Results | Sequence[Run] | Run, of: str = "probe", *, tail: bool = False, axes: Axes | None = None
) -> Axes:
    """How the first probe's round trips (`of="probe"`) or the packets' times in the queue (`of="queue"`) are distributed; with `tail` the
    share that takes longer, on a logarithmic axis. The runs need `distributions`."""
    axes = _axes(axes)
    runs, styles = _first_seed(results), _styles()
    for run in runs:
        found: DelayDistribution | None
        if of == "probe":
            found = run.outcome.probe[0].distribution if run.outcome.probe else None
        elif of == "queue":
            found = run.outcome.queue.distribution
        else:
            raise ValueError(f"of is {of!r}: give 'probe' or 'queue'")
        if found is None:
            raise ValueError("these runs have no distributions: dualq.run(…, distributions=True)")
        shares = [1 - share for share in found.share] if tail else found.share
        pairs = [(ms, share) for ms, share in zip(found.ms, shares) if share > 0 or not tail]
        axes.step(*zip(*pairs), where="post", label=_label(run, runs), **next(styles))
    what = "Round-trip time (ms)" if of == "probe" else "Time in the queue (ms)"
    axes.set(xlabel=what, ylabel="Share that takes longer" if tail else "Share")
    if tail:
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.02)
    _legend(axes)
    return axes


def _figures(results: Results, group: str | None, name: str) -> list[Figure]:
    """Those of this name, of each scenario in each world."""
    figures = results.figures()
    found = [one for one in figures if one.name == name and group in (None, one.group)]
    if not found:
        known = dict.fromkeys(f"{one.group!r} {one.name!r}" for one in figures)
        asked = f"{name!r}" if group is None else f"{group!r} {name!r}"
        raise ValueError(f"no figure is called {asked}; there are {', '.join(known)}")
    return found


def comparison(results: Results, group: str | None = None, name: str = "mean", *, axes: Axes | None = None) -> Axes:
    """A figure of the table as bars, a bar for each scenario in each world, with the deviation from seed to seed. `group` and `name` are
    those of `results.figures()`; without a group it is the first that has the name."""
    axes = _axes(axes)
    figures = _figures(results, group, name)
    figures = [one for one in figures if one.group == figures[0].group]
    worlds = {one.world for one in figures}
    labels = [", ".join([*one.settings.values(), *([one.world] if len(worlds) > 1 else [])]) or one.world for one in figures]
    means = [one.mean if one.mean is not None else 0.0 for one in figures]
    spread = [one.deviation or 0.0 for one in figures]
    places = list(range(len(figures)))
    axes.barh(places, means, xerr=spread if any(spread) else None, color=COLOURS[0], ecolor=_INK, height=0.6)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    unit = f" ({figures[0].unit})" if figures[0].unit else ""
    axes.set_xlabel(f"{figures[0].group} {name}{unit}")
    return axes


def heat(results: Results, group: str, name: str, *, axes: Axes | None = None) -> Axes:
    """A figure of the table over two settings that vary, as a map."""
    import matplotlib.colors

    axes = _axes(axes)
    figures = _figures(results, group, name)
    varied = list(figures[0].settings)
    if len(varied) != 2:
        raise ValueError(f"a map is of two settings that vary, and these are {len(varied)}: {', '.join(varied)}")
    down, across = (list(dict.fromkeys(one.settings[key] for one in figures)) for key in varied)
    means = {tuple(one.settings.values()): one.mean for one in figures}
    cells = [[_number(means.get((row, column))) for column in across] for row in down]
    colours = matplotlib.colors.LinearSegmentedColormap.from_list("dualq", HEAT)
    drawn = axes.imshow(cells, cmap=colours, aspect="auto")
    axes.grid(visible=False)
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(down)), down)
    axes.set(xlabel=varied[1], ylabel=varied[0])
    flat = [cell for row in cells for cell in row if cell == cell]
    middle = (min(flat) + max(flat)) / 2 if flat else 0.0
    for y, row in enumerate(cells):
        for x, cell in enumerate(row):
            if cell == cell:
                axes.text(x, y, f"{cell:.4g}", ha="center", va="center", color="#fff" if cell > middle else _INK)
    unit = f" ({figures[0].unit})" if figures[0].unit else ""
    axes.figure.colorbar(drawn, ax=axes, label=f"{group} {name}{unit}")
    return axes


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _legend(axes: Axes) -> None:
    handles: Iterable[Any] = axes.get_legend_handles_labels()[0]
    if len(list(handles)) > 1:
        axes.legend(frameon=False)
