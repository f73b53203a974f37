"""Where the files that ship beside the code lie, and a user's own over them.

A wheel carries `runbooks/` and `probes/` inside the package (hatch `force-include`); in a checkout
they are top-level folders next to it, where people edit them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from triage.domain.errors import ConfigError

Folder = Literal["runbooks", "probes"]

_PACKAGE = Path(__file__).resolve().parent


def shipped(folder: Folder, package: Path = _PACKAGE) -> Path:
    """The folder as it ships. package: the directory of the `triage` package.

    Raises ConfigError when neither the wheel's place nor the checkout's has it.
    """
    inside = package / folder
    if inside.is_dir():
        return inside
    beside = package.parent / folder
    # site-packages may hold a `runbooks` of somebody else: only a checkout has the project file beside it.
    if beside.is_dir() and (package.parent / "pyproject.toml").is_file():
        return beside
    raise ConfigError(
        f"no {folder}", f"neither {inside} nor {beside} is there", "the installation is incomplete: install it again"
    )


def directories(folder: Folder, own: Iterable[Path] = (), package: Path = _PACKAGE) -> tuple[Path, ...]:
    """A user's own directories, then the shipped one: what comes first wins.

    Raises ConfigError when one of the user's is not a directory: a misspelt overlay must not go unnoticed.
    """
    mine = tuple(own)
    for directory in mine:
        if not directory.is_dir():
            raise ConfigError(f"no {folder} here", f"{directory} is not a directory")
    return (*mine, shipped(folder, package))


def files(directories: Iterable[Path], suffix: str) -> Mapping[str, tuple[Path, ...]]:
    """Name without suffix → the files of that name, the winning one first; names in order."""
    found: dict[str, list[Path]] = {}
    for directory in directories:
        for path in sorted(directory.glob(f"*{suffix}")):
            if path.is_file() and not path.name.startswith("."):
                found.setdefault(path.name.removesuffix(suffix), []).append(path)
    return {name: tuple(found[name]) for name in sorted(found)}
