"""Builds Situations out of readings. No network."""
