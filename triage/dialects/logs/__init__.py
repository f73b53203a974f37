"""Logs of engines, exporters and kernels: text in, one LogReading out. Told apart by content, never by name."""

from triage.dialects.logs.read import read_log

__all__ = ["read_log"]
