"""Screens: they read Observations and send nothing but what the feed offers."""
