"""Options that several commands share, as dataclasses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import typer

# A command's work; the number it returns is the exit code, None is 0.
Command = Callable[..., Coroutine[Any, Any, int | None]]


def spread(command: Command) -> Callable[..., None]:
    """The plain function that typer registers for an async command.

    A parameter whose type is a dataclass stands for one option for each of its fields, which carry typer's
    annotations; the command gets them back as that dataclass.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{part.name: given.pop(part.name) for part in fields(group)})
        code = asyncio.run(command(**given))
        if code:
            raise typer.Exit(code)

    parameters = [
        part
        for name, parameter in signature(command).parameters.items()
        for part in (
            _options(groups[name])
            if name in groups
            else [parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)]
        )
    ]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {part.name: part.annotation for part in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _options(group: Any) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for part in fields(group):
        default = Parameter.empty if part.default is MISSING else part.default
        yield Parameter(part.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[part.name])
