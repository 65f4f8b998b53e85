"""Table twin: any chart's data as rows, for reading aloud, copying and downloading."""

import csv as writer
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from app.charts import Chart, Row

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rows(**columns: Iterable[Any]) -> list[Row]:
    """Rows from columns of equal length; numpy values become plain ones."""
    return table(list(columns), zip(*columns.values(), strict=True))


def table(names: Sequence[str], values: Iterable[Sequence[Any]]) -> list[Row]:
    """Rows from the columns' names and one tuple a row."""
    return [dict(zip(names, (_plain(value) for value in line), strict=True)) for line in values]


def csv(lines: list[Row]) -> str:
    """The rows as CSV; text that a spreadsheet would run as a formula gets a leading quote."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for line in lines for name in line))
    sheet = writer.DictWriter(out, names, lineterminator="\n")
    sheet.writerow({name: _harmless(name) for name in names})
    sheet.writerows({k: _harmless(v) for k, v in line.items()} for line in lines)
    return out.getvalue()


def frame(chart: Chart) -> "pd.DataFrame":
    """The chart's table as a DataFrame."""
    import pandas as pd

    return pd.DataFrame(chart.table)


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and np.isnan(value) else value


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
