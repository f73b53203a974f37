"""The one error root. Everything a person may see as an error derives from it."""


class TriageError(Exception):
    """Something triage cannot do, said so that a tired person can act on it.

    title: what failed, in a few words. what: what happened. hint: what to try, or "".
    """

    def __init__(self, title: str, what: str = "", hint: str = "") -> None:
        super().__init__(title, what, hint)
        self.title = title
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.title}: {self.what}" if self.what else self.title
        return f"{text} ({self.hint})" if self.hint else text


class ConfigError(TriageError):
    """The configuration or an option says something that cannot be meant."""


class EvidenceError(TriageError):
    """An evidence folder cannot be read at all (a single bad file is not an error)."""
