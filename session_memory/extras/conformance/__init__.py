"""The conformance suite for runtimes, over a folder of fixtures that tells one story in the records
of each.

A test file takes the classes of `transcripts` and `runtimes`, and gives them the runtime:

    from session_memory.extras.conformance.fixture import Fixture, fixture_of
    from session_memory.extras.conformance.runtimes import *
    from session_memory.extras.conformance.transcripts import *

    @pytest.fixture
    def fixture(tmp_path, monkeypatch):
        return fixture_of(MyRuntime(), Path(__file__).parent / "my-runtime", tmp_path, monkeypatch)

The files in the folder are `conversation.jsonl`, `fork.jsonl` (a fork of it after its first turn),
`names.index` (the names that users gave, if they are not in the transcripts; it lies at
`names_file` in the runtime's directory), `torn.jsonl` (two records on one line, one that was cut
off, the last without a line feed), and a sub-agent's transcript if the runtime writes one;
`subagent` names it, or the conversation if that has it too. `expected.json` says what is its own:
ids, names of tools, events, and whether a fork copies."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.runtimes", f"{__name__}.transcripts")
