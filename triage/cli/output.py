"""Where reports go: stdout, in the asked-for form."""

import shutil
import sys

from triage.cli.options import OutputFormat
from triage.domain.situation import Situation
from triage.domain.verdict import Diagnosis
from triage.report.document import to_json
from triage.report.plain import USUAL_WIDTH, to_markdown, to_text


def print_diagnosis(situation: Situation, diagnosis: Diagnosis, output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        write(to_json(situation, diagnosis).decode())
    elif output is OutputFormat.MARKDOWN:
        write(to_markdown(situation, diagnosis))
    else:
        write(to_text(situation, diagnosis, terminal_width()))


def terminal_width() -> int:
    """Columns of the terminal, within what reads well; the usual width when the output goes elsewhere."""
    if not sys.stdout.isatty():
        return USUAL_WIDTH
    return min(max(shutil.get_terminal_size().columns, 40), 120)


def write(text: str) -> None:
    """To stdout; characters that its encoding lacks are replaced instead of ending the report."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


def notice(text: str) -> None:
    """Progress and remarks, which are not part of the report."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
