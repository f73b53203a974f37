"""The performance budgets, measured: `python -m tests.bench`. Not collected by pytest but for test_*.py."""
