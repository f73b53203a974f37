"""`triage schema`: what scripts may rely on."""

import msgspec

from triage.cli.exits import Exit
from triage.cli.output import write
from triage.domain.errors import TriageError


def print_schema(thing: str | None) -> int:
    """Print one report's JSON Schema, or the names of all."""
    from triage.report.document import json_schema

    schemas = {"diagnosis": json_schema}
    if thing is None:
        write("\n".join(schemas) + "\n")
        return Exit.OK
    if thing not in schemas:
        raise TriageError("unknown report", thing, f"known: {', '.join(schemas)}")
    write(msgspec.json.format(msgspec.json.encode(schemas[thing]()), indent=2).decode() + "\n")
    return Exit.OK
