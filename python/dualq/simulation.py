"""A scenario in the model, stepped through."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Protocol, runtime_checkable

from . import _dualq
from ._dualq import ConnectionEvent, Flow, PacketEvent, QueueNow
from ._run import _options, _seed
from .extend import Queue, _traits
from .outcome import Outcome
from .scenario import Like, _source


@runtime_checkable
class PacketObserver(Protocol):
    """Sees packets."""

    def packet(self, event: PacketEvent) -> object: ...


@runtime_checkable
class ConnectionObserver(Protocol):
    """Sees what connections do."""

    def connection(self, event: ConnectionEvent) -> object: ...


class Simulation:
    """One scenario in the model, stepped through and looked at; with a queue discipline of your own, if you bring one.

    `observer` is an object with a method `packet`, `connection` or both, which are called with each event as it happens: slow, for each
    goes through the interpreter. Stepping changes nothing: the outcome is that of `run` with the same seed.

    Observers, and a queue or control of your own, can look at the simulation while it advances: all that it shows is of `now_s`, the
    time to which it had advanced before. What happens at the moment is in the event, the packet or the context that they are given.
    """

    def __init__(
        self,
        scenario: Like | None = None,
        *,
        seed: int = 1,
        queue: Queue | None = None,
        observer: PacketObserver | ConnectionObserver | None = None,
        qdisc: str | None = None,
        cc: str | None = None,
        rate: str | None = None,
        rtt: str | None = None,
        duration: str | None = None,
        interval: str | None = None,
        distributions: bool = False,
    ) -> None:
        options = _options(
            qdisc=qdisc, cc=cc, rate=rate, rtt=rtt, duration=duration, interval=interval, distributions=distributions
        )
        packets, connections = isinstance(observer, PacketObserver), isinstance(observer, ConnectionObserver)
        if observer is not None and not (packets or connections):
            raise TypeError(f"{observer!r} observes nothing: give it a method packet(event) or connection(event)")
        if not isinstance(queue, (Queue, NoneType)):
            raise TypeError(f"{queue!r} is no object of a class that is derived from dualq.Queue")
        self._inner = _dualq.Simulation(
            _source(scenario),
            options,
            _seed(seed),
            None if queue is None else (queue, _traits(queue)),
            None if observer is None else (observer, packets, connections),
        )

    def advance(self, until_s: float) -> float:
        """Lets all happen before this time, or before the end if that is sooner; returns the time that it is."""
        return self._inner.advance(until_s)

    def steps(self, step_s: float) -> Iterator[float]:
        """Goes on by such steps to the end: `for now_s in simulation.steps(0.1): …`."""
        if not step_s > 0:
            raise ValueError(f"step_s is {step_s}: give seconds above 0")
        # Multiples, whose error does not grow.
        begun_s, count = self.now_s, 0
        while self.now_s < self.duration_s:
            count += 1
            yield self.advance(begun_s + count * step_s)

    def finish(self) -> Outcome:
        """Runs to the end and says what came of it; the simulation is over then."""
        return self._inner.finish()

    @property
    def now_s(self) -> float:
        """The time up to which all has happened."""
        return self._inner.now_s

    @property
    def duration_s(self) -> float:
        """When it ends."""
        return self._inner.duration_s

    @property
    def flows(self) -> list[Flow]:
        """The senders of flows, in the order of their groups."""
        return self._inner.flows

    @property
    def probes(self) -> list[Flow]:
        """The senders of probes."""
        return self._inner.probes

    @property
    def queue(self) -> QueueNow:
        """The bottleneck's queue."""
        return self._inner.queue

    def __repr__(self) -> str:
        return repr(self._inner)
