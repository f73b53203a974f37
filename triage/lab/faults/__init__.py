"""What can go wrong: each fault changes parameters of the simulated world, and nothing else."""
