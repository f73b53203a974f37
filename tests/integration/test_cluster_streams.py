"""Watches and logs of the lab's Kubernetes API, against recorded ones."""

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.integration.cluster import (
    PODS,
    RECORDED,
    TOKEN,
    Patience,
    Town,
    events_until,
    next_event,
    open_town,
    recorded,
)
from triage.lab.cluster import api
from triage.lab.cluster.api import ClusterServer
from triage.lab.cluster.store import Store
from triage.lab.serving.pace import Pace


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with open_town() as town:
        yield town


# ---- watches


async def test_a_watch_tells_what_happens_to_a_pod(town: Town, patience: Patience) -> None:
    text = (RECORDED / "watch/pods-scale-up-and-down-metadata.jsonl").read_text()
    real = [json.loads(line) for line in text.splitlines()]
    _, listed = await town.ask(PODS)
    version = listed["metadata"]["resourceVersion"]
    async with patience(), town.open(PODS, watch="true", resourceVersion=version) as response:
        assert response.headers["Transfer-Encoding"] == "chunked"
        town.replica("chat-a").exit(town.world.now, 1, "Error", ["fatal"])
        event = await events_until(response, lambda one: one["object"]["metadata"]["name"] == "chat-a")
        assert event["type"] == "MODIFIED"
        assert event["object"].keys() >= real[0]["object"].keys()
        assert int(event["object"]["metadata"]["resourceVersion"]) > int(version)
        (status,) = event["object"]["status"]["containerStatuses"]
        assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        town.world.services[0].unplaced.append("chat-a-next")
        event = await events_until(response, lambda one: one["type"] == "ADDED")
        assert event["object"]["status"]["phase"] == "Pending"
        town.world.services[0].unplaced.clear()
        event = await events_until(response, lambda one: one["type"] == "DELETED")
        assert event["object"]["metadata"]["name"] == "chat-a-next"


async def test_a_watch_without_a_version_begins_with_what_is_there_and_ends_in_time(
    town: Town, patience: Patience
) -> None:
    """With a bookmark at its end, in the recorded form."""
    real = json.loads((RECORDED / "watch/pods-scale-up-and-down-metadata.jsonl").read_text().splitlines()[-1])
    async with patience(), town.open(PODS, watch="1", timeoutSeconds=1, allowWatchBookmarks="true") as response:
        lines = [json.loads(line) async for line in response.content]
    assert [one["type"] for one in lines] == [*["ADDED"] * 4, "BOOKMARK"]
    assert lines[-1]["object"].keys() == real["object"].keys()
    assert lines[-1]["object"]["spec"] == {"containers": None}


async def test_initial_events_end_with_their_bookmark(town: Town, patience: Patience) -> None:
    real = json.loads((RECORDED / "watch/pods-watchlist-end.jsonl").read_text())
    query = {"watch": "true", "sendInitialEvents": "true", "allowWatchBookmarks": "true"}
    async with patience(), town.open(PODS, **query, resourceVersionMatch="NotOlderThan") as response:
        event = await events_until(response, lambda one: one["type"] == "BOOKMARK")
    assert event["object"]["metadata"].keys() == real["object"]["metadata"].keys()
    assert event["object"]["metadata"]["annotations"] == real["object"]["metadata"]["annotations"]


async def test_a_version_that_is_too_old_is_an_error_event(
    town: Town, patience: Patience, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = json.loads((RECORDED / "watch/pods-410-gone.jsonl").read_text())
    monkeypatch.setattr(api, "Store", lambda: Store(changes=4))
    server = ClusterServer(town.world, Pace(town.world), {}, TOKEN)
    await server.start()
    old = Town(server, town.world, town.session)
    async with patience(), old.open(PODS, watch="true", resourceVersion=2) as response:
        assert response.status == 200
        event = await next_event(response)
        assert await response.content.read() == b""
    await server.close()
    assert event["object"].keys() == real["object"].keys()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: 2 (")


async def test_streams_are_counted(town: Town, patience: Patience, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_MOST_STREAMS", 1)

    async def status() -> int:
        async with town.open(PODS, watch="true", timeoutSeconds=1) as response:
            return response.status

    async with patience():
        async with town.open(PODS, watch="true") as response:
            await next_event(response)
            refused, body = await town.ask(PODS, watch="true")
            assert (refused, body["reason"]) == (429, "TooManyRequests")
        while await status() == 429:
            pass  # the server has not noticed yet that the watcher has gone


async def test_the_server_can_be_closed_under_a_watch(town: Town, patience: Patience) -> None:
    async with patience(), town.open(PODS, watch="true") as response:
        await next_event(response)
        await town.server.close()
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.read()


# ---- logs


async def test_the_log_of_a_pod(town: Town) -> None:
    path = f"{PODS}/chat-a/log"
    _, whole = await town.ask(path)
    assert "Application startup complete" in whole
    assert (await town.ask(path, tailLines=1))[1] == whole.splitlines()[-1] + "\n"
    assert (await town.ask(path, limitBytes=10))[1] == whole[:10]
    _, stamped = await town.ask(path, timestamps="true", tailLines=1)
    assert stamped.endswith(whole.splitlines()[-1] + "\n")
    assert stamped[:2] == "20"
    assert stamped[29] == "Z"
    recent = (await town.ask(path, sinceSeconds=15))[1]
    assert 0 < len(recent) < len(whole)


async def test_log_refusals(town: Town) -> None:
    real = recorded("errors/400-log-bad-container.json")["body"]
    status, body = await town.ask(f"{PODS}/chat-a/log", container="nope")
    assert (status, body) == (400, {**real, "message": "container nope is not valid for pod chat-a"})
    real = recorded("errors/400-log-previous-not-found.json")["body"]
    status, body = await town.ask(f"{PODS}/chat-a/log", previous="true")
    words = 'previous terminated container "engine" in pod "chat-a" not found'
    assert (status, body) == (400, {**real, "message": words})
    town.replica("chat-a").vacate(town.world.now)
    real = recorded("errors/204-log-pod-not-scheduled.json")
    assert await town.ask(f"{PODS}/chat-a/log") == (real["status"], real["body"])


async def test_the_log_before_a_restart(town: Town) -> None:
    replica = town.replica("chat-a")
    replica.exit(town.world.now, 1, "Error", ["its last words"])
    path = f"{PODS}/chat-a/log"
    assert (await town.ask(path, previous="true", tailLines=1))[1] == "its last words\n"
    assert (await town.ask(path, tailLines=1))[1] == "its last words\n"
    town.world.advance(town.world.now + 12.0)
    assert (await town.ask(path, previous="true", tailLines=1))[1] == "its last words\n"
    assert "its last words" not in (await town.ask(path))[1]


async def test_a_log_is_followed_until_its_process_ends(town: Town, patience: Patience) -> None:
    replica = town.replica("chat-a")
    async with patience(), town.open(f"{PODS}/chat-a/log", follow="true", tailLines=1) as response:
        assert response.content_type == "text/plain"
        await response.content.readline()
        replica.write(town.world.now, ["more"])
        while await response.content.readline() != b"more\n":
            pass
        replica.exit(town.world.now, 1, "Error", ["its last words"])
        rest = await response.content.read()
    assert rest.decode().splitlines()[-1] == "its last words"
