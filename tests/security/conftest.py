"""The misbehaving servers of the integration tests."""

from tests.integration.conftest import gate, serve

__all__ = ["gate", "serve"]
