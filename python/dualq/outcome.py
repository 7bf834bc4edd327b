"""What came of a run, as objects whose names have the units: `_mbit` Mbit/s, `_ms` milliseconds, `_s` seconds, `_bytes` bytes.

Made from `crates/scenario/src/outcome.rs` by `python/make-outcome`; a test keeps it as that says. `unit` tells a field's unit. Names
are those of the JSON document.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args, get_type_hints


def unit(name: str) -> str | None:
    """The unit that the name of a field has: `unit("p99_ms")` is `"ms"`; none of counts and shares."""
    units = {"mbit": "Mbit/s", "ms": "ms", "s": "s", "bytes": "bytes"}
    return next((units[part] for part in reversed(name.split("_")) if part in units), None)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one run."""

    goodput_mbit: float
    """Goodput of all flows, in Mbit/s."""

    fairness: float | None = None
    """Jain's fairness index of the flows that have no size: 1 if they are equal, 1/n if one has everything; `null` if none got anything."""

    flow: list[FlowOutcome]
    """The groups of flows, in the scenario's order."""

    probe: list[ProbeOutcome]
    """The probes, in the scenario's order."""

    udp: list[UdpOutcome] = field(default_factory=list)
    """The groups of UDP streams, in the scenario's order."""

    queue: QueueOutcome
    """The bottleneck's queue: the one under test."""

    up_queue: QueueOutcome | None = None
    """The queue of the other direction, if it has one."""

    other_queues: list[OtherQueue] = field(default_factory=list)
    """The queues of bottlenecks that are elements of the path, in the order in which packets meet them, those on the way down first. The world `live` has none of them."""

    series: Series
    """How it went, from the very start."""

    data_packets: int
    """Data packets that left the senders in the whole run, not only from the warm-up on; aggregates counted by segment."""

    limits: list[Limit]
    """Limits of the machine that were met in the whole run, and that the scenario does not speak of. The model has none."""

    lateness: LinkLateness | None = None
    """How late dualq's own link was, which only the world `live` has."""

@dataclass(frozen=True, kw_only=True)
class LinkLateness:
    """How late a link in user space wrote packets, by its own schedule, each way and in the whole run."""

    down: Lateness
    """Of the way down."""

    up: Lateness
    """Of the way up."""

@dataclass(frozen=True, kw_only=True)
class Lateness:
    """How late packets were, in milliseconds."""

    packets: int
    """How many packets there were, of aggregates each by itself."""

    p50_ms: float
    """The median."""

    p95_ms: float
    """The 95th percentile."""

    p99_ms: float
    """The 99th percentile."""

    max_ms: float
    """The latest."""

    histogram: list[LatenessBin]
    """How many were so late: each bin begins where the one before ends, and ends at twice its time."""

@dataclass(frozen=True, kw_only=True)
class LatenessBin:
    """A bin of a histogram."""

    up_to_ms: float
    """Where it ends."""

    packets: int
    """How many are in it."""

@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit of a real machine that was met: figures may be of it rather than of the scenario."""

    at: str
    """Whose it is."""

    what: str
    """What happened, in words."""

    counter: str
    """What counted that, as `nstat` or `tc` name it."""

    count: int
    """How often."""

@dataclass(frozen=True, kw_only=True)
class FlowOutcome:
    """A group of flows. Lists have one entry for each flow."""

    goodput_mbit: list[float]
    """Goodput of each, in Mbit/s."""

    total_mbit: float
    """The sum of these."""

    line_mbit: float
    """The line rate of all, in Mbit/s."""

    data_packets: int
    """Segments with payload that left the senders, those sent again included."""

    retransmits: int
    """Segments that were sent again."""

    timeouts: int
    """Retransmission timeouts."""

    ce_marks: int
    """Segments that arrived with CE."""

    srtt_ms: list[float]
    """The smoothed round-trip time at the end, in milliseconds: the first figure of `rtt:` in `ss -ti`."""

    rttvar_ms: list[float]
    """Its mean deviation at the end, in milliseconds: the second figure there."""

    cwnd: list[int]
    """The congestion window at the end, in segments: `cwnd:` in `ss -ti`."""

    srtt_ms_mean: float
    """The mean of the smoothed round-trip times, looked at each 100 ms."""

    srtt_ms_p50: float
    """Their median."""

    srtt_ms_p95: float
    """Their 95th percentile."""

    srtt_ms_p99: float
    """Their 99th percentile."""

    srtt_ms_max: float
    """Their maximum."""

    completion_s: list[float | None]
    """When each flow with a size was done, in seconds from its start, to the microsecond, in the warm-up too; `null` for those that were not, or have no size. Of flows that send again and again: the last time."""

    completions: list[Completions] = field(default_factory=list)
    """The same by classes of size, of groups whose sizes differ or whose flows send again and again."""

    accurate_ecn: AccurateEcn | None = None
    """Of groups that asked for Accurate ECN."""

@dataclass(frozen=True, kw_only=True)
class AccurateEcn:
    """What Accurate ECN told the senders of a group of flows from the beginning to the end, as `TCP_INFO` has it."""

    agreed: int
    """Flows that agreed on it with their receivers. The others have classic ECN or, as Prague, none."""

    reno: int
    """Prague's flows that are Reno without ECN, as their receiver does not have Accurate ECN."""

    delivered_ce: int
    """Packets that arrived with CE."""

    delivered_e0_bytes: int
    """Bytes of payload that arrived with ECT(0)."""

    delivered_e1_bytes: int
    """Bytes of payload that arrived with ECT(1)."""

    delivered_ce_bytes: int
    """Bytes of payload that arrived with CE."""

@dataclass(frozen=True, kw_only=True)
class Completions:
    """How long the transfers of a class of sizes took."""

    from_bytes: int
    """They have at least so many bytes,"""

    below_bytes: int | None = None
    """and fewer than so many; `null` if there is no such bound."""

    transfers: int
    """Transfers that were to be made."""

    done: int
    """Of these, those that were done at the end; what follows is of them."""

    mean_s: float | None = None
    """The mean time in seconds, as all that follows; `null` if none was done."""

    p50_s: float | None = None
    """The median."""

    p95_s: float | None = None
    """The 95th percentile."""

    p99_s: float | None = None
    """The 99th percentile."""

    max_s: float | None = None
    """The longest."""

    distribution: DelayDistribution | None = None
    """How these times are distributed, in milliseconds, if the scenario asks for that and some transfer was done."""

@dataclass(frozen=True, kw_only=True)
class UdpOutcome:
    """A group of UDP streams. What was sent before the warm-up's end is left out."""

    sent: int
    """Packets sent."""

    received: int
    """Of these, those that arrived, each counted once."""

    lost: int
    """Those that did not."""

    duplicates: int
    """Copies that arrived beside."""

    reordered: int
    """Packets that arrived after one that was sent later."""

    ce_marks: int
    """Packets that arrived with CE."""

    goodput_mbit: float
    """What arrived of UDP's payload, in Mbit/s."""

    line_mbit: float
    """What was sent, headers included, in Mbit/s."""

    delay: Delays | None = None
    """How long packets took from one program to the other; `null` if none arrived."""

    jitter_ms: float
    """The interarrival jitter at the end (RFC 3550 §6.4.1), in milliseconds: the mean of all streams."""

@dataclass(frozen=True, kw_only=True)
class ProbeOutcome:
    """A probe."""

    n: int
    """Round trips measured."""

    sent: int | None = None
    """Pings sent from the warm-up's end on. Other probes have TCP send again what is lost, and documents of earlier versions do not tell."""

    lost: int | None = None
    """Of these, those that were never answered, and were not on their way at the end."""

    mean_ms: float
    """Their mean, in milliseconds, as all that follows."""

    min_ms: float
    """The shortest."""

    p50_ms: float
    """The median."""

    p95_ms: float
    """The 95th percentile."""

    p99_ms: float
    """The 99th percentile."""

    max_ms: float
    """The longest."""

    std_ms: float
    """The standard deviation: the jitter."""

    kernel_srtt_ms: float
    """The smoothed round-trip time at the end, as `ss -ti` shows it."""

    kernel_rttvar_ms: float
    """Its mean deviation."""

    retransmits: int
    """Segments that were sent again."""

    distribution: DelayDistribution | None = None
    """How the round trips are distributed, if the scenario asks for that."""

@dataclass(frozen=True, kw_only=True)
class QueueOutcome:
    """The bottleneck's queue."""

    sent_packets: int
    """Packets that left."""

    sent_bytes: int
    """Bytes that left."""

    drops: int
    """Packets dropped."""

    marks: int
    """Packets marked CE."""

    delay_mean_ms: float
    """The mean time in the queue, in milliseconds."""

    delay_p50_ms: float
    """The median."""

    delay_p95_ms: float
    """The 95th percentile."""

    delay_p99_ms: float
    """The 99th percentile."""

    delay_max_ms: float
    """The longest."""

    delay_not_ect: Delays | None = None
    """Of packets that were not ECN-capable; `null` if there were none. In `dualpi2 any_ect` they had the C queue."""

    delay_ect: Delays | None = None
    """Of ECN-capable packets; `null` if there were none. In `dualpi2 any_ect` they had the L queue."""

    distribution: DelayDistribution | None = None
    """How the times of all packets are distributed, if the scenario asks for that."""

    distribution_not_ect: DelayDistribution | None = None
    """The same of packets that were not ECN-capable."""

    distribution_ect: DelayDistribution | None = None
    """The same of ECN-capable packets."""

    tc: dict[str, Any]
    """The object of `tc -j -s qdisc show` at the end. Its counters are those of the whole run, as the kernel shows them."""

@dataclass(frozen=True, kw_only=True)
class OtherQueue:
    """The queue of a bottleneck that is an element of the path."""

    at: str
    """Where it is: `before 1`, the first element before the queue under test; `up behind 2`."""

    queue: QueueOutcome
    """What it did."""

@dataclass(frozen=True, kw_only=True)
class Delays:
    """Times that a kind of packets spent in the queue, in milliseconds."""

    packets: int
    """Packets that were measured."""

    mean_ms: float
    """The mean."""

    p50_ms: float
    """The median."""

    p95_ms: float
    """The 95th percentile."""

    p99_ms: float
    """The 99th percentile."""

    max_ms: float
    """The longest."""

@dataclass(frozen=True, kw_only=True)
class DelayDistribution:
    """How times are distributed: steps of the cumulative distribution function, dense where percentiles are asked for, the tail included."""

    samples: int
    """How many times it is of."""

    ms: list[float]
    """Times in milliseconds, ascending."""

    share: list[float]
    """The share of the samples that were no longer than each of these; 1 at the last."""

@dataclass(frozen=True, kw_only=True)
class Series:
    """Figures at a fixed interval. Each list has one entry an interval; those of groups are lists of such lists."""

    interval_s: float
    """The interval, in seconds."""

    t_s: list[float]
    """When each interval ended, in seconds."""

    goodput_mbit: list[list[float]]
    """Goodput of each group of flows in the interval, in Mbit/s."""

    each_goodput_mbit: list[list[list[float]]] = field(default_factory=list)
    """Goodput of each flow of each group in the interval, in Mbit/s, if the scenario asks for distributions and has no more than `MOST_SINGLE_FLOWS`."""

    rtt_ms: list[list[float | None]]
    """The last round trip that each probe measured by then, in milliseconds; `null` before the first."""

    queue_delay_ms: list[float | None]
    """The mean time in the queue of the packets that left it in the interval, in milliseconds; `null` if none did."""

    queue_packets: list[int]
    """Packets in the queue."""

    probability: list[float | None]
    """The probability with which the queue drops or marks, where it has one."""

    queue_drops: list[int] = field(default_factory=list)
    """Packets that the queue dropped in the interval."""

    queue_marks: list[int] = field(default_factory=list)
    """How often it marked in the interval."""

    cwnd: list[list[float | None]] = field(default_factory=list)
    """The congestion window of each group's flows at the end of the interval, in segments: the mean of those that have started, as are all that follow; `null` if none has."""

    ssthresh: list[list[float | None]] = field(default_factory=list)
    """The slow-start threshold, in segments, of those that have one."""

    in_flight: list[list[float | None]] = field(default_factory=list)
    """Segments in flight."""

    pacing_mbit: list[list[float | None]] = field(default_factory=list)
    """The pacing rate, in Mbit/s, of those that have one."""

    srtt_ms: list[list[float | None]] = field(default_factory=list)
    """The smoothed round-trip time, in milliseconds, of those that have one."""

    retransmits: list[list[int]] = field(default_factory=list)
    """Segments of each group that were sent again in the interval."""


@cache
def _kinds(kind: type) -> dict[str, type | None]:
    """Which fields of a kind are of a kind of their own."""
    def inner(hint: Any) -> type | None:
        if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
            return hint
        return next((found for found in map(inner, get_args(hint)) if found), None)

    return {name: inner(hint) for name, hint in get_type_hints(kind).items()}


def _made(kind: type, value: Any) -> Any:
    if isinstance(value, list):
        return [_made(kind, one) for one in value]
    if not isinstance(value, dict):
        return value
    kinds = _kinds(kind)
    # Keys that a later version of the program has are left out.
    said = {name: one for name, one in value.items() if name in kinds}
    return kind(**{name: one if (inner := kinds[name]) is None else _made(inner, one) for name, one in said.items()})


def _of(document: dict[str, Any]) -> Outcome:
    return _made(Outcome, document)  # type: ignore[no-any-return]
