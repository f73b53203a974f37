"""Several gauges of one replica read as one."""

from collections.abc import Sequence

from triage.domain.window import Track


def together(tracks: Sequence[Track | None]) -> Track | None:
    """Their sum; extremes and zeros are bounds, for they need not fall on the same reading. None without any."""
    exported = [track for track in tracks if track is not None]
    if len(exported) < 2:
        return exported[0] if exported else None
    return Track(
        first=sum(track.first for track in exported),
        last=sum(track.last for track in exported),
        low=sum(track.low for track in exported),
        high=sum(track.high for track in exported),
        mean=sum(track.mean for track in exported),
        n=min(track.n for track in exported),
        zeros=min(track.zeros for track in exported),
    )
