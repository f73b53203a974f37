"""Simulated engines under simulated load: what `triage demo` looks at. Knows nothing of judgement."""
