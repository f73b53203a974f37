"""What the next step computes of prompts, and whom it lets in."""

import math

from triage.lab.batching.batch import Batch
from triage.lab.batching.clocks import Clock, Clocks
from triage.lab.batching.request import Observer, Phase, Sequence

Chunks = list[tuple[Sequence, int]]


def schedule(batch: Batch, drafted: int, clocks: Clocks, observer: Observer, at: float) -> tuple[Chunks, Clock | None]:
    """Chunks of the next step, and what the head of the queue waits for if it has to.

    Decoding goes first in the token budget (with `drafted` tokens more for each sequence), then prompts under way.
    """
    settings, kv = batch.settings, batch.kv
    if batch.prefilling or (batch.waiting and batch.running < settings.max_num_seqs):
        batch.settle_due()
    budget = settings.max_batched_tokens - len(batch.decoding) * (1 + drafted)
    chunks: Chunks = []
    for sequence in tuple(batch.prefilling):
        if sequence.phase is not Phase.PREFILL:
            continue  # put back for one that came before it
        chunk = min(budget, sequence.to_prefill - sequence.prefilled)
        if chunk <= 0:
            continue
        chunk = batch.room_for(sequence, chunk, at)
        if chunk > 0:
            batch.store(sequence, chunk)
            chunks.append((sequence, chunk))
            budget -= chunk
    while batch.waiting:
        if batch.running >= settings.max_num_seqs:
            return chunks, Clock.WAIT_SEQUENCES
        if budget <= 0:
            return chunks, Clock.WAIT_BUDGET
        sequence = batch.waiting[0]
        # At least one token is computed, or there would be nothing to sample from.
        most = sequence.to_prefill - 1
        hit = min(kv.found(sequence.request.prefix), most - most % settings.block_size) if kv.keeps else 0
        chunk = min(budget, sequence.to_prefill - hit)
        reserved = int(settings.reserve * (sequence.request.max_tokens - sequence.counted))
        held = kv.pin(sequence.request.prefix, hit)
        # Without a reserve the blocks of the first chunk do; what more it needs is asked for when it is due.
        needed = sequence.to_prefill - hit + reserved if settings.reserve else chunk
        promised = batch.promised() if settings.reserve else 0
        if kv.blocks_for(needed) + promised > batch.free:
            kv.unpin(held)
            return chunks, Clock.WAIT_KV
        batch.waiting.popleft()
        sequence.phase = Phase.PREFILL
        sequence.held = held
        sequence.prefilled = sequence.stored = sequence.shared = hit
        if math.isnan(sequence.scheduled):
            sequence.scheduled = at
            sequence.cached = hit
            sequence.at_scheduled = clocks.look()
        batch.prefilling.append(sequence)
        observer.admitted(sequence, at)
        batch.store(sequence, chunk)
        chunks.append((sequence, chunk))
        budget -= chunk
    return chunks, None
