"""The way from an engine's page to whoever scrapes it."""

from triage.lab.world.replica import Replica

# What a relabelling rule in between makes of the names: series of one engine under the prefix of a platform.
_RENAMED = (("vllm:", "platform_llm_"), ("sglang:", "platform_llm_"))


class Watch:
    """off: replicas whose page is not exported. stale: pages that a proxy in between gives again and again.

    renamed: series come under names that no engine exports.
    """

    def __init__(self) -> None:
        self.off: set[str] = set()
        self.stale: dict[str, str] = {}
        self.renamed: set[str] = set()

    def page(self, replica: Replica, at: float) -> tuple[int, str]:
        """HTTP status and text; status 0 where nobody accepts the connection."""
        if not replica.listening:
            return 0, ""
        if replica.name in self.off:
            return 404, "404: Not Found"
        if replica.name in self.stale:
            return 200, self.stale[replica.name]
        text = replica.page(at)
        if replica.name in self.renamed:
            for old, new in _RENAMED:
                text = text.replace(old, new)
        return 200, text

    def clear(self) -> None:
        self.off.clear()
        self.stale.clear()
        self.renamed.clear()
