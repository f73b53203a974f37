"""Why an engine refuses a request at its door."""

from enum import Enum


class Refused(Exception):
    """The engine took nothing of it. reason, and the words for the client."""

    def __init__(self, reason: "Reason", words: str) -> None:
        super().__init__(words)
        self.reason = reason


class Reason(Enum):
    """HTTP status of each: 400 for what can never fit, 503 for what does not fit now or an engine that is gone."""

    CONTEXT = 400
    QUEUE_FULL = 503
    DEAD = 500
