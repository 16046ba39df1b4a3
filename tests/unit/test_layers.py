"""Each floor stands on those below it alone, and the ground floor on the standard library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# What a module may need beyond the standard library: the dependency that it is about.
ABOUT = {
    "symfonic_pg.postgres.executors.asyncpg": {"asyncpg"},
    "symfonic_pg.postgres.executors.psycopg": {"psycopg", "psycopg_pool"},
    "symfonic_pg.postgres.executors.sqlalchemy": {"sqlalchemy"},
    "symfonic_pg.postgres.executors.blocking": {"psycopg", "sqlalchemy"},
    "symfonic_pg.postgres.tables": {"pgvector", "sqlalchemy"},
    "symfonic_pg.testing.plugin": {"pytest"},
    "symfonic_pg.testing.strategies": {"hypothesis"},
    "symfonic_pg.cli": {"typer", "rich"},
    "symfonic_pg.contrib.alembic": {"alembic", "sqlalchemy"},
    "symfonic_pg.contrib.django": {"django", "asgiref", "psycopg"},
    "symfonic_pg.contrib.fastapi": {"fastapi"},
}

# Imports every module of the package where no third-party package is to be found, and says what each missed.
IMPORT_ALL = """
import importlib, json, pkgutil, sys
sys.path[:0] = [sys.argv[1]]
missing = {}
def names(package, prefix):
    for found in pkgutil.iter_modules([package], prefix):
        if found.name.endswith(".__main__"):
            continue
        yield found.name
        if found.ispkg:
            yield from names(f"{package}/{found.name.rpartition('.')[2]}", found.name + ".")
for name in ["symfonic_pg", *names(sys.argv[1] + "/symfonic_pg", "symfonic_pg.")]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as exc:
        missing[name] = exc.name.split(".")[0]
    else:
        missing[name] = None
print(json.dumps(missing))
"""


def test_the_floors_hold() -> None:
    # In a process of its own: the linter switches off every logger of the one that it runs in.
    check = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    ran = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_modules_need_only_what_they_are_about() -> None:
    # -S: without site-packages; -I: without anything that the environment adds.
    command = [sys.executable, "-I", "-S", "-B", "-c", IMPORT_ALL, str(ROOT)]
    printed = subprocess.check_output(command, text=True)
    missing = json.loads(printed)
    assert {name for name, package in missing.items() if package is None} >= {
        "symfonic_pg",
        "symfonic_pg.memory",
        "symfonic_pg.memory.retrieval",
        "symfonic_pg.postgres.statements",
    }
    unexpected = {
        name: package
        for name, package in missing.items()
        if package and not any(name.startswith(about) and package in ABOUT[about] for about in ABOUT)
    }
    assert unexpected == {}
