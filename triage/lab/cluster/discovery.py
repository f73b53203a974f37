"""Which resources the API server serves, how it tells so, and what its one user may do."""

from typing import NamedTuple

from triage.lab.cluster.names import Object


class Resource(NamedTuple):
    """group: "" for core. short: as kubectl accepts it."""

    plural: str
    kind: str
    group: str
    namespaced: bool
    short: str

    @property
    def group_version(self) -> str:
        return f"{self.group}/v1" if self.group else "v1"

    @property
    def root(self) -> str:
        return f"/apis/{self.group_version}" if self.group else "/api/v1"


RESOURCES = (
    Resource("events", "Event", "", True, "ev"),
    Resource("namespaces", "Namespace", "", False, "ns"),
    Resource("nodes", "Node", "", False, "no"),
    Resource("pods", "Pod", "", True, "po"),
    Resource("services", "Service", "", True, "svc"),
    Resource("deployments", "Deployment", "apps", True, "deploy"),
    Resource("replicasets", "ReplicaSet", "apps", True, "rs"),
    Resource("endpointslices", "EndpointSlice", "discovery.k8s.io", True, ""),
)
REVIEWS = "authorization.k8s.io"
REVIEW_PATH = f"/apis/{REVIEWS}/v1/selfsubjectrulesreviews"
_READ = ["get", "list", "watch"]

# discovery/version.json of the recorded API server.
VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "$Format:%H$",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.27.3",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def documents(address: str) -> dict[str, Object]:
    """Discovery by path. address: host and port of the server."""
    return {
        "/version": VERSION,
        "/api": {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        },
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in _groups()]},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": _resources("")},
        **{
            f"/apis/{group}/v1": {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{group}/v1",
                "resources": _resources(group),
            }
            for group in _groups()
        },
    }


def _groups() -> list[str]:
    return [*dict.fromkeys([one.group for one in RESOURCES if one.group]), REVIEWS]


def _group(name: str) -> Object:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resources(group: str) -> list[Object]:
    found: list[Object] = []
    for one in RESOURCES:
        if one.group != group:
            continue
        names = {"name": one.plural, "singularName": one.kind.lower(), "namespaced": one.namespaced, "kind": one.kind}
        found.append({**names, "verbs": _READ, **({"shortNames": [one.short]} if one.short else {})})
        if one.plural == "pods":
            found.append({**names, "name": "pods/log", "singularName": "", "verbs": ["get"]})
    if group == REVIEWS:
        name = "selfsubjectrulesreviews"
        kind = "SelfSubjectRulesReview"
        found.append(
            {"name": name, "singularName": kind.lower(), "namespaced": False, "kind": kind, "verbs": ["create"]}
        )
    return found


def rules_review() -> Object:
    """A SelfSubjectRulesReview: everything that is served may be read, and nothing else be done."""
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": f"{REVIEWS}/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [
                {"verbs": ["create"], "apiGroups": [REVIEWS], "resources": ["selfsubjectrulesreviews"]},
                {
                    "verbs": _READ,
                    "apiGroups": list(dict.fromkeys([one.group for one in RESOURCES])),
                    "resources": [*[one.plural for one in RESOURCES], "pods/log"],
                },
            ],
            "nonResourceRules": [
                {"verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/version"]},
            ],
            "incomplete": False,
        },
    }
