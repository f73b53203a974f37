"""The simulated fleet behind HTTP, on loopback."""
