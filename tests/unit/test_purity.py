"""The vocabulary imports the standard library and nothing else."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import symfonic_pg.memory

ROOT = Path(symfonic_pg.memory.__file__).parents[2]

BLOCKED = """
import sys

class OnlyTheStandardLibrary:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {"symfonic_pg"}:
            raise ModuleNotFoundError(f"{name} is not in the standard library")

sys.meta_path.insert(0, OnlyTheStandardLibrary())
sys.path.insert(0, sys.argv[1])
import importlib
for name in sys.argv[2:]:
    importlib.import_module(name)
foreign = {name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names
print(sorted(foreign - {"__main__", "symfonic_pg"}))
print(sorted(name for name in sys.modules if name.startswith("symfonic_pg.") and ".memory" not in name))
"""


def _imported(*names):
    # -S and -I: no site-packages, no .pth file of an editable install, nothing from the environment.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-W", "error", "-c", BLOCKED, str(ROOT), *names],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_vocabulary_needs_no_third_party_package():
    assert _imported("symfonic_pg.memory") == ["[]", "[]"]


def test_neither_does_any_of_its_modules():
    modules = pkgutil.iter_modules(symfonic_pg.memory.__path__, "symfonic_pg.memory.")
    assert _imported(*(module.name for module in modules)) == ["[]", "[]"]


def test_the_block_blocks():
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, str(ROOT), "numpy"], capture_output=True, text=True, check=False
    )
    assert "numpy is not in the standard library" in done.stderr


def test_the_curated_names_are_there_and_come_from_their_homes():
    for name in symfonic_pg.memory.__all__:
        assert hasattr(symfonic_pg.memory, name)
    assert len(set(symfonic_pg.memory.__all__)) == len(symfonic_pg.memory.__all__)
    homes = {
        "relevance": "RelevanceSignals SIGNAL_NAMES RelevanceWeights DEFAULT_WEIGHTS ScopeBlend "
        "ScopeBlendMode cue_overlap words",
        "sources": "Candidate CandidateSource LexicalCandidateSource",
        "errors": "SymfonicError MemoryContractError MemoryUnavailable SchemaMismatch",
        "ports": "MemoryRetrievalPort",
        "retrieval": "RelevanceSignals ScopeBlend cue_overlap Candidate MemoryContractError "
        "MemoryRetrievalPort RetrievalCoordinator RetrievalPolicy RETRIEVABLE_LAYERS CoordinatedRetrieval "
        "RetrievalResult RetrievedMemory NO_RECORD",
    }
    for home, names in homes.items():
        module = import_module(f"symfonic_pg.memory.{home}")
        for name in names.split():
            assert getattr(module, name) is getattr(symfonic_pg.memory, name)
