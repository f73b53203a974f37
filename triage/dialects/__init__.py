"""Translations of one system's names, labels, units and quirks into readings. No I/O."""
