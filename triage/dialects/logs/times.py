"""When a log line was written, where it says so with a date."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from triage.domain.calendar import ANY_YEAR, second_of_year

# Dates stand near the head of a line, behind prefixes such as "(APIServer pid=1) INFO".
_HEAD = 160
_CLOCK = r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
_ISO = re.compile(rf"(\d{{4}})-(\d\d)-(\d\d)[T ]{_CLOCK} ?(Z|[+-]\d\d:?\d\d)?")  # Kubernetes, SGLang, Dynamo, Ollama
_GIN = re.compile(rf"(\d{{4}})/(\d\d)/(\d\d) (?:- )?{_CLOCK}()")
_AMERICAN = re.compile(rf"(\d\d)/(\d\d)/(\d{{4}})-{_CLOCK}()")  # TensorRT-LLM
_NO_YEAR = re.compile(rf"(?<![\d-])(\d\d)-(\d\d) {_CLOCK}()")  # vLLM
# llama.cpp counts from its launch: minutes, seconds, milliseconds, microseconds.
_UPTIME = re.compile(r"^(\d{1,6})\.(\d\d)\.(\d{3})\.(\d{3}) [A-Z] ")
# Docker's json-file driver puts the time behind the line.
_WRAPPED = '{"log":'


class Clock(NamedTuple):
    """Seconds of a log line, for differences inside one log. calendar: since a year began, else since the launch."""

    seconds: float
    calendar: bool


def clock_of(line: str) -> Clock | None:
    """The clock of a line, also of one whose date has no year."""
    if found := _UPTIME.match(line):
        minutes, seconds, thousandths, millionths = map(int, found.groups())
        return Clock(minutes * 60 + seconds + thousandths / 1e3 + millionths / 1e6, False)
    at = time_of(line, ANY_YEAR)
    second = None if at is None else second_of_year(at)
    return None if second is None else Clock(second, True)


def time_of(line: str, year: int | None = None) -> float | None:
    """Unix seconds, or None when the line carries no full date.

    year: completes lines that have month and day alone (vLLM). A zone that is not given is UTC, as in containers.
    """
    head = line if line.startswith(_WRAPPED) else line[:_HEAD]
    if found := _ISO.search(head) or _GIN.search(head):
        years, months, days, *rest = found.groups()
    elif found := _AMERICAN.search(head):
        months, days, years, *rest = found.groups()
    elif year is not None and (found := _NO_YEAR.search(head)):
        months, days, *rest = found.groups()
        years = str(year)
    else:
        return None
    hours, minutes, seconds, fraction, zone = rest
    try:
        moment = datetime(
            int(years), int(months), int(days), int(hours), int(minutes), int(seconds), tzinfo=_zone(zone)
        )
    except ValueError:
        return None
    return moment.timestamp() + (float(f"0.{fraction}") if fraction else 0.0)


def _zone(text: str | None) -> timezone:
    """'Z', '+0200', '-07:30' or nothing. Raises ValueError beyond 24 hours."""
    if not text or text == "Z":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
