"""The probe's question and bounds come from a file, and a bad file says what is wrong."""

from pathlib import Path

import pytest

from triage.domain.errors import ConfigError
from triage.probing.budget import load_budget, shipped_budget


def test_the_shipped_probe_is_small_and_never_the_same() -> None:
    budget = shipped_budget()
    assert "{nonce}" in budget.prompt[:20], "a common head would be in the prefix cache"
    assert budget.max_tokens <= 500
    assert budget.total_s <= 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prompt: x\nmax_tokens: 5\ntotal_s: 1\nanswer_mib: 1\nextra: 1\n", "extra"),
        ("prompt: x\nmax_tokens: many\ntotal_s: 1\nanswer_mib: 1\n", "max_tokens"),
        ("prompt: x\nmax_tokens: 99999\ntotal_s: 1\nanswer_mib: 1\n", "4096"),
        ("prompt: x\n", "max_tokens"),
        (":\n  - [", "stream.yaml"),
    ],
)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "stream.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_budget([tmp_path])
    assert said in str(caught.value)


def test_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no probe"):
        load_budget([tmp_path])
