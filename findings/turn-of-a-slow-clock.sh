#!/usr/bin/env bash
# Two machines go on with one thread of LangGraph in one database of checkpoints. The clock of the second is a minute slow.
# Guess: the thread goes on from the turn that was written last.
# Seen (langgraph 1.2.24, langgraph-checkpoint-sqlite 3.1.2): the second machine answers with the whole conversation, but its turn is
# lost to the thread: the latest checkpoint is the one with the largest id, and ids begin with the time of the writing clock.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check langgraph==1.2.24 langgraph-checkpoint-sqlite==3.1.2
cat >machine.py <<'PY'
import operator
import sys
import time
from typing import Annotated, TypedDict

prompt, slow = sys.argv[1], int(sys.argv[2])
real = time.time_ns
time.time_ns = lambda: real() - slow * 1_000_000_000

from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402
from langgraph.graph import START, StateGraph  # noqa: E402


class State(TypedDict):
    messages: Annotated[list, operator.add]


graph = StateGraph(State)
graph.add_node("answer", lambda state: {"messages": [f"answer to {state['messages'][-1]}"]})
graph.add_edge(START, "answer")
thread = {"configurable": {"thread_id": "1"}}
with SqliteSaver.from_conn_string("threads.db") as saver:
    said = graph.compile(checkpointer=saver).invoke({"messages": [prompt]}, thread)["messages"]
print(f"clock {-slow} s, prompt {prompt}: {', '.join(said)}")
PY
{ env/bin/python machine.py first 0; env/bin/python machine.py second 60; env/bin/python machine.py third 0; } | tee seen
diff seen - <<'END'
clock 0 s, prompt first: first, answer to first
clock -60 s, prompt second: first, answer to first, second, answer to second
clock 0 s, prompt third: first, answer to first, third, answer to third
END
