"""I/O: one file a source, all through the gate. A source never raises for what a target does."""
