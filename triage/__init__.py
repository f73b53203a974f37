"""triage: an incident and debugging assistant for self-hosted language models."""

__version__ = "0.1.0"
