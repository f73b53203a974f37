"""Prometheus's API: dialect tables to selectors, its answers to pages, targets and alerts."""
