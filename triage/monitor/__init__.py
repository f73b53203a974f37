"""The loop: polls sources, builds Situations, diagnoses, publishes to listeners."""
