"""Tabs of a finished run: each module has `draw(record, ask)`."""
