"""Paged KV cache of one engine: blocks that requests own, and blocks kept because a prompt may come again."""

from collections import OrderedDict
from collections.abc import Sequence as Parts

from triage.lab.batching.request import Segment


class _Entry:
    """Tokens that lie in the cache under one key, how many requests need them now, and how many blocks of them."""

    __slots__ = ("blocks", "pinned", "tokens", "users")

    def __init__(self) -> None:
        self.tokens = 0
        self.blocks = 0
        self.users = 0
        self.pinned = 0


class KvCache:
    """Counts of blocks. total = owned + kept + free; what nobody uses of `kept` is evicted when room is needed.

    A key stands for a text behind other text: an entry is found only while those in front of it are whole.
    Least recently used goes first, from its end, as blocks are freed in reverse order.
    """

    def __init__(self, total: int, block_size: int, keeps: bool = True) -> None:
        self.total = total
        self.block_size = block_size
        self.keeps = keeps
        self.owned = 0
        self.kept = 0
        self.pinned = 0  # blocks of entries that a request uses now
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    @property
    def used(self) -> int:
        """Blocks that cannot be given to somebody else now."""
        return self.owned + self.pinned

    @property
    def available(self) -> int:
        return self.total - self.owned - self.pinned

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def found(self, prefix: Parts[Segment]) -> int:
        """Tokens of the prefix that are there, in whole blocks; the chain ends at the first part that is not whole."""
        hit = 0
        for segment in prefix:
            entry = self._entries.get(segment.key)
            if entry is None:
                break
            there = min(entry.tokens, segment.tokens)
            hit += there
            if segment.tokens - there >= self.block_size:
                break  # whole blocks of it are missing; a rest below one is computed with what follows
        return hit - hit % self.block_size

    def pin(self, prefix: Parts[Segment], hit: int) -> list[str]:
        """Keep so many tokens of the prefix; the keys to hand back to `unpin`."""
        held = []
        for segment in prefix:
            if hit <= 0:
                break
            self.pin_one(segment.key, self.blocks_for(min(hit, segment.tokens)))
            held.append(segment.key)
            hit -= segment.tokens
        return held

    def pin_one(self, key: str, blocks: int) -> None:
        """So many blocks of the entry are needed; more of it may go."""
        entry = self._entries[key]
        needed = max(min(blocks, entry.blocks), entry.pinned)
        self.pinned += needed - entry.pinned
        entry.pinned = needed
        entry.users += 1
        self._entries.move_to_end(key)

    def unpin(self, held: Parts[str]) -> None:
        for key in held:
            entry = self._entries[key]
            entry.users -= 1
            if not entry.users:
                self.pinned -= entry.pinned
                entry.pinned = 0

    def take(self, blocks: int) -> None:
        """Own so many more blocks. The caller has asked `available`; kept ones that nobody uses make room."""
        self.owned += blocks
        short = self.owned + self.kept - self.total
        if short > 0:
            self._evict(short)

    def give_back(self, blocks: int) -> None:
        self.owned -= blocks

    def store(self, key: str, tokens: int, own_blocks: int) -> None:
        """So many tokens lie under the key from now on; the blocks for what is new there were owned until now."""
        self.owned -= own_blocks
        if not self.keeps or not key:
            return
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        entry.tokens = max(entry.tokens, tokens)
        more = min(self.blocks_for(entry.tokens) - entry.blocks, own_blocks)
        if more > 0:
            entry.blocks += more
            self.kept += more  # who uses the entry already does not need what is new in it
        else:
            entry.tokens = min(entry.tokens, entry.blocks * self.block_size)
        self._entries.move_to_end(key)

    def forget(self) -> None:
        """Everything that nobody uses is lost: a restart, or a flush."""
        self._evict(self.kept)

    def _evict(self, blocks: int) -> None:
        gone = []
        for key, entry in self._entries.items():
            if blocks <= 0:
                break
            lost = min(entry.blocks - entry.pinned, blocks)
            if not lost:
                continue
            entry.blocks -= lost
            entry.tokens = min(entry.tokens, entry.blocks * self.block_size)
            self.kept -= lost
            blocks -= lost
            if not entry.blocks and not entry.users:
                gone.append(key)
        for key in gone:
            del self._entries[key]
