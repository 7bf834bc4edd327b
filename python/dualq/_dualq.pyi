"""What is written in Rust."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, final, overload

from typing_extensions import Self

from ._figures import Figure
from .outcome import Outcome
from .scenario import _Source

VERSION: Final[str]

@final
class Table:
    """Columns of one length, whose names have the units. pyarrow, pandas and polars read them where they are, over Arrow's interface."""

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]:
        """A column as a list; None where there is nothing."""
    def to_arrow(self) -> Any:
        """As a `pyarrow.Table`, without a copy."""
    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`, by pyarrow."""
    def to_polars(self) -> Any:
        """As a `polars.DataFrame`, without a copy of numbers."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class Run:
    """One run, and what came of it."""

    @property
    def settings(self) -> dict[str, str]:
        """What sets its scenario apart from the others: values that were lists."""
    @property
    def world(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def kernel(self) -> str | None:
        """The version of the world's kernel, if it has one."""
    @property
    def scenario(self) -> dict[str, Any]:
        """The scenario with all defaults filled in, as documents have it."""
    @property
    def outcome(self) -> Outcome: ...
    def series(self) -> Table:
        """How it went: a row for each time of each group of flows, probe and queue; as the Parquet of `dualq run --parquet`."""

@final
class Results:
    """What came of a scenario, or of all its combinations, in all worlds with all seeds."""

    @staticmethod
    def from_json(text: str) -> Results:
        """Reads a document of `dualq run --json` or `to_json`."""
    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def published(self) -> list[str]: ...
    @property
    def worlds(self) -> list[str]: ...
    @property
    def seeds(self) -> range: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Run: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Run]: ...
    def __iter__(self) -> Iterator[Run]: ...
    def text(self, width: int | None = None) -> str:
        """The table that `dualq run` prints, which `print(results)` does too."""
    def figures(self) -> list[Figure]:
        """All figures of the table with their units, over all seeds."""
    def summary(self) -> Table:
        """A row for each run, a column for each figure."""
    def series(self) -> Table:
        """The series of all runs: see `Run.series`."""
    def to_json(self) -> str:
        """The document of `dualq run --json`."""
    def to_csv(self) -> str: ...
    def to_html(self) -> str:
        """The report, one page that works from disk."""
    def pictures(self) -> list[tuple[str, str]]:
        """The report's pictures: names and SVG."""

def run(
    sources: Sequence[_Source],
    options: dict[str, Any],
    seeds: tuple[int, int],
    threads: int | None,
    watch: Callable[[float], object] | None,
) -> list[Results]: ...
def play(jobs: list[tuple[str, int]], threads: int) -> list[str]: ...
def register(name: str, make: Callable[[], object], has: list[str], ecn: str, paces: bool) -> None: ...

@final
class Window:
    """How much may be sent: what a congestion control decides."""

    cwnd: int
    """The congestion window, in segments."""
    ssthresh: int | None
    """Where slow start ends, in segments, if that was ever set."""
    pacing_mbit: float | None
    """The pacing rate in Mbit/s, if there is one."""
    @property
    def in_slow_start(self) -> bool: ...
    def slow_start(self, acked: int) -> int:
        """One segment for each acknowledged one, up to the threshold; returns what is left of `acked`."""
    def additive_increase(self, per_packet: int, acked: int) -> None:
        """One segment more for each `per_packet` acknowledged."""

@final
class Context:
    """What a congestion control may know of its connection."""

    @property
    def now_s(self) -> float: ...
    @property
    def mss(self) -> int:
        """Payload of a full segment, in bytes."""
    @property
    def state(self) -> str:
        """`open`, `disorder`, `cwr`, `recovery` or `loss`, before this event."""
    @property
    def prior_cwnd(self) -> int:
        """The window before the last reduction or recovery began."""
    @property
    def in_flight(self) -> int:
        """Segments in flight."""
    @property
    def delivered(self) -> int:
        """Segments delivered so far."""
    @property
    def delivered_ce(self) -> int:
        """Of these, those that arrived with CE, as far as the receiver has told."""
    @property
    def lost(self) -> int:
        """Segments deemed lost so far."""
    @property
    def srtt_ms(self) -> float | None: ...
    @property
    def min_rtt_ms(self) -> float | None:
        """The smallest of the last minutes."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the window, and nothing else, limited what was sent."""
    @property
    def paced(self) -> bool: ...
    @property
    def random(self) -> int:
        """A number that differs at each call and follows from the seed."""

@final
class RateSample:
    """What one acknowledgement tells."""

    @property
    def delivered(self) -> int | None:
        """Segments delivered over the interval; None without a valid sample."""
    @property
    def prior_delivered(self) -> int: ...
    @property
    def interval_ms(self) -> float: ...
    @property
    def rtt_ms(self) -> float | None: ...
    @property
    def losses(self) -> int: ...
    @property
    def acked(self) -> int: ...
    @property
    def marks(self) -> int: ...
    @property
    def ece(self) -> bool: ...
    @property
    def prior_in_flight(self) -> int: ...
    @property
    def app_limited(self) -> bool: ...

@final
class Packet:
    """A packet in a queue discipline of your own."""

    @property
    def flow(self) -> int:
        """Equal for packets of one flow."""
    @property
    def length(self) -> int:
        """Bytes on the wire, link-layer header included."""
    @property
    def segments(self) -> int:
        """How many packets of the wire it is: more than one if it is an aggregate."""
    @property
    def arrived_s(self) -> float: ...
    @property
    def ecn(self) -> int:
        """0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE."""
    def mark(self) -> bool:
        """Sets CE if it is ECN-capable, and says whether it is."""
    def drop(self) -> None:
        """Drops it, wherever it waits."""

@final
class Flow:
    """A connection at a moment, as `ss -ti` shows it."""

    @property
    def cwnd(self) -> int: ...
    @property
    def ssthresh(self) -> int | None: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def srtt_ms(self) -> float | None: ...
    @property
    def rttvar_ms(self) -> float | None: ...
    @property
    def pacing_mbit(self) -> float | None: ...
    @property
    def acknowledged_bytes(self) -> int: ...
    @property
    def retransmits(self) -> int: ...
    @property
    def timeouts(self) -> int: ...

@final
class QueueNow:
    """The bottleneck's queue at a moment."""

    @property
    def packets(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def sent_packets(self) -> int: ...
    @property
    def sent_bytes(self) -> int: ...
    @property
    def drops(self) -> int: ...
    @property
    def marks(self) -> int: ...
    @property
    def probability(self) -> float | None: ...
    @property
    def tc(self) -> dict[str, Any]:
        """The object of `tc -j -s qdisc show`."""

@final
class PacketEvent:
    """A packet that was seen: the columns of `dualq run --events`."""

    @property
    def t_s(self) -> float: ...
    @property
    def event(self) -> str:
        """`in`, `out`, `out_ce`, `drop`, `ack`, `sent` or `arrive`."""
    @property
    def flow(self) -> int: ...
    @property
    def direction(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def ecn(self) -> int: ...
    @property
    def sacks(self) -> int: ...
    @property
    def delay_ms(self) -> float | None: ...
    @property
    def reason(self) -> str | None:
        """Why it was dropped."""

@final
class ConnectionEvent:
    """Something that happened to a connection at its sender. What an event does not tell is None."""

    @property
    def t_s(self) -> float: ...
    @property
    def flow(self) -> int: ...
    @property
    def event(self) -> str:
        """`sent`, `acknowledged`, `lost` or `metrics`."""
    @property
    def start(self) -> int | None: ...
    @property
    def end(self) -> int | None: ...
    @property
    def length(self) -> int | None: ...
    @property
    def window(self) -> int | None: ...
    @property
    def ece(self) -> bool | None: ...
    @property
    def cwnd(self) -> int | None: ...
    @property
    def ssthresh(self) -> int | None: ...
    @property
    def in_flight(self) -> int | None: ...
    @property
    def pacing_mbit(self) -> float | None: ...
    @property
    def srtt_ms(self) -> float | None: ...
    @property
    def min_rtt_ms(self) -> float | None: ...
    @property
    def phase(self) -> str | None: ...

@final
class Simulation:
    def __new__(
        cls,
        source: _Source,
        options: dict[str, Any],
        seed: int,
        queue: tuple[object, dict[str, object]] | None,
        observer: tuple[object, bool, bool] | None,
    ) -> Self: ...
    def advance(self, until_s: float) -> float: ...
    def finish(self) -> Outcome: ...
    @property
    def now_s(self) -> float: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def flows(self) -> list[Flow]: ...
    @property
    def probes(self) -> list[Flow]: ...
    @property
    def queue(self) -> QueueNow: ...

@final
class Plan:
    """Scenarios and seeds, whose runs a folder keeps."""

    def __new__(
        cls,
        source: _Source,
        vary: list[str],
        zip: list[str],
        sample: tuple[int, int, bool] | None,
        seeds: tuple[int, int],
        distributions: bool,
        folder: str,
    ) -> Self: ...
    def __len__(self) -> int: ...
    def missing(self) -> list[int]: ...
    def job(self, number: int) -> tuple[str, int]: ...
    def put(self, number: int, run: str) -> str: ...
    def results(self) -> Results: ...
