"""What requests in an engine's queue wait for: a slot, or something that more room would not give them."""

from collections.abc import Sequence

import msgspec

from triage.diagnosis.text import count, many, seconds
from triage.diagnosis.thresholds import SHARE_SUPPORT
from triage.diagnosis.view import ReplicaView
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.situation import AdapterUse
from triage.domain.verdict import Direction, Evidence, Family

_TWICE = "send one short request twice, cold and warm: both must wait equally long when it is a queue"
_NEXT = {
    "adapter-slots": "send one short request without an adapter: it must not wait",
    "grammar-queue": "send one short request without a schema: it must not wait",
    "handoff-queue": "look at the queues and KV room of both roles: the one that is full holds the other up",
}

# These admit a request only when the answers of those that run fit as well, up to their max_tokens: SGLang by its
# new-token ratio (schedule_policy.py; all of it under ignore_eos: 1 of 2 slots used at 16 % of the KV cache),
# TensorRT-LLM by GUARANTEED_NO_EVICT, TGI by max_batch_total_tokens. vLLM takes blocks as it goes.
_RESERVING = frozenset({"sglang", "tensorrt-llm", "tgi"})


class Reason(msgspec.Struct, frozen=True):
    """detail: sub-cause or None. words: go behind "requests wait"."""

    detail: str | None
    words: str
    evidence: tuple[Evidence, ...] = ()

    @property
    def next_test(self) -> str:
        return _NEXT.get(self.detail or "", _TWICE)


def waited_for(view: ReplicaView, adapters: Sequence[AdapterUse], flat: bool) -> Reason:
    """The reason that the gauges give. adapters: what was said of the only engine. flat: the batch is full-sized."""
    for quantity, detail, words in (
        (Quantity.GRAMMAR_QUEUE, "grammar-queue", "for their grammar to be compiled"),
        (Quantity.HANDOFF_QUEUE, "handoff-queue", "for the hand-over between prefill and decode"),
    ):
        track, waiting = view.track(quantity), view.queued
        if track is not None and waiting is not None and track.low > 0 and track.mean >= waiting.mean / 2:
            evidence = (_gauge(view, quantity, f"{many(track.last, 'request')} in it", track.last),)
            return Reason(detail, words, (*evidence, *_handoff(view)) if detail == "handoff-queue" else evidence)
    slots, wanted = view.track(Quantity.ADAPTER_SLOTS), view.track(Quantity.ADAPTERS_WAITING)
    deferred, room = view.track(Quantity.WAITING_DEFERRED), view.waiting
    on_purpose = deferred is not None and deferred.mean > (room.mean if room is not None else 0.0)
    split = deferred is not None and view.track(Quantity.WAITING_CAPACITY) is not None
    if slots is not None and wanted is not None and wanted.last > 0 and (on_purpose or not split):
        text = f"{many(wanted.last, 'adapter')} without a slot, {count(slots.last)} slots"
        return Reason(
            "adapter-slots", "for a free adapter slot", (_gauge(view, Quantity.ADAPTERS_WAITING, text, wanted.last),)
        )
    if on_purpose and _transfers_take_long(view):
        return Reason("handoff-queue", "for their KV cache to come from the prefill side", tuple(_handoff(view)))
    if on_purpose:
        return Reason(None, "on purpose: for an adapter, a KV transfer or a grammar")
    limit = view.sequence_limit
    full = known(limit) and view.running is not None and view.running.high >= limit
    if full:
        return Reason("sequence-limit", f"for one of {count(limit)} slots" if known(limit) else "for a slot")
    more = next((use for use in adapters if use.wanted > use.slots), None)
    if more is not None and view.running is not None and view.running.high <= more.slots:
        return Reason("adapter-slots", "for a free adapter slot", (_asked(more),))
    if reserves_room(view):
        return Reason(None, "for a slot, or for room that running requests have reserved")
    return Reason("sequence-limit", "for a slot") if flat else Reason(None, "for a slot")


def _transfers_take_long(view: ReplicaView) -> bool:
    """Most requests fetch their KV cache, and that takes a good part of their time to the first token."""
    each, first = view.window.mean(Quantity.KV_TRANSFER_TIME), view.ttft
    transfers = value_or(view.window.delta(Quantity.KV_TRANSFER_TIME), 0.0)
    answered = value_or(view.window.delta(Quantity.TTFT), 0.0)
    return known(each) and known(first) and each >= SHARE_SUPPORT * first and transfers >= answered / 2


def _handoff(view: ReplicaView) -> list[Evidence]:
    """What else tells of trouble between prefill and decode."""
    found = []
    each = view.window.mean(Quantity.KV_TRANSFER_TIME)
    if known(each):
        found.append(
            view.evidence(
                "kv-transfer",
                f"moving a request's KV cache takes {seconds(each)}",
                quantity=Quantity.KV_TRANSFER_TIME,
                strength=2 if _transfers_take_long(view) else 1,
                value=each,
                unit="s",
                n=int(value_or(view.window.delta(Quantity.KV_TRANSFER_TIME), 0.0)),
            )
        )
    sending = view.track(Quantity.HANDOFF_SENDING)
    if sending is not None and sending.low > 0:
        text = f"{many(sending.last, 'prefilled request')} on the way to a decode worker"
        found.append(_gauge(view, Quantity.HANDOFF_SENDING, text, sending.last))
    failed = value_or(view.window.delta(Quantity.HANDOFF_FAILED), 0.0)
    if failed:
        text = f"{many(failed, 'hand-over')} failed"
        found.append(
            view.evidence("handoff-failed", text, quantity=Quantity.HANDOFF_FAILED, value=failed, threshold=0.0)
        )
    return found


def reserves_room(view: ReplicaView) -> bool:
    """Its KV use says nothing of the room that is left for the next request."""
    return view.window.last.engine in _RESERVING


def _gauge(view: ReplicaView, quantity: Quantity, text: str, value: float) -> Evidence:
    return view.evidence(
        quantity.value.replace("_", "-"), text, quantity=quantity, strength=1, value=value, threshold=0.0
    )


def _asked(use: AdapterUse) -> Evidence:
    return Evidence(
        id="engine.adapters",
        direction=Direction.FOR,
        strength=1,
        family=Family.ENGINE,
        text=f"{use.wanted} adapters are asked for, {use.slots} fit into a batch",
        value=float(use.wanted),
        unit="adapters",
        threshold=float(use.slots),
        source=use.source,
    )
