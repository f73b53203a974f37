"""Recorded answers of real software, with their provenance beside them."""

from pathlib import Path

RECORDINGS = Path(__file__).parent / "recordings"
