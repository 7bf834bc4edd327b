"""Low latency under load, proven before you deploy it.

`run` plays scenarios and says what came of them; `Simulation` steps through one; `sweep` plays many points, on this machine or on a
cluster. `docs/python.md` of the project has examples.
"""

from . import outcome, plot
from ._dualq import (
    VERSION as __version__,
    ConnectionEvent,
    Context,
    Flow as FlowNow,
    Packet,
    PacketEvent,
    QueueNow,
    RateSample,
    Results,
    Run,
    Table,
    Window,
)
from ._errors import Error, RunError, ScenarioError
from ._figures import Figure
from ._program import program
from ._run import run
from ._sweep import sweep
from .extend import CongestionControl, Queue, register
from .outcome import Outcome, unit
from .scenario import (
    Bleach,
    Bottleneck,
    Delay,
    Duplicate,
    Flow,
    Link,
    Loss,
    Mtu,
    Police,
    Probe,
    Receiver,
    Scenario,
    Sender,
    Slot,
    Step,
    Udp,
    UpLink,
)
from .simulation import Simulation

__all__ = [
    "Bleach", "Bottleneck", "CongestionControl", "ConnectionEvent", "Context", "Delay", "Duplicate", "Error", "Figure", "Flow",
    "FlowNow", "Link", "Loss", "Mtu", "Outcome", "Packet", "PacketEvent", "Police", "Probe", "Queue", "QueueNow", "RateSample",
    "Receiver", "Results", "Run", "RunError", "Scenario", "ScenarioError", "Sender", "Simulation", "Slot", "Step", "Table", "Udp",
    "UpLink", "Window", "__version__", "outcome", "plot", "program", "register", "run", "sweep", "unit",
]
