"""`dualq.plot`: what is drawn is what came of it."""

import math
from collections.abc import Iterator

import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

import dualq

SCENARIO = {
    "duration": "4s", "warmup": "1s",
    "link": {"rate": ["5mbit", "10mbit"], "rtt": "20ms", "qdisc": ["pfifo", "fq_codel"]},
    "flow": [{"cc": "cubic"}, {"cc": "reno"}],
}


@pytest.fixture(scope="module")
def results() -> dualq.Results:
    return dualq.run(SCENARIO, seeds=2, distributions=True)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_time(results: dualq.Results) -> None:
    axes = dualq.plot.time(results, "goodput_mbit")
    lines = axes.get_lines()
    assert len(lines) == 4 * 2 and axes.get_ylabel() == "Goodput (Mbit/s)"
    assert list(lines[0].get_ydata()) == results[0].outcome.series.goodput_mbit[0]
    assert lines[0].get_label() == "5Mbit, pfifo: cubic" and to_hex(lines[0].get_color()) == dualq.plot.COLOURS[0]
    assert dualq.plot.time(results[0], "rtt_ms").get_lines()[0].get_label() == "5Mbit, pfifo"
    for name in dualq.plot.SERIES:
        dualq.plot.time(results[0], name)
    with pytest.raises(ValueError, match="no series is called 'nope'; there are goodput_mbit, "):
        dualq.plot.time(results, "nope")


def test_distribution(results: dualq.Results) -> None:
    axes = dualq.plot.distribution(results, "queue", tail=True)
    assert len(axes.get_lines()) == 4 and axes.get_yscale() == "log"
    shares = [float(share) for share in axes.get_lines()[0].get_ydata()]
    assert shares == sorted(shares, reverse=True) and all(0 < share <= 1 for share in shares)
    dualq.plot.distribution(results)
    with pytest.raises(ValueError, match="no distributions: dualq.run"):
        dualq.plot.distribution(dualq.run(SCENARIO))


def test_comparison(results: dualq.Results) -> None:
    axes = dualq.plot.comparison(results, "ssh RTT", "p99")
    means = [one.mean for one in results.figures() if (one.group, one.name) == ("ssh RTT", "p99")]
    assert [bar.get_width() for bar in axes.patches] == means and len(means) == 4
    assert axes.get_xlabel() == "ssh RTT p99 (ms)"
    assert [label.get_text() for label in axes.get_yticklabels()][0] == "5Mbit, pfifo"
    with pytest.raises(ValueError, match="no figure is called 'nope' 'p99'; there are 'goodput' 'Mbits/sec', "):
        dualq.plot.comparison(results, "nope", "p99")


def test_heat(results: dualq.Results) -> None:
    axes = dualq.plot.heat(results, "ssh RTT", "mean")
    cells = axes.get_images()[0].get_array()
    assert cells.shape == (2, 2) and not math.isnan(float(cells.sum()))
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("rate", "qdisc")
    with pytest.raises(ValueError, match="no figure is called 'ssh RTT' 'p98'; there are 'goodput' "):
        dualq.plot.heat(results, "ssh RTT", "p98")
    with pytest.raises(ValueError, match="a map is of two settings"):
        dualq.plot.heat(dualq.run(), "ssh RTT", "mean")


def test_colours_are_the_reports(results: dualq.Results) -> None:
    picture = dict(results.pictures())["time"]
    for colour in dualq.plot.COLOURS:
        assert colour in picture
