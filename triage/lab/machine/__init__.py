"""The simulated machine: devices, checkpoints, and what a step of the engine costs on them."""
