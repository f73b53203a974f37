"""GPU exporter dialects."""
