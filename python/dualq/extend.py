"""What is written in Python and takes part in the model: congestion controls and queue disciplines.

For teaching and experiments. It is slow: each acknowledgement of such a control, and each packet of such a queue, goes through the
interpreter; `docs/python.md` says how slow. What is to be fast, and what is to be published, is written in Rust against the same two traits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from . import _dualq
from ._dualq import Context, Packet, RateSample, Window


class CongestionControl:
    """A congestion control of your own: one object for each connection.

    As it stands this is Reno. `register` gives a class a name that scenarios use. A control changes `window`; `context` is what it may
    know. Windows are in segments.
    """

    ecn: ClassVar[Literal["classic", "dctcp", "accurate"]] = "classic"
    """What it is made for. `"dctcp"` and `"accurate"` are ECN-capable in all packets; with the latter these are ECT(1)."""

    paces: ClassVar[bool] = False
    """Whether it insists on pacing."""

    def start(self, window: Window, context: Context) -> None:
        """The connection is established."""

    def ssthresh(self, window: Window, context: Context) -> int:
        """The slow-start threshold after a loss or an ECN signal."""
        return max(window.cwnd // 2, 2)

    def increase(self, window: Window, context: Context, acked: int) -> None:
        """So many segments were delivered outside of recovery: grow the window."""
        if not context.cwnd_limited:
            return
        if window.in_slow_start:
            acked = window.slow_start(acked)
        if acked:
            window.additive_increase(window.cwnd, acked)

    def on_ack(self, window: Window, context: Context) -> None:
        """An acknowledgement arrived; called before anything else is done with it."""

    def on_rtt(self, window: Window, context: Context, rtt_ms: float) -> None:
        """A round-trip time was measured."""

    def on_state(self, window: Window, context: Context, state: str) -> None:
        """The sender changes to this state: `open`, `disorder`, `cwr`, `recovery` or `loss`."""

    def on_lost(self, window: Window, context: Context) -> None:
        """A segment is deemed lost."""

    def on_event(self, window: Window, context: Context, event: str) -> None:
        """`transmit-start`, `reduction-complete`, or `loss`: a spurious timeout, or a loss in an ECN reduction."""

    def control(self, window: Window, context: Context, sample: RateSample) -> None:
        """For controls that decide window and pacing rate by themselves on each acknowledgement, as BBR does: who has this method is
        asked for nothing else, `ssthresh` and `increase` included."""

    def undo(self, window: Window, context: Context) -> int:
        """The window to return to when a reduction turns out to have been wrong."""
        return max(window.cwnd, context.prior_cwnd)


_OPTIONAL = ("on_ack", "on_rtt", "on_state", "on_lost", "on_event", "control", "undo")



def register(name: str, kind: type[CongestionControl]) -> None:
    """Gives a congestion control a name that scenarios of this process use: `flow=[{"cc": name}]`.

    Registered again, the name means the new class. The names that dualq has itself are refused.
    """
    if not (isinstance(kind, type) and issubclass(kind, CongestionControl)):
        raise TypeError(f"{kind!r} is no class that is derived from dualq.CongestionControl")
    has = [method for method in _OPTIONAL if getattr(kind, method) is not getattr(CongestionControl, method)]
    _dualq.register(name, kind, has, kind.ecn, kind.paces)


class Queue(ABC):
    """A queue discipline of your own, for the bottleneck of a `Simulation`. Times are seconds since the start."""

    splits_gso: ClassVar[bool] = True
    """Whether aggregates are taken apart before they come in."""

    interval_s: ClassVar[float | None] = None
    """How often `on_timer` is called, if at all."""

    @abstractmethod
    def enqueue(self, packet: Packet, now_s: float) -> bool:
        """Takes a packet in and returns True, or returns False: it is dropped."""

    @abstractmethod
    def dequeue(self, now_s: float) -> Packet | None:
        """The packet that leaves, which came by `enqueue`; None if none is here. `packet.mark()` and `packet.drop()` mark and drop."""

    def next_ready(self, now_s: float) -> float:
        """When a packet may leave, for a discipline that holds packets back: after its `dequeue` returned None though packets wait."""
        return now_s

    def on_timer(self, now_s: float) -> None:
        """Called each `interval_s`."""


def _traits(queue: Queue) -> dict[str, object]:
    kind = type(queue)
    interval_s = queue.interval_s
    if interval_s is not None and not 1e-6 <= interval_s <= 86_400:
        raise ValueError(f"{kind.__name__}.interval_s is {interval_s}: give seconds, from 1e-6 to 86400")
    return {
        "kind": kind.__name__.lower(),
        "splits_gso": queue.splits_gso,
        "interval_s": interval_s,
        "next_ready": kind.next_ready is not Queue.next_ready,
    }
