"""The lab's Kubernetes API over HTTP, asked by hand and by the official client, against recorded answers."""

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.cluster import PODS, Patience, Town, open_town, recorded
from triage.lab.cluster.kubeconfig import write_kubeconfig


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    async with open_town() as town:
        yield town


# ---- refusals


async def test_without_its_token_nothing_is_told(town: Town) -> None:
    body = recorded("errors/401-bad-token.json")["body"]
    assert await town.ask(PODS, token="") == (401, body)
    assert await town.ask("/version", token="another") == (401, body)


async def test_what_is_not_there(town: Town) -> None:
    missing = recorded("errors/404-pod.json")
    assert await town.ask(f"{PODS}/no-such-pod") == (404, missing["body"])
    unknown = recorded("errors/404-unknown-kind.json")
    assert await town.ask(unknown["request"]["path"]) == (404, unknown["body"])
    status, body = await town.ask("/api/v1/namespaces/lab/secrets")
    assert (status, body["kind"], body["reason"]) == (404, "Status", "NotFound")
    status, body = await town.ask("/apis/apps/v1/namespaces/lab/deployments/no")
    assert body["message"] == 'deployments.apps "no" not found'
    assert (await town.ask("/api/v1/namespaces/other/pods"))[1]["items"] == []


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD"])
async def test_nothing_can_be_changed(town: Town, method: str) -> None:
    async with town.open(f"{PODS}/chat-a", method) as response:
        assert response.status == 405
        if method != "HEAD":
            body = await response.json()
            assert (body["kind"], body["reason"], body["code"]) == ("Status", "MethodNotAllowed", 405)
    assert (await town.ask(f"{PODS}/chat-a"))[0] == 200


async def test_queries_that_cannot_be_read(town: Town) -> None:
    for query in ({"limit": "many"}, {"labelSelector": "a in (b)"}, {"fieldSelector": "spec.color=red"}):
        status, body = await town.ask(PODS, **query)
        assert (status, body["reason"]) == (400, "BadRequest")
    assert (await town.ask(PODS, resourceVersion="-1"))[0] == 400
    status, body = await town.ask(PODS, resourceVersion="999999")
    assert (status, body["reason"]) == (504, "Timeout")


# ---- discovery and rights


async def test_discovery(town: Town) -> None:
    assert await town.ask("/version") == (200, recorded("discovery/version.json"))
    _, body = await town.ask("/api")
    assert body.keys() == recorded("discovery/api.json").keys()
    assert body["serverAddressByClientCIDRs"][0]["serverAddress"] == f"127.0.0.1:{town.server.port}"
    _, groups = await town.ask("/apis")
    for group in groups["groups"]:
        for version in group["versions"]:
            _, resources = await town.ask(f"/apis/{version['groupVersion']}")
            assert resources["groupVersion"] == version["groupVersion"]
    _, core = await town.ask("/api/v1")
    names = {one["name"] for one in core["resources"]}
    assert {"pods", "pods/log", "events", "nodes", "services", "namespaces"} == names


async def test_every_resource_that_is_told_of_can_be_listed(town: Town) -> None:
    for root in ("/api/v1", "/apis/apps/v1", "/apis/discovery.k8s.io/v1"):
        _, told = await town.ask(root)
        for one in told["resources"]:
            if "/" in one["name"]:
                continue
            status, body = await town.ask(f"{root}/{one['name']}")
            assert (status, body["kind"]) == (200, f"{one['kind']}List")
            assert body["items"]
            assert "kind" not in body["items"][0]
            place = f"namespaces/lab/{one['name']}" if one["namespaced"] else one["name"]
            name = body["items"][0]["metadata"]["name"]
            if not one["namespaced"] or body["items"][0]["metadata"]["namespace"] == "lab":
                status, single = await town.ask(f"{root}/{place}/{name}")
                assert (status, single["kind"]) == (200, one["kind"])


async def test_rights_are_read_only(town: Town) -> None:
    status, body = await town.ask("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "POST")
    assert status == recorded("reviews/selfsubjectrulesreview-oncall.json")["status"]
    review = recorded("reviews/selfsubjectrulesreview-oncall.json")["body"]
    assert body.keys() == {*review.keys()}
    assert body["status"].keys() == review["status"].keys()
    verbs = {verb for rule in body["status"]["resourceRules"] for verb in rule["verbs"] if "pods" in rule["resources"]}
    assert verbs == {"get", "list", "watch"}


# ---- lists


async def test_a_list_has_the_recorded_metadata(town: Town) -> None:
    real = recorded("views/pods-limit5-page1-metadata.json")["body"]
    async with town.open(PODS, limit=3) as response:
        body = await response.json()
        assert response.headers["Cache-Control"] == "no-cache, private"
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Audit-Id"]
    assert body.keys() == real.keys()
    assert body["metadata"].keys() == real["metadata"].keys()
    assert (body["kind"], body["apiVersion"], body["metadata"]["remainingItemCount"]) == ("PodList", "v1", 1)
    _, rest = await town.ask(PODS, limit=3, **{"continue": body["metadata"]["continue"]})
    names = [one["metadata"]["name"] for one in (*body["items"], *rest["items"])]
    assert names == ["chat-a", "chat-b", "chat-c", "side-a"]
    assert rest["metadata"] == {"resourceVersion": body["metadata"]["resourceVersion"]}


async def test_selectors(town: Town) -> None:
    async def names(path: str, **query: str) -> list[str]:
        return [one["metadata"]["name"] for one in (await town.ask(path, **query))[1]["items"]]

    assert await names(PODS, labelSelector="app=llama-3-1-8b,inference.example.com/engine=sglang") == ["chat-c"]
    assert await names(PODS, fieldSelector="metadata.name=chat-b") == ["chat-b"]
    assert await names(PODS, fieldSelector="spec.nodeName=gpu-l40s-1") == ["chat-b"]
    events = (await town.ask("/api/v1/events", fieldSelector="involvedObject.name=chat-a"))[1]["items"]
    assert {one["involvedObject"]["name"] for one in events} == {"chat-a"}


# ---- the official client


@pytest.fixture
def kubeconfig(town: Town, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.touch(0o644)
    write_kubeconfig(path, town.server.url, town.server.token)
    return path


def test_a_kubeconfig_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.touch(0o644)
    write_kubeconfig(path, "http://127.0.0.1:1", "secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_the_official_client_lists_reads_and_watches(town: Town, kubeconfig: Path, patience: Patience) -> None:
    kubernetes = pytest.importorskip("kubernetes")
    town.replica("chat-a").exit(town.world.now, 1, "Error", ["its last words"])

    def ask() -> None:
        with kubernetes.config.new_client_from_config(str(kubeconfig)) as client:
            core, apps = kubernetes.client.CoreV1Api(client), kubernetes.client.AppsV1Api(client)
            pods = core.list_namespaced_pod("lab").items
            (status,) = pods[0].status.container_statuses
            assert status.last_state.terminated.exit_code == 1
            assert not status.ready
            assert core.read_namespaced_pod_log("chat-a", "lab", previous=True, tail_lines=1) == "its last words\n"
            assert len(core.list_node().items) == 4
            assert core.list_event_for_all_namespaces().items
            deployment = apps.read_namespaced_deployment("llama-3-1-8b-vllm", "lab")
            assert deployment.status.ready_replicas == 1
            assert apps.list_namespaced_replica_set("lab").items
            slices = kubernetes.client.DiscoveryV1Api(client).list_namespaced_endpoint_slice("lab").items
            assert {one.ports[0].port for one in slices} == {40_001, 40_002, 40_003, 40_004}
            rules = kubernetes.client.AuthorizationV1Api(client).create_self_subject_rules_review(
                {"spec": {"namespace": "lab"}}
            )
            assert not rules.status.incomplete
            with pytest.raises(kubernetes.client.ApiException, match="405"):
                core.delete_namespaced_pod("chat-a", "lab")
            watch = kubernetes.watch.Watch()
            seen = [
                one["object"].metadata.name for one in watch.stream(core.list_pod_for_all_namespaces, timeout_seconds=1)
            ]
            assert seen[:4] == ["chat-a", "chat-b", "chat-c", "side-a"]
            client.rest_client.pool_manager.clear()

    async with patience():
        await asyncio.to_thread(ask)
