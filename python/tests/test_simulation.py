"""`dualq.Simulation`: steps, observers, and what is written in Python."""

from collections import Counter
from typing import Any

import pytest

import dualq

SCENARIO = {
    "duration": "4s", "warmup": "1s", "sender": {"gso": False},
    "link": {"rate": "20mbit", "rtt": "20ms", "qdisc": "fq"}, "flow": [{"cc": "cubic", "ecn": True}],
}


class Constant(dualq.CongestionControl):
    """A window that nothing changes."""

    WINDOW = 20

    def start(self, window: dualq.Window, context: dualq.Context) -> None:
        window.cwnd = self.WINDOW

    def ssthresh(self, window: dualq.Window, context: dualq.Context) -> int:
        return self.WINDOW

    def increase(self, window: dualq.Window, context: dualq.Context, acked: int) -> None:
        window.cwnd = self.WINDOW


class Fifo(dualq.Queue):
    """First in, first out; marks or drops what finds `limit` packets."""

    def __init__(self, limit: int = 20) -> None:
        self.limit, self.packets, self.refused = limit, list[dualq.Packet](), list[int]()

    def enqueue(self, packet: dualq.Packet, now_s: float) -> bool:
        if len(self.packets) >= self.limit and not packet.mark():
            self.refused.append(packet.ecn)
            return False
        self.packets.append(packet)
        return True

    def dequeue(self, now_s: float) -> dualq.Packet | None:
        return self.packets.pop(0) if self.packets else None


def with_cc(name: str, **more: Any) -> dict[str, Any]:
    return {**SCENARIO, "flow": [{"cc": name, **more}]}


def test_stepping_changes_nothing() -> None:
    simulation = dualq.Simulation(SCENARIO, seed=7)
    times = list(simulation.steps(0.0437))
    assert times == sorted(times) and times[-1] == simulation.duration_s == 4.0
    flow, queue = simulation.flows[0], simulation.queue
    assert len(simulation.flows) == len(simulation.probes) == 1
    assert flow.cwnd > 1 and flow.srtt_ms is not None and flow.srtt_ms > 20 and queue.sent_packets > 1000
    assert queue.tc["kind"] == "fq" and queue.tc["packets"] == queue.sent_packets
    assert simulation.finish() == dualq.run(SCENARIO, seeds=range(7, 8))[0].outcome
    with pytest.raises(dualq.RunError, match="this simulation is over"):
        simulation.advance(5)


def test_one_scenario_at_a_time() -> None:
    with pytest.raises(dualq.ScenarioError, match="these are 2: give one value of each list"):
        dualq.Simulation(SCENARIO, rate="5mbit", qdisc=["fq", "pie"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no time to advance to"):
        dualq.Simulation(SCENARIO).advance(-1)
    with pytest.raises(TypeError, match="observes nothing"):
        dualq.Simulation(SCENARIO, observer=object())  # type: ignore[arg-type]


def test_a_control_of_ones_own() -> None:
    dualq.register("constant", Constant)
    outcome = dualq.run(with_cc("constant"), seeds=4)[0].outcome
    # 20 segments of 1448 bytes in each round trip: 20 ms, and what two packets take at most, as an acknowledgement waits for the second.
    def goodputs(window: int) -> list[float]:
        return [window * 1448 * 8 / (0.020 + packets * 1514 * 8 / 20e6) / 1e6 for packets in (2, 0)]

    slowest, fastest = goodputs(20)
    assert slowest < outcome.goodput_mbit < fastest
    # Again, another class: a notebook's cell that is run twice.
    dualq.register("constant", type("Half", (Constant,), {"WINDOW": 10}))
    slowest, fastest = goodputs(10)
    assert slowest < dualq.run(with_cc("constant"))[0].outcome.goodput_mbit < fastest


def test_renos_twin_is_reno() -> None:
    dualq.register("renos-twin", dualq.CongestionControl)
    ours, theirs = (dualq.run(with_cc(cc, ecn=False))[0].outcome for cc in ("renos-twin", "reno"))
    assert ours.goodput_mbit == theirs.goodput_mbit and ours.flow == theirs.flow


def test_a_control_that_decides_by_itself() -> None:
    class Paced(dualq.CongestionControl):
        """Twice what was in flight at the smallest round trip, paced at 5 Mbit/s."""

        paces = True

        def start(self, window: dualq.Window, context: dualq.Context) -> None:
            window.pacing_mbit = 5.0

        def control(self, window: dualq.Window, context: dualq.Context, sample: dualq.RateSample) -> None:
            assert sample.acked >= 0 and context.in_flight >= 0
            window.cwnd, window.pacing_mbit = 100, 5.0

    dualq.register("paced", Paced)
    outcome = dualq.run(with_cc("paced"))[0].outcome
    assert 4.4 < outcome.goodput_mbit < 5.0
    assert outcome.queue.delay_p99_ms < 2


def test_names_and_windows_that_make_no_sense() -> None:
    with pytest.raises(dualq.ScenarioError, match='a congestion control "cubic" already; choose another name'):
        dualq.register("cubic", Constant)
    with pytest.raises(dualq.ScenarioError, match="is no name"):
        dualq.register("two words", Constant)
    with pytest.raises(TypeError, match="no class that is derived from"):
        dualq.register("object", object)  # type: ignore[arg-type]

    class Zero(Constant):
        WINDOW = 0

    dualq.register("zero", Zero)
    with pytest.raises(ValueError, match="cwnd is 0: give a whole number from 1 to"):
        dualq.run(with_cc("zero"))
    with pytest.raises(ValueError, match="cwnd is 0"):
        dualq.Simulation(with_cc("zero")).finish()


def test_what_a_control_raises_ends_the_run_of_all_seeds() -> None:
    class Broken(dualq.CongestionControl):
        def increase(self, window: dualq.Window, context: dualq.Context, acked: int) -> None:
            if context.now_s > 1:
                raise LookupError("after a second")

    dualq.register("broken", Broken)
    with pytest.raises(LookupError, match="after a second"):
        dualq.run({**with_cc("broken"), "duration": "2000s"}, seeds=3)
    simulation = dualq.Simulation(with_cc("broken"))
    assert simulation.advance(0.5) == 0.5
    with pytest.raises(LookupError, match="after a second"):
        simulation.advance(3)
    with pytest.raises(dualq.RunError, match="over"):
        simulation.advance(4)


def test_a_queue_of_ones_own_drops_and_marks() -> None:
    simulation = dualq.Simulation(with_cc("cubic"), queue=Fifo())
    longest = max(simulation.queue.packets for _ in simulation.steps(0.01))
    queue = simulation.queue
    assert 10 < longest <= 20 and queue.drops > 0 and queue.marks == 0
    assert queue.tc["kind"] == "fifo" and simulation.finish().goodput_mbit > 15
    fifo = Fifo()
    outcome = dualq.Simulation(with_cc("cubic", ecn=True), queue=fifo).finish()
    # What is not ECN-capable, as the probe, can only be dropped.
    assert outcome.queue.marks > len(fifo.refused) and set(fifo.refused) <= {0}
    assert outcome.flow[0].ce_marks > 0 and outcome.flow[0].retransmits == 0


def test_a_fifo_in_python_is_a_fifo() -> None:
    ours = dualq.Simulation(with_cc("cubic"), queue=Fifo(1000)).finish()
    theirs = dualq.run(with_cc("cubic"), qdisc="pfifo limit 1000")[0].outcome
    assert ours.flow == theirs.flow and ours.probe == theirs.probe
    assert ours.queue.delay_p99_ms == theirs.queue.delay_p99_ms


def test_a_queue_that_holds_packets_back_and_has_a_timer() -> None:
    class Slow(Fifo):
        """A packet each 10 ms, and drops what waits too long when its timer says so."""

        interval_s, free_s, ticks = 0.1, 0.0, 0

        def dequeue(self, now_s: float) -> dualq.Packet | None:
            if now_s < self.free_s:
                return None
            self.free_s = now_s + 0.01
            return super().dequeue(now_s)

        def next_ready(self, now_s: float) -> float:
            return self.free_s

        def on_timer(self, now_s: float) -> None:
            self.ticks += 1
            for packet in [one for one in self.packets if now_s - one.arrived_s > 0.15]:
                packet.drop()
                self.packets.remove(packet)

    slow = Slow(1000)
    outcome = dualq.Simulation(with_cc("cubic"), queue=slow).finish()
    assert 0.8 < outcome.goodput_mbit < 100 * 1448 * 8 / 1e6 and slow.ticks == 40
    assert 100 < outcome.queue.delay_max_ms < 270


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"enqueue": lambda self, packet, now_s: None}, "enqueue returned None: give True if it took the packet"),
        ({"dequeue": lambda self, now_s: 5}, "dequeue returned 5: give a packet of this queue, or None"),
        ({"dequeue": lambda self, now_s: None}, "dequeue returned None though 1 packets wait"),
        ({"dequeue": lambda self, now_s: self.packets[0]}, "a packet that is not in this queue"),
        ({"dequeue": lambda self, now_s: 1 // 0}, "division"),
    ],
)
def test_queues_that_do_wrong_are_told(answers: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError, ZeroDivisionError), match=said):
        dualq.Simulation(with_cc("cubic"), queue=type("Wrong", (Fifo,), answers)()).finish()


def test_a_queue_is_an_object_of_its_class() -> None:
    for queue in (Fifo, 5):
        with pytest.raises(TypeError, match="is no object of a class that is derived from dualq.Queue"):
            dualq.Simulation(SCENARIO, queue=queue)  # type: ignore[arg-type]
    with pytest.raises(dualq.ScenarioError, match="seed -1: give a whole number from 0 to"):
        dualq.Simulation(SCENARIO, seed=-1)


def test_observers_see_packets_and_connections() -> None:
    class Counts:
        def __init__(self) -> None:
            self.packets, self.connections = Counter[str](), Counter[str]()
            self.delays, self.windows = list[float](), list[int]()

        def packet(self, event: dualq.PacketEvent) -> None:
            self.packets[event.event] += 1
            if event.direction == "down" and event.delay_ms is not None:
                self.delays.append(event.delay_ms)

        def connection(self, event: dualq.ConnectionEvent) -> None:
            self.connections[event.event] += 1
            if event.flow == 0 and event.cwnd is not None:
                self.windows.append(event.cwnd)

    counts = Counts()
    simulation = dualq.Simulation(SCENARIO, observer=counts, qdisc="pie ecn", duration="2s")
    outcome = simulation.finish()
    assert counts.packets["out"] + counts.packets["out_ce"] == len(counts.delays) == outcome.queue.tc["packets"]
    assert round(max(counts.delays), 3) >= outcome.queue.delay_max_ms > 0
    assert counts.connections["acknowledged"] > 100 and max(counts.windows) > 10
    assert outcome == dualq.run(SCENARIO, qdisc="pie ecn", duration="2s")[0].outcome


def test_what_an_observer_raises_ends_the_simulation() -> None:
    class Raises:
        def packet(self, event: dualq.PacketEvent) -> None:
            raise LookupError(event.event)

    with pytest.raises(LookupError, match="in"):
        dualq.Simulation(SCENARIO, observer=Raises()).finish()


def test_observers_can_look_and_no_more() -> None:
    class Looks:
        simulation: dualq.Simulation
        seen = set[tuple[float, int, int]]()

        def packet(self, event: dualq.PacketEvent) -> None:
            simulation = self.simulation
            assert simulation.now_s <= event.t_s < simulation.now_s + 0.5
            self.seen.add((simulation.now_s, simulation.flows[0].cwnd, simulation.queue.packets))

    looks = Looks()
    looks.simulation = simulation = dualq.Simulation(SCENARIO, observer=looks)
    shown = {(0.0, simulation.flows[0].cwnd, 0)}
    # Not what comes last, of which nothing was to be seen any more.
    shown |= {(now_s, simulation.flows[0].cwnd, simulation.queue.packets) for now_s in simulation.steps(0.5) if now_s < 4}
    assert looks.seen == shown and len(shown) == 8

    class Advances(Looks):
        def packet(self, event: dualq.PacketEvent) -> None:
            self.simulation.advance(4)

    advances = Advances()
    advances.simulation = dualq.Simulation(SCENARIO, observer=advances)
    with pytest.raises(dualq.RunError, match="is advancing already: meanwhile it can be looked at"):
        advances.simulation.finish()
    with pytest.raises(dualq.RunError, match="is over"):
        advances.simulation.advance(1)
