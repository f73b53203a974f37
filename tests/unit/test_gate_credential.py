"""Tokens by reference: read lazily, once for all, again when refused; never shown."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from triage.domain.target import Failure, FailureReason
from triage.gate import credential as credential_module
from triage.gate.access import Credential, CredentialKind
from triage.gate.credential import CredentialReader

NAME = "TRIAGE_TEST_KEY"


def environment() -> CredentialReader:
    return CredentialReader(Credential(CredentialKind.ENVIRONMENT, (NAME,)))


def in_file(path: Path) -> CredentialReader:
    return CredentialReader(Credential(CredentialKind.FILE, (str(path),)))


def command(script: str, *arguments: str) -> CredentialReader:
    return CredentialReader(Credential(CredentialKind.COMMAND, (sys.executable, "-c", script, *arguments)))


def failed(found: str | Failure) -> str:
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.CREDENTIAL
    return found.detail


async def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = environment()
    monkeypatch.setenv(NAME, " sk-one \n")
    assert await reader.token() == "sk-one"


async def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("sk-two\n")
    assert await in_file(path).token() == "sk-two"


async def test_from_a_command_without_a_shell() -> None:
    script = "import sys; print(sys.argv[1].replace('$HOME;', 'sk-'))"
    assert await command(script, "$HOME;three").token() == "sk-three"


@pytest.mark.parametrize("value", ["", " ", "two words", "line\nX-Admin: yes", "sk-\x00", "schlüssel", "x" * 20_000])
async def test_what_is_no_token_is_not_sent_and_not_shown(tmp_path: Path, value: str) -> None:
    path = tmp_path / "key"
    path.write_text(value)
    detail = failed(await in_file(path).token())
    assert "key" in detail
    if value.strip():
        assert value not in detail


async def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    assert failed(await environment().token()) == f"environment variable {NAME} is not set"
    assert "No such file" in failed(await in_file(tmp_path / "none").token())
    assert "directory" in failed(await in_file(tmp_path).token())
    gone = CredentialReader(Credential(CredentialKind.COMMAND, ("/no/such/vault", "--token", "hunter2")))
    detail = failed(await gone.token())
    assert "command vault cannot be started" in detail
    assert "hunter2" not in detail


async def test_a_command_that_fails_is_not_quoted() -> None:
    detail = failed(await command("import sys; print('sk-secret'); sys.exit('sk-secret too')").token())
    assert "exit code 1" in detail
    assert "secret" not in detail


async def test_a_command_that_prints_too_much_is_ended() -> None:
    async with asyncio.timeout(20):
        assert "too much" in failed(await command("while True: print('x' * 1000)").token())


async def test_a_command_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credential_module, "READ_TIMEOUT_S", 0.2)
    async with asyncio.timeout(20):
        detail = failed(await command("import time; time.sleep(600)").token())
    assert "did not end within 0.2 s" in detail


async def test_a_command_is_ended_with_its_children(tmp_path: Path) -> None:
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    # The child holds the pipe open for as long as it lives.
    child = "import sys, time; pipe = open(sys.argv[1], 'wb', 0); pipe.write(b'x'); time.sleep(30)"
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[2]])"
    reading = asyncio.create_task(command(parent, child, str(pipe)).token())
    async with asyncio.timeout(20):
        with await asyncio.to_thread(pipe.open, "rb") as alive:
            assert await asyncio.to_thread(alive.read, 1) == b"x"
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert await asyncio.to_thread(alive.read) == b""


async def test_a_file_that_is_a_silent_pipe_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credential_module, "READ_TIMEOUT_S", 0.2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with asyncio.timeout(10):
        assert "within 0.2 s" in failed(await in_file(pipe).token())
    # Let the reader's thread end.
    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


async def test_it_is_read_once_for_all_that_wait(tmp_path: Path) -> None:
    script = "import sys; open(sys.argv[1], 'a').write('x'); print('sk-one')"
    reader = command(script, str(tmp_path / "runs"))
    assert await asyncio.gather(*[reader.token() for _ in range(20)]) == ["sk-one"] * 20
    assert (tmp_path / "runs").read_text() == "x"


async def test_a_refused_token_is_read_anew_but_not_at_every_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    reader = CredentialReader(Credential(CredentialKind.ENVIRONMENT, (NAME,)), clock=lambda: now)
    monkeypatch.setenv(NAME, "old")
    assert await reader.token() == "old"
    monkeypatch.setenv(NAME, "new")
    assert await reader.token() == "old", "nobody refused it"
    assert await reader.token(refused="old") == "old", "it was read a moment ago"
    now = 60.0
    assert await reader.token(refused="another") == "old", "what was refused is no longer what is held"
    assert await reader.token(refused="old") == "new"
    assert await reader.token(refused="old") == "new"


async def test_a_failure_is_kept_for_a_while_and_then_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    reader = CredentialReader(Credential(CredentialKind.ENVIRONMENT, (NAME,)), clock=lambda: now)
    monkeypatch.delenv(NAME, raising=False)
    failed(await reader.token())
    monkeypatch.setenv(NAME, "sk-late")
    failed(await reader.token())
    now = 60.0
    assert await reader.token() == "sk-late"
