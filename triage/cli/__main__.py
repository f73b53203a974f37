"""`python -m triage.cli`: the command without its script."""

from triage.cli.main import run

run()
