"""Objects of the host's own that an option names: module:name."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from symfonic_pg.memory import MemoryContractError


def named_object(name: str, option: str, member: str) -> Any:
    """What `module:name` stands for; a class, or a function that makes one, is called without arguments.

    The current folder can be imported from. MemoryContractError where there is nothing of that name, or what
    is there has no `member`.
    """
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise _refused(option, "of the form module:name", name)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as exc:
        raise MemoryContractError(f"{option} {name}: {exc}", field=option) from exc
    if callable(found) and (isinstance(found, type) or not hasattr(found, member)):
        try:
            found = found()
        except Exception as exc:  # the host's code, or a package that it needs and that is not there
            raise MemoryContractError(f"{option} {name}: {type(exc).__name__}: {exc}", field=option) from exc
    if not hasattr(found, member):
        raise _refused(option, f"something with `{member}`", name)
    return found


def _refused(option: str, rule: str, name: str) -> MemoryContractError:
    return MemoryContractError(f"{option} must be {rule}, got {name!r}", field=option, rule=rule, got=name)
