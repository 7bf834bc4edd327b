"""Scenarios, typed: what `docs/scenario.md` says of a key holds for the field of that name.

A field that is left out has the program's own default. Rates, times and sizes are words of tc: `"50mbit"`, `"48.33ms"`, `"64kb"`.
Fields whose type is `Many` may be lists: `run` then plays every combination.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, Union

from ._errors import ScenarioError

_LONGEST = 100 << 20
"""No scenario has more bytes, as for the program; a device that never ends would take all memory."""

T = TypeVar("T")

Many: TypeAlias = Union[T, Sequence[T]]
"""One value, or a list of which each is played."""

CongestionControl: TypeAlias = Union[
    Literal["reno", "cubic", "dctcp", "bbr", "bbr3", "prague"], str
]
"""A name that the kernel has, or one that was registered."""

Ecn: TypeAlias = Union[bool, Literal["off", "classic", "accurate"]]
Direction: TypeAlias = Literal["down", "up"]


@dataclass(kw_only=True)
class Step:
    """Another rate from a time on."""

    at: str
    rate: str


@dataclass(kw_only=True)
class Delay:
    """An element that takes so long."""

    delay: str
    jitter: str | None = None
    reorder: bool | None = None


@dataclass(kw_only=True)
class Slot:
    """An element that lets packets gather and leave in bursts, as on Wi-Fi."""

    slot: str
    slot_max: str | None = None
    packets: int | None = None
    bytes: str | None = None


@dataclass(kw_only=True)
class Loss:
    """An element that loses packets at random: `"1%"`."""

    loss: str


@dataclass(kw_only=True)
class Duplicate:
    """An element that sends packets twice at random: `"1%"`."""

    duplicate: str


@dataclass(kw_only=True)
class Bottleneck:
    """Another bottleneck."""

    rate: str
    qdisc: str | None = None


@dataclass(kw_only=True)
class Mtu:
    """An element that lets no larger packets pass; bytes, or a tunnel's name."""

    mtu: int | str
    icmp: bool | None = None


@dataclass(kw_only=True)
class Bleach:
    """An element that clears the ECN field."""

    bleach: bool = True


@dataclass(kw_only=True)
class Police:
    """An element that drops what exceeds a rate."""

    police: str
    burst: str | None = None


Element: TypeAlias = Union[Delay, Slot, Loss, Duplicate, Bottleneck, Mtu, Bleach, Police]


@dataclass(kw_only=True)
class UpLink:
    """The other direction: acknowledgements, answers, and data that go up."""

    rate: str | None = None
    qdisc: str | None = None
    loss: str | None = None
    trace: str | None = None
    trace_repeats: bool | None = None
    step: Sequence[Step] | None = None
    before: Sequence[Element] | None = None
    behind: Sequence[Element] | None = None


@dataclass(kw_only=True)
class Link:
    """The bottleneck, whose queue is under test."""

    rate: Many[str] | None = None
    rtt: Many[str] | None = None
    forward: str | None = None
    reverse: str | None = None
    qdisc: Many[str] | None = None
    loss: Many[str] | None = None
    mtu: Many[int] | None = None
    step: Sequence[Step] | None = None
    trace: str | None = None
    trace_repeats: bool | None = None
    before: Sequence[Element] | None = None
    behind: Sequence[Element] | None = None
    tunnel: Many[bool] | None = None
    up: UpLink | None = None


@dataclass(kw_only=True)
class Sender:
    """The senders' interfaces."""

    qdisc: Many[str] | None = None
    gso: Many[bool] | None = None


@dataclass(kw_only=True)
class Receiver:
    """The receiving program."""

    read_interval: Many[str] | None = None
    ecn: Ecn | None = None
    ecn_option: Literal[0, 1, 2] | None = None


@dataclass(kw_only=True)
class Flow:
    """A group of flows that are alike."""

    cc: Many[CongestionControl]
    count: Many[int] | None = None
    ecn: Many[Ecn] | None = None
    ecn_low: bool | None = None
    ecn_fallback: bool | None = None
    ecn_option: Literal[0, 1, 2] | None = None
    ect1: bool | None = None
    direction: Direction | None = None
    size: str | None = None
    sizes: str | None = None
    every: str | None = None
    start: str | None = None
    stop: str | None = None
    spacing: str | None = None
    arrivals: Literal["even", "poisson"] | None = None
    read_interval: str | None = None
    receive_buffer: str | None = None
    send_buffer: str | None = None
    notsent_lowat: str | None = None
    fast_open: bool | None = None
    extra_rtt: str | None = None


@dataclass(kw_only=True)
class Udp:
    """Streams of UDP packets that heed nothing."""

    kind: Literal["cbr", "voice", "game"] | None = None
    rate: Many[str] | None = None
    interval: str | None = None
    packet: int | None = None
    count: Many[int] | None = None
    ecn: Many[Literal["not-ect", "ect0", "ect1"]] | None = None
    direction: Direction | None = None
    start: str | None = None
    stop: str | None = None


@dataclass(kw_only=True)
class Probe:
    """What measures round trips under load."""

    kind: Literal["ssh", "ping", "request"] | None = None
    interval: str | None = None
    size: str | None = None
    cc: CongestionControl | None = None
    ecn: Ecn | None = None


@dataclass(kw_only=True)
class Scenario:
    """One experiment, or all combinations of its lists."""

    name: str | None = None
    about: str | None = None
    published: Sequence[str] | None = None
    duration: str | None = None
    warmup: str | None = None
    interval: str | None = None
    distributions: bool | None = None
    link: Link = field(default_factory=Link)
    sender: Sender | None = None
    receiver: Receiver | None = None
    flow: Sequence[Flow] | None = None
    udp: Sequence[Udp] | None = None
    probe: Sequence[Probe] | None = None

    def to_toml(self) -> str:
        """The file that says the same."""
        return _toml(_plain(self))


Like: TypeAlias = Union[Scenario, Mapping[str, Any], str, "os.PathLike[str]"]
"""What is taken for a scenario: typed, a dict with the keys of the file, the text of a TOML file, or a `Path` to one."""


def _plain(value: Any) -> Any:
    """Dataclasses as dicts of what was said."""
    if hasattr(value, "__dataclass_fields__"):
        said = ((one.name, getattr(value, one.name)) for one in fields(value))
        return {name: _plain(value) for name, value in said if value is not None}
    if isinstance(value, Mapping):
        return {str(name): _plain(value) for name, value in value.items() if value is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def _word(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\"}
    plain = (escapes.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text)
    return f'"{"".join(plain)}"'


def _a(value: Any) -> str:
    """What kind of thing it is, in words."""
    name = type(value).__name__
    return "None" if value is None else f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    # Those of numpy too, which call themselves otherwise than TOML does.
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str):
        return _word(value)
    if isinstance(value, os.PathLike):
        return _word(os.fspath(value))
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_word(k)} = {_value(k, v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(key, one) for one in value) + "]"
    raise TypeError(f"{key}: {_a(value)} has no place in a scenario; give text, a number, True or False, a list or a dict")


def _toml(scenario: Mapping[str, Any]) -> str:
    return "".join(f"{_word(key)} = {_value(key, value)}\n" for key, value in scenario.items())


@dataclass(frozen=True)
class _Source:
    """A scenario as the library takes it."""

    text: str
    named: str | None
    folder: str

    @property
    def stem(self) -> str:
        return Path(self.named).stem if self.named else "run"


def _source(scenario: Like | None) -> _Source:
    """The text of a scenario, and where it is from."""
    if scenario is None:
        return _Source("", None, "")
    if isinstance(scenario, Scenario):
        return _Source(scenario.to_toml(), None, "")
    if isinstance(scenario, Mapping):
        return _Source(_toml(_plain(scenario)), None, "")
    if isinstance(scenario, str):
        if scenario and not any(sign in scenario for sign in "=[#\n"):
            raise TypeError(f"{scenario!r} is no TOML; of a file give pathlib.Path({scenario!r})")
        return _Source(scenario, "", "")
    if isinstance(scenario, os.PathLike):
        path = Path(scenario)
        with path.open("rb") as file:
            text = file.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            raise ScenarioError(f"{path}: it is longer than {_LONGEST >> 20} MiB")
        try:
            return _Source(text.decode("utf-8"), f"{path}: ", str(path.parent))
        except UnicodeDecodeError as error:
            raise ScenarioError(f"{path}: a scenario is text in UTF-8") from error
    raise TypeError(f"{_a(scenario)} is no scenario; give a dualq.Scenario, a dict, TOML or a Path")
