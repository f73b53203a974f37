"""The cluster's objects tell the truth about the fleet."""

from itertools import pairwise

import msgspec
import pytest

from tests.unit.lab.cluster import ZERO, Town, broken, crashing, slow_start, stuck_rollout, without_place
from triage.lab.cluster.names import stamp
from triage.lab.world.hop import Hop


@pytest.fixture
def town() -> Town:
    """At 20 s, and all is well."""
    town = Town()
    town.pass_to(20.0)
    return town


def test_a_healthy_fleet_is_ready_and_routable_at_its_real_ports(town: Town) -> None:
    pods = town.of("pods")
    assert sorted(pods) == ["chat-a", "chat-b", "chat-c", "side-a"]
    for name, pod in pods.items():
        assert condition(pod, "Ready")["status"] == "True"
        assert pod["status"]["podIP"] == "127.0.0.1"
        (container,) = pod["spec"]["containers"]
        assert container["ports"][0]["containerPort"] == town.ports[name]
    slices = town.of("endpointslices").values()
    mine = {one["endpoints"][0]["targetRef"]["name"]: one for one in slices}
    assert {name: one["ports"][0]["port"] for name, one in mine.items()} == town.ports
    assert all(one["endpoints"][0]["conditions"]["ready"] for one in slices)
    for deployment in town.of("deployments").values():
        assert deployment["status"]["readyReplicas"] == deployment["spec"]["replicas"]
        assert [one["status"] for one in deployment["status"]["conditions"]] == ["True", "True"]


def test_a_model_behind_two_engines_has_a_deployment_for_each_and_one_service(town: Town) -> None:
    """A Deployment has one template, and so one image."""
    wanted = {name: one["spec"]["replicas"] for name, one in town.of("deployments").items()}
    assert wanted == {"llama-3-1-8b-vllm": 2, "llama-3-1-8b-sglang": 1, "qwen3-8b-sglang": 1}
    service = town.of("services")["llama-3-1-8b"]
    asked = service["spec"]["selector"].items()
    chosen = [name for name, pod in town.of("pods").items() if asked <= pod["metadata"]["labels"].items()]
    assert chosen == ["chat-a", "chat-b", "chat-c"]


def test_arguments_are_the_settings_that_an_engine_has_now(town: Town) -> None:
    replica = town.replica("chat-a")
    settings = msgspec.structs.replace(
        replica.settings, max_num_seqs=5, max_model_len=9_000, num_blocks=replica.settings.num_blocks // 2
    )
    before = args(town, "chat-a")
    assert (before["--max-num-seqs"], before["--gpu-memory-utilization"]) == ("16", "0.90")
    town.do(lambda now: replica.limit(settings, now))
    after = args(town, "chat-a")
    assert (after["--max-num-seqs"], after["--max-model-len"]) == ("5", "9000")
    assert 0.5 < float(after["--gpu-memory-utilization"]) < 0.9
    assert args(town, "chat-c")["--max-running-requests"] == "16"
    assert town.of("deployments")["llama-3-1-8b-vllm"]["metadata"]["generation"] == 2


def test_a_crash_loop(town: Town) -> None:
    crashing(town)
    replica, pod = town.replica("chat-a"), town.of("pods")["chat-a"]
    (status,) = pod["status"]["containerStatuses"]
    ended = status["lastState"]["terminated"]
    # Ends at 20 s, and about 21 s after each start; waits of 10, 20, 40 and 80 s.
    assert len(replica.exits) == 4
    assert status["restartCount"] == 3
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert status["state"]["waiting"]["message"].startswith("back-off 1m20s restarting failed container=engine pod=")
    assert (ended["exitCode"], ended["reason"]) == (1, "Error")
    assert ended["startedAt"] < ended["finishedAt"]
    assert not status["ready"]
    assert condition(pod, "Ready")["reason"] == "ContainersNotReady"
    (back_off,) = town.events("chat-a", "BackOff")
    assert back_off["count"] > 4
    (started,) = town.events("chat-a", "Started")
    assert started["count"] == 4
    endpoint = next(
        one["endpoints"][0]
        for one in town.of("endpointslices").values()
        if one["endpoints"][0]["targetRef"]["name"] == "chat-a"
    )
    assert endpoint["conditions"] == {"ready": False, "serving": False, "terminating": False}


def test_a_start_that_the_startup_probe_ends(town: Town) -> None:
    slow_start(town)
    (status,) = town.of("pods")["chat-a"]["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 137
    assert status["lastState"]["terminated"]["reason"] == "Error"
    (killed,) = town.events("chat-a", "Killing")
    assert killed["message"] == "Container engine failed startup probe, will be restarted"
    (refused,) = town.events("chat-a", "Unhealthy")
    assert refused["message"].endswith(f"dial tcp 127.0.0.1:{town.ports['chat-a']}: connect: connection refused")
    probe = town.of("pods")["chat-a"]["spec"]["containers"][0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 100


def test_a_replica_without_a_place(town: Town) -> None:
    before = town.of("pods")["chat-a"]["metadata"]["uid"]
    without_place(town)
    pod = town.of("pods")["chat-a"]
    assert pod["status"]["phase"] == "Pending"
    assert "nodeName" not in pod["spec"]
    assert "containerStatuses" not in pod["status"]
    words = condition(pod, "PodScheduled")["message"]
    assert condition(pod, "PodScheduled")["reason"] == "Unschedulable"
    assert words.startswith("0/4 nodes are available: 4 Insufficient nvidia.com/gpu. no new claims to deallocate")
    assert pod["metadata"]["uid"] != before
    (killed,) = town.events("chat-a", "Killing")
    assert (killed["involvedObject"]["uid"], killed["message"]) == (before, "Stopping container engine")
    (event,) = town.events("chat-a", "FailedScheduling")
    assert (event["firstTimestamp"], event["lastTimestamp"], event.get("count")) == (None, None, None)
    assert event["message"] == words
    assert event["series"]["count"] == 3
    assert event["eventTime"] < event["series"]["lastObservedTime"]
    slices = [one for one in town.of("endpointslices").values() if one["metadata"]["labels"]["app"] == "llama-3-1-8b"]
    assert [one["endpoints"][0]["targetRef"]["name"] for one in slices] == ["chat-b", "chat-c"]


def test_the_scheduler_counts_nodes_of_other_kinds_apart() -> None:
    town = Town("agents")
    town.do(town.replica("agents-a").vacate)
    assert condition(town.of("pods")["agents-a"], "PodScheduled")["message"] == (
        "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 3 Insufficient nvidia.com/gpu. "
        "no new claims to deallocate, preemption: 0/4 nodes are available: 1 Preemption is not helpful for scheduling, "
        "3 No preemption victims found for incoming pod."
    )


def test_a_service_without_any_place_keeps_an_empty_slice(town: Town) -> None:
    town.do(town.replica("side-a").vacate)
    (left,) = [one for one in town.of("endpointslices").values() if one["metadata"]["labels"]["app"] == "qwen3-8b"]
    assert (left["endpoints"], left["ports"]) == (None, None)


def test_a_rollout_times_out_when_its_deadline_is_over(town: Town) -> None:
    stuck_rollout(town)
    name = "llama-3-1-8b-vllm"
    deployment = town.of("deployments")[name]
    status = deployment["status"]
    assert (status["replicas"], status["updatedReplicas"], status["readyReplicas"]) == (3, 1, 2)
    assert condition(deployment, "Available")["status"] == "True"
    assert condition(deployment, "Progressing")["reason"] == "ReplicaSetUpdated"
    newest = town.of("pods")["chat-b-next"]["metadata"]["ownerReferences"][0]["name"]
    old = town.of("pods")["chat-b"]["metadata"]["ownerReferences"][0]["name"]
    sets = {one: town.of("replicasets")[one]["metadata"]["annotations"] for one in (old, newest)}
    assert [sets[one]["deployment.kubernetes.io/revision"] for one in (old, newest)] == ["1", "2"]
    town.pass_to(20.0 + 601.0)
    progress = condition(town.of("deployments")[name], "Progressing")
    assert (progress["status"], progress["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert progress["message"] == f'ReplicaSet "{newest}" has timed out progressing.'
    # The other engine's Deployment has nothing to do with it.
    assert condition(town.of("deployments")["llama-3-1-8b-sglang"], "Progressing")["status"] == "True"
    town.do(lambda now: town.service.unplaced.clear())
    assert "chat-b-next" not in town.of("pods")
    assert town.of("deployments")[name]["metadata"]["generation"] == 3


def test_a_lost_device_leaves_its_node_with_one_less(town: Town) -> None:
    town.replica("chat-a").xid = 79
    node = town.of("nodes")["gpu-l40s-0"]
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "1"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "0"
    assert condition(node, "Ready")["status"] == "True"


def test_readiness_is_what_its_probe_asks_for(town: Town) -> None:
    broken(town)
    pod = town.of("pods")["chat-a"]
    (event,) = [one for one in town.events("chat-a", "Unhealthy") if "Readiness" in one["message"]]
    assert event["message"] == "Readiness probe failed: HTTP probe failed with statuscode: 503"
    assert condition(pod, "Ready")["status"] == "False"
    assert condition(pod, "Ready")["lastTransitionTime"] == stamp(ZERO + 20.0)
    town.do(lambda now: town.service.route(msgspec.structs.replace(Hop(), by_port=True)))
    pod = town.of("pods")["chat-a"]
    assert condition(pod, "Ready")["status"] == "True"
    assert pod["spec"]["containers"][0]["readinessProbe"]["tcpSocket"] == {"port": "http"}


def test_another_process_that_did_not_end_before_is_another_pod(town: Town) -> None:
    before = town.of("pods")["chat-a"]
    town.do(town.replica("chat-a").restart)
    after = town.of("pods")["chat-a"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["creationTimestamp"] > before["metadata"]["creationTimestamp"]
    (status,) = after["status"]["containerStatuses"]
    assert (status["restartCount"], status["lastState"]) == (0, {})


def test_a_mended_pod_without_a_place_is_scheduled(town: Town) -> None:
    without_place(town)
    waiting = town.of("pods")["chat-a"]["metadata"]["uid"]
    town.do(town.replica("chat-a").mend)
    pod = town.of("pods")["chat-a"]
    assert pod["metadata"]["uid"] == waiting
    assert condition(pod, "Ready")["status"] == "True"
    assert (
        pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] >= pod["metadata"]["creationTimestamp"]
    )
    assert not [name for name in town.of("pods") if name.startswith("notebook")]


def test_equal_fleets_have_equal_objects() -> None:
    towns = [Town(), Town()]
    for town in towns:
        town.pass_to(5.0)
        crashing(town)
    assert towns[0].objects() == towns[1].objects()


def test_events_live_for_an_hour(town: Town) -> None:
    assert town.events("chat-a", "Started")
    scene_now = town.world.now
    town.world.now = scene_now + 3700.0  # nothing has happened since
    assert not town.of("events")
    town.world.now = scene_now


def condition(one: dict, kind: str) -> dict:
    return next(found for found in one["status"]["conditions"] if found["type"] == kind)


def args(town: Town, name: str) -> dict[str, str]:
    words = town.of("pods")[name]["spec"]["containers"][0]["args"]
    return dict(pairwise(words))
