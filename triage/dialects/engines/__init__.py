"""Engine dialect tables."""
