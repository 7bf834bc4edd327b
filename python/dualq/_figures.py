"""The figures of the table, as objects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A figure of a scenario in one world, over all seeds; `docs/figures.md` says what each is."""

    settings: dict[str, str]
    world: str
    group: str
    name: str
    unit: str | None
    """`Mbit/s`, `ms`, or none of counts and shares."""
    seeds: int
    """How many have it; without any, the numbers are None."""
    mean: float | None
    deviation: float | None
    min: float | None
    max: float | None

    def __str__(self) -> str:
        mean = "none" if self.mean is None else f"{self.mean:g}"
        spread = "" if self.deviation is None else f" ± {self.deviation:g}"
        unit = "" if self.unit is None or self.mean is None else f" {self.unit}"
        return f"{self.group} {self.name}: {mean}{spread}{unit}"


def of(rows: Iterable[tuple[dict[str, str], str, list[tuple[str, str, str | None, int, tuple[float | None, ...]]]]]) -> list[Figure]:
    return [
        Figure(settings, world, group, name, unit, seeds, *numbers)
        for settings, world, figures in rows
        for group, name, unit, seeds, numbers in figures
    ]
