"""The types that editors and type checkers are told."""

import subprocess
import sys
from pathlib import Path

import pytest

import dualq

HERE = Path(__file__).parent


def test_outcomes_are_made_of_rusts() -> None:
    made = subprocess.run([sys.executable, HERE.parent / "make-outcome", "--check"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


def test_all_that_is_exported_is_there_and_explained() -> None:
    for name in dualq.__all__:
        assert hasattr(dualq, name), name
    for kind in (dualq.Scenario, dualq.Simulation, dualq.CongestionControl, dualq.Queue, dualq.run, dualq.sweep, dualq.register):
        assert kind.__doc__


def test_stubs_are_what_the_library_has() -> None:
    pytest.importorskip("mypy", reason="no mypy: pip install mypy")
    process = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "dualq._dualq", "--ignore-missing-stub", "--mypy-config-file",
         HERE.parent / "pyproject.toml"],
        capture_output=True, text=True, cwd=HERE,
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_the_package_and_its_tests_are_well_typed() -> None:
    pytest.importorskip("mypy", reason="no mypy: pip install mypy")
    process = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", HERE.parent / "pyproject.toml", "-p", "dualq"],
        capture_output=True, text=True, cwd=HERE,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    # What is wrong is found: a flow without its congestion control, and a rate that is a number.
    process = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "-c", "import dualq\ndualq.Flow(count=2)\ndualq.Link(rate=50)\n"],
        capture_output=True, text=True, cwd=HERE,
    )
    assert process.returncode == 1 and 'Missing named argument "cc"' in process.stdout and '"rate"' in process.stdout, process.stdout
