"""Room for many kept-alive connections."""

import contextlib

# The usual soft limit is 1,024. Beside the targets: standard streams, files, the recorder, new connections
# while old ones are being closed.
_BESIDE = 200


def raise_descriptor_limit(targets: int) -> str:
    """Raise the soft limit of open files for so many targets; '' when there is room, else what to tell the user."""
    try:
        import resource
    except ImportError:  # not a POSIX system: no such limit
        return ""
    wanted = targets + _BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return ""
    possible = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
        soft = possible
    if soft >= wanted:
        return ""
    return (
        f"{targets} targets want {wanted} open files, but this process may have {soft}: "
        "some targets will fail; raise the limit with ulimit -n"
    )
