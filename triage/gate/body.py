"""An answer's body within bounds, also when it is compressed."""

import zlib

# gzip container only: that is all that is asked for.
_GZIP = 16 + zlib.MAX_WBITS
_MAGIC = b"\x1f\x8b"
# Members of one gzip file. Real servers send one; 800,000 empty ones fit into 16 MiB and cost minutes.
_MOST_MEMBERS = 16


class TooLargeError(Exception):
    """More came than may. The text says how much may."""


class EncodingError(Exception):
    """The body's encoding is not what was asked for, or broken."""


class CutError(Exception):
    """The compressed body ended too early."""


class Body:
    """Decodes chunk by chunk and never holds, or makes, more than `limit` bytes (a bomb stops at the bound)."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = limit
        self._made = 0
        self._taken = 0
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise EncodingError(f"content encoding {encoding[:40]!r} was not asked for")
        self._gzip = zlib.decompressobj(_GZIP) if "gzip" in encoding else None
        self._members = 1

    def feed(self, chunk: bytes) -> bytes:
        """The decoded part. TooLargeError beyond the limit, EncodingError for what is not gzip."""
        self._taken += len(chunk)
        if self._taken > self._limit:
            raise TooLargeError(f"more than {_size(self._limit)}")
        if self._gzip is None:
            return chunk
        parts = []
        while chunk:
            try:
                part = self._gzip.decompress(chunk, self._limit - self._made + 1)
            except zlib.error as error:
                raise EncodingError("it says gzip, but is not") from error
            self._made += len(part)
            if self._made > self._limit:
                raise TooLargeError(f"more than {_size(self._limit)} when decompressed")
            parts.append(part)
            chunk = b""
            if self._gzip.eof and self._gzip.unused_data.startswith(_MAGIC):
                # A gzip file may have several members, one after the other.
                chunk = self._gzip.unused_data
                self._gzip = zlib.decompressobj(_GZIP)
                self._members += 1
                if self._members > _MOST_MEMBERS:
                    raise EncodingError(f"gzip in more than {_MOST_MEMBERS} parts")
        return b"".join(parts)

    def finish(self) -> None:
        """CutError when the compressed stream has no end."""
        if self._gzip is not None and self._taken and not self._gzip.eof:
            raise CutError("the compressed answer ends too early")


def _size(limit: int) -> str:
    return f"{limit // 1024**2} MiB" if limit >= 1024**2 else f"{limit // 1024} KiB"
