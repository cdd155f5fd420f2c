"""Messages that a person took back by rewinding, in transcripts that keep them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from records import assistant, record, tool_result, user, write

from session_memory.sessions.runtimes.detection import runtime_of
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.reader import TranscriptReader

Record = dict[str, Any]


def rewound(path: Path, *records: Record) -> list[int]:
    """The places in `records` of those that were taken back."""
    write(path / "session.jsonl", *records)
    lines = (path / "session.jsonl").read_bytes().splitlines(keepends=True)
    offsets = [sum(map(len, lines[:place])) for place in range(len(lines))]
    descriptor = os.open(path / "session.jsonl", os.O_RDONLY)
    runtime = runtime_of(descriptor)
    assert runtime is not None
    reader = TranscriptReader(runtime, first_line(descriptor))
    found = reader.rewound_offsets(descriptor)
    os.close(descriptor)
    return [place for place, offset in enumerate(offsets) if offset in found]


def after(before: Record, one: Record) -> Record:
    return {**one, "parentUuid": before["uuid"]}


def test_a_prompt_is_taken_back_with_all_that_followed_it_and_also_a_cancelled_one(tmp_path):
    first, answer = user("use a list"), assistant("list used")
    note = record("system", subtype="turn_duration")
    wrong = user("delete the table"), assistant("deleted"), user("the backup too"), assistant("ok")
    instead = [after(answer, user("keep the table")), assistant("kept")]
    assert rewound(tmp_path, first, answer, note, *wrong, *instead) == [3, 4, 5, 6]
    cancelled = user("keep the table"), after(answer, user("rename the table")), assistant("done")
    assert rewound(tmp_path, first, answer, *wrong, *instead[:1], *cancelled) == [2, 3, 4, 5, 6, 7]


def test_what_goes_on_otherwise_is_not_taken_back(tmp_path):
    first, answer = user("look at both files"), assistant(("Read", {"file_path": "a"}))
    second = assistant(("Read", {"file_path": "b"}))
    parallel = [first, answer, tool_result(), after(answer, second), tool_result(), user("go on")]
    assert rewound(tmp_path, *parallel, assistant("done")) == []
    fork = [first, answer, user("one terminal"), after(answer, user("another terminal"))]
    assert rewound(tmp_path, *fork, after(fork[2], assistant("of the first"))) == []
    boundary = record("system", subtype="compact_boundary", logicalParentUuid=answer["uuid"])
    compacted = [first, answer, user("then this"), after(answer, boundary)]
    assert rewound(tmp_path, *compacted, user("go on"), assistant("done")) == []
    begun_again = [user("this alone"), {**user("and this"), "parentUuid": "lost"}]
    assert rewound(tmp_path, first, answer, *begun_again) == []
