"""For every test: how property tests run."""

from hypothesis import settings

# No test is timed: an example that takes long on a busy machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
