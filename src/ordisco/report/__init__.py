"""What a run shows: curves, confusion matrices, sample grids, tables and summaries.

Figures use matplotlib's object interface on the Agg backend, never pyplot; both it and Pillow are imported
only when a figure is drawn.
"""

from ordisco.report.confusion import confusion_matrix
from ordisco.report.curves import accuracy_curves
from ordisco.report.grids import sample_grid
from ordisco.report.summary import run_summary_markdown
from ordisco.report.table import TextTable

__all__ = [
    "TextTable",
    "accuracy_curves",
    "confusion_matrix",
    "run_summary_markdown",
    "sample_grid",
]
