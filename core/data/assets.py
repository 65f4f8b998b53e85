"""Assets: the folder of what ships with the code."""

from pathlib import Path

__support__ = True

ASSETS = Path(__file__).parents[2] / "assets"
