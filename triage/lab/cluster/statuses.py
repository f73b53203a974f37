"""Status bodies of the API server: what it answers when it does not answer with objects."""

from triage.lab.cluster.names import Object


class Refusal(Exception):
    """code: HTTP status. details: None where the API server writes none."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.body = status(code, reason, message, details)


def status(code: int, reason: str, message: str, details: Object | None = None) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        **({} if details is None else {"details": details}),
        "code": code,
    }


def unauthorized() -> Refusal:
    return Refusal(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def no_such_object(plural: str, name: str, group: str) -> Refusal:
    details = {"name": name, **({"group": group} if group else {}), "kind": plural}
    resource = f"{plural}.{group}" if group else plural
    return Refusal(404, "NotFound", f'{resource} "{name}" not found', details)


def no_such_resource() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> Refusal:
    return Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def expired(message: str) -> Refusal:
    return Refusal(410, "Expired", message)


def too_many() -> Refusal:
    words = "Too many requests, please try again later."
    return Refusal(429, "TooManyRequests", words, {"retryAfterSeconds": 1})


def too_large_version(asked: int, current: int) -> Refusal:
    """As apiserver's storage does it (not among the recordings)."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    words = f"Too large resource version: {asked}, current: {current}"
    return Refusal(504, "Timeout", words, {"causes": [cause], "retryAfterSeconds": 1})
