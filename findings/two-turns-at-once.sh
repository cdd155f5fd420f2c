#!/usr/bin/env bash
# Two processes have the same session of an agent open. While the model answers a prompt in process A, process B takes a whole turn.
# Guess: at the end the session has all four messages, in some order, or one of the two turns is refused.
# Seen: agno 3.1.10 and openai-agents 0.24.0 have all four. With strands-agents 1.62.0 the answer in A replaces the prompt of B, so A's
# prompt has two answers: each process counts the messages itself, and the file of a message is named after its number. With its
# SnapshotSessionManager the whole turn of B is gone. Neither reports an error.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check strands-agents==1.62.0 agno==3.1.10 'sqlalchemy[asyncio]==2.1.9' \
    openai-agents==0.24.0
cat >turn.py <<'PY'
"""turn.py LIBRARY A|B|read: take a turn in the session, or print its messages."""

import asyncio
import subprocess
import sys

LIBRARY, WHO = sys.argv[1:]


def answer():
    """Return the model's answer; in A, process B takes its turn first."""
    if WHO == "A":
        subprocess.run([sys.executable, __file__, LIBRARY, "B"], check=True)
    return f"answer {WHO}"


def strands():
    from strands import Agent
    from strands.models import Model
    from strands.session.file_session_manager import FileSessionManager
    from strands.session.snapshot_session_manager import SnapshotSessionManager
    from strands.storage.local_file_storage import LocalFileStorage

    class Fake(Model):
        def update_config(self, **config): ...

        def get_config(self):
            return {}

        def structured_output(self, *arguments, **options): ...

        async def stream(self, *arguments, **options):
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockDelta": {"delta": {"text": answer()}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    if LIBRARY == "strands":
        sessions = FileSessionManager(session_id="s", storage_dir="messages")
    else:
        sessions = SnapshotSessionManager(session_id="s", storage=LocalFileStorage("snapshots"))
    agent = Agent(model=Fake(), agent_id="a", session_manager=sessions, callback_handler=None)
    if WHO != "read":
        agent(f"prompt {WHO}")
    return [message["content"][0]["text"] for message in agent.messages]


def agno():
    from agno.agent import Agent
    from agno.db.sqlite import SqliteDb
    from agno.models.base import Model
    from agno.models.response import ModelResponse

    class Fake(Model):
        def invoke(self, *arguments, **options):
            return ModelResponse(role="assistant", content=answer())

        ainvoke = invoke_stream = ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke

    agent = Agent(model=Fake(id="fake"), db=SqliteDb(db_file="agno.db"), session_id="s", add_history_to_context=True, telemetry=False)
    if WHO != "read":
        agent.run(f"prompt {WHO}")
    return [message.content for message in agent.get_session(session_id="s").get_messages()]


async def openai():
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    class Fake(Model):
        async def get_response(self, *arguments, **options):
            text = ResponseOutputText(type="output_text", text=answer(), annotations=[])
            message = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *arguments, **options): ...

    session = SQLiteSession("s", "openai.db")
    if WHO != "read":
        await Runner.run(Agent(name="a", model=Fake()), f"prompt {WHO}", session=session, run_config=RunConfig(tracing_disabled=True))
    return [item["content"] if item["role"] == "user" else item["content"][0]["text"] for item in await session.get_items()]


messages = {"strands": strands, "snapshots": strands, "agno": agno, "openai": openai}[LIBRARY]()
messages = asyncio.run(messages) if asyncio.iscoroutine(messages) else messages
if WHO == "read":
    print(f"{LIBRARY}: {', '.join(messages)}")
PY
for library in strands snapshots agno openai; do
    env/bin/python turn.py "$library" A
    env/bin/python turn.py "$library" read
done | tee seen
diff seen - <<'END'
strands: prompt A, answer A, answer B
snapshots: prompt A, answer A
agno: prompt A, answer A, prompt B, answer B
openai: prompt A, prompt B, answer B, answer A
END
