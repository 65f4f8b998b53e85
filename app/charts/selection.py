"""Selection: what a person has picked in a chart, from what Streamlit reports of it.

Always from `customdata`, whose first entries say what a mark stands for; a mark's position in its
trace says nothing once colouring has split the traces.
"""

from collections.abc import Mapping, Sequence
from typing import Any


def picked(event: Any) -> list[list[Any]]:
    """The `customdata` of each selected mark, as lists; empty for anything else."""
    selection = event.get("selection", event) if isinstance(event, Mapping) else {}
    found = selection.get("points", []) if isinstance(selection, Mapping) else []
    data = [_entries(point.get("customdata")) for point in found if isinstance(point, Mapping)]
    return [entries for entries in data if entries]


def selected_ids(event: Any) -> list[int]:
    """Sample ids of the selected points of a map, each once, in order."""
    firsts = (entries[0] for entries in picked(event))
    return list(dict.fromkeys(int(i) for i in firsts if isinstance(i, (int, float))))


def selected_cell(event: Any) -> tuple[int, int] | None:
    """The first selected cell (row, column) of a matrix, or bar (true, predicted) of a flow."""
    for entries in picked(event):
        if len(entries) > 1 and all(isinstance(entry, (int, float)) for entry in entries[:2]):
            return int(entries[0]), int(entries[1])
    return None


def _entries(data: Any) -> list[Any]:
    if isinstance(data, Mapping):
        return list(data.values())
    if isinstance(data, Sequence) and not isinstance(data, str):
        return list(data)
    return [] if data is None else [data]
