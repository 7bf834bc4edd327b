"""What is skipped here is told at the end: pytest -rs."""

import matplotlib

matplotlib.use("Agg")
