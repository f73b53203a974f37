"""`triage doctor` as a user runs it, against servers on loopback."""

import asyncio
import json
import os
import sys

from tests.data import RECORDINGS
from tests.integration.conftest import Serve
from tests.integration.server import answer


async def doctor(*words: str) -> tuple[int, str]:
    """Exit code and stdout; the servers answer meanwhile, so it must not block the loop."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "triage.cli", "doctor", *words,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert b"Traceback" not in err
    assert process.returncode is not None
    return process.returncode, out.decode()


async def test_every_target_is_told_and_one_that_fails_decides(serve: Serve) -> None:
    engine = await serve(answer((RECORDINGS / "samples/trtllm_bare.prom").read_bytes()))
    off = await serve(answer('{"detail":"Not Found"}', "404 Not Found"))
    code, out = await doctor("--target", f"a={engine.url}", "--target", f"b={off.url}", "--format", "json")
    said = json.loads(out)
    assert (code, said["schema"]) == (1, "triage.doctor/1")
    first, second = said["targets"]
    assert first["seen"][0]["dialect"] == "bare"
    assert "--enable-metrics" in second["hint"]


async def test_a_good_page_is_no_failure(serve: Serve) -> None:
    engine = await serve(answer((RECORDINGS / "vllm/vllm-0.32.0-queueing.prom").read_bytes()))
    code, out = await doctor("--target", engine.url)
    assert code == 0
    assert "vLLM, V1 engine" in out
    assert max(map(len, out.splitlines())) <= 80
