"""The notebook, executed."""

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "notebooks/narrow-host.ipynb"


def test_the_notebook_runs_from_question_to_figure() -> None:
    for needed in ("nbclient", "ipykernel", "optuna", "polars"):
        pytest.importorskip(needed, reason=f"no {needed}: pip install nbclient ipykernel optuna polars")
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # Kept without what it shows, so that a change of it can be read.
    assert len(notebook.cells) == 10 and not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 4
    # Optuna's progress bars miss a widget here; nobody else has a complaint.
    said = [output.text for output in shown if output.output_type == "stream" and output.name == "stderr"]
    assert all("IProgress not found" in text for text in said), said
