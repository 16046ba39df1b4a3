"""What of a record is embedded."""

import pytest

from symfonic_pg.embedders import BareText, SpeakerAndDate
from symfonic_pg.memory.layers import MemoryLayer
from symfonic_pg.memory.records import MemoryRecord
from symfonic_pg.memory.scope import MemoryScope


def record(**metadata):
    scope = MemoryScope.parse("org:acme")
    return MemoryRecord("r1", scope, MemoryLayer.EPISODIC, "the refund came", metadata=metadata)


def test_the_default_is_the_text_and_has_the_empty_version():
    assert BareText()(record(speaker="Ana")) == "the refund came"
    assert BareText().version == ""


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"speaker": "Ana", "date": "2026-05-04"}, "2026-05-04 Ana: the refund came"),
        ({"speaker": " Ana "}, "Ana: the refund came"),
        ({"date": "2026-05-04", "speaker": ""}, "2026-05-04: the refund came"),
        ({"speaker": 7, "date": None}, "the refund came"),
        ({}, "the refund came"),
    ],
)
def test_speaker_and_date_stand_in_front_where_the_metadata_has_them(metadata, text):
    assert SpeakerAndDate()(record(**metadata)) == text


def test_other_keys_are_another_version():
    other = SpeakerAndDate(speaker="from", date="sent")
    assert other(record(**{"from": "Bo", "sent": "Monday"})) == "Monday Bo: the refund came"
    assert len({BareText().version, SpeakerAndDate().version, other.version}) == 3
