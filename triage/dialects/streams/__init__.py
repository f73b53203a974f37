"""Streamed and whole answers of the inference APIs: text in, one StreamReading out."""
