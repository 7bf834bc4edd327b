"""The program `dualq` that came with this package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from ._errors import RunError, ScenarioError


def program() -> str:
    """Where the program `dualq` is: beside this Python, in the user's scripts, or in the path."""
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
        # `pip install --target`, whose scripts go beside the packages.
        str(Path(__file__).resolve().parent.parent / "bin"),
    ]
    for folder in folders:
        path = Path(folder) / "dualq"
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("dualq")
    if found is None:
        raise RunError("no program dualq beside this Python or in the path: install the wheel again, or `cargo install`")
    return found


def call(arguments: Sequence[str], text: str, folder: Path | None) -> str:
    """What the program prints; what it complains of becomes an exception."""
    process = subprocess.Popen(
        [program(), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    try:
        out, err = process.communicate(text)
    except BaseException:
        # It has had a terminal's Ctrl-C too, and takes away its guests and files.
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    if process.returncode == 0:
        for line in err.splitlines():
            if line.startswith("note: "):
                print(line, file=sys.stderr)
        return out
    errors = [line.removeprefix("error: ") for line in err.splitlines() if line.startswith("error: ")]
    said = errors[-1] if errors else f"{arguments[0]}: exit status {process.returncode}"
    if process.returncode == 130:
        raise KeyboardInterrupt
    raise (ScenarioError if process.returncode == 2 else RunError)(said)
