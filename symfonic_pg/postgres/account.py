"""The account under which a private server runs: PostgreSQL refuses to serve as root."""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symfonic_pg.memory.errors import SymfonicError

_CANDIDATES = ("postgres", "nobody")
_SEARCH = stat.S_IXOTH
_READ = stat.S_IROTH


@dataclass(frozen=True)
class ServiceAccount:
    """An unprivileged account of this machine that root lends to the server."""

    uid: int
    gid: int

    def identity(self) -> dict[str, Any]:
        """The arguments with which subprocess becomes this account."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def give(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid)


def service_account(data: Path, binaries: Path) -> ServiceAccount | None:
    """The account for the server whose data are, or will be, at `data`; None where no other one is needed.

    Existing data keep their owner. As root, folders on the way to the data and to the programs are made
    searchable (not listable) for others where they are not, since the account could not reach them.
    """
    if os.geteuid() != 0:
        return None
    account = _owner(data) or _first_candidate()
    _open_way(data.parent)
    _open_programs(binaries, account)
    return account


def _owner(data: Path) -> ServiceAccount | None:
    try:
        status = data.stat()
    except FileNotFoundError:
        return None
    return ServiceAccount(status.st_uid, status.st_gid) if status.st_uid != 0 else None


def _first_candidate() -> ServiceAccount:
    import pwd

    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServiceAccount(entry.pw_uid, entry.pw_gid)
    raise SymfonicError(
        "PostgreSQL cannot run as root, and this machine has none of the accounts "
        + ", ".join(_CANDIDATES)
        + ": add one, or run as another user"
    )


def _open_way(directory: Path) -> None:
    for folder in (directory, *directory.parents):
        mode = folder.stat().st_mode
        if not mode & _SEARCH:
            folder.chmod(mode | _SEARCH)


def _open_programs(binaries: Path, account: ServiceAccount) -> None:
    command = [str(binaries / "postgres"), "--version"]
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **account.identity())
    except (PermissionError, subprocess.CalledProcessError):
        _open_way(binaries.parent)
        # An installation made under a strict umask: its files, and the libraries beside it.
        wheel = binaries.parent.parent
        for tree in (binaries.parent, wheel.with_name(f"{wheel.name}.libs")):
            for path in (tree, *tree.rglob("*")):
                if path.exists() and not path.is_symlink():
                    mode = path.stat().st_mode
                    searchable = path.is_dir() or mode & stat.S_IXUSR
                    path.chmod(mode | _READ | (_SEARCH if searchable else 0))
