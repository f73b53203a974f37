"""Runs lab incidents against the diagnosis or against a person, and grades."""
