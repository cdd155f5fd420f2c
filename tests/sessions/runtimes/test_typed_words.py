"""Every word that a person typed is theirs, wherever a runtime notes it. The cells of the table in
docs/inside/typed-words.md, each by a record in the form that the runtime writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from records import (
    PiSession,
    assistant,
    codex_line,
    copilot_message,
    gemini_message,
    line,
    opencode_part,
    qwen_record,
    record,
    user,
)

from session_memory.sessions.runtimes.records import CALLS, MESSAGES, RESULTS, CallResult
from session_memory.sessions.runtimes.table import all_runtimes
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.reader import TranscriptReader

RUNTIMES = {runtime.name: runtime for runtime in all_runtimes()}
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). "
)
SAID = f"{REFUSED}To tell you how to proceed, the user said:\n"
STOP = f"{REFUSED}STOP what you are doing and wait for the user to tell you how to proceed."
NOTE = "\n\nNote: The user's next message may contain a correction or preference."
CLARIFY = (
    "The user wants to clarify these questions.\n    This means they may have additional information.\n\n"
    '    Questions asked:\n- "Which fence?"\n  Answer: hazel\n  User notes: cut in winter\n- "How high?"\n  '
    "(No answer provided)"
)
QUESTIONS = [{"question": "Which fence?", "header": "Fence", "options": []}]


def skill(name: str, words: str) -> str:
    return (
        f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n"
        f"<command-args>{words}</command-args>"
    )


def built_in(name: str, words: str = "") -> str:
    gap = "\n            "
    return (
        f"<command-name>/{name}</command-name>{gap}<command-message>{name}</command-message>{gap}"
        f"<command-args>{words}</command-args>"
    )


def result(text: str, *, is_error: bool = False, kept: object = None) -> dict[str, object]:
    block = {"type": "tool_result", "content": text, "tool_use_id": "toolu_1"}
    failed = {"is_error": True} if is_error else {}
    return user([{**block, **failed}], toolUseResult=kept if kept is not None else f"Error: {text}")


def answers(kept: dict[str, object]) -> dict[str, object]:
    text = 'Your questions have been answered: "Which fence?"="hazel". You can now continue with these answers in mind.'
    return result(text, kept={"questions": QUESTIONS, **kept})


def channel(text: str, **attributes: str) -> str:
    named = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<channel{named}>\n{text}\n</channel>"


def queued(prompt: str, **fields: object) -> dict[str, object]:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **fields}
    return record("attachment", attachment=attachment)


IDE = "<ide_opened_file>The user opened /w/a.py in the IDE.</ide_opened_file>"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}
INTERRUPTED = "[Request interrupted by user for tool use]"

CLAUDE = {
    "skill": (
        user(skill("plan-work", "make <b>umlauts</b> work")),
        "/plan-work make <b>umlauts</b> work",
    ),
    "skill of a plugin": (user(skill("garden:dig", "the rose bed")), "/garden:dig the rose bed"),
    "skill without words": (user(skill("commit", "")), "/commit"),
    "skill that the model called": (
        user(
            "<command-message>dig</command-message>\n<command-name>dig</command-name>\n<skill-format>true</skill-format>\nBase directory for this skill: /x"
        ),
        "",
    ),
    "body of a skill": (user("Base directory for this skill: /x\n\nDig.", isMeta=True), ""),
    "built-in command": (user(built_in("clear")), ""),
    "built-in command in the other order": (user(skill("clear", "")), ""),
    "setting": (user(built_in("model", "sonnet")), ""),
    "compact with words": (
        user(built_in("compact", "keep the fruit list")),
        "/compact keep the fruit list",
    ),
    "command in a record of the system": (
        record("system", subtype="local_command", content=built_in("btw", "is the gate shut?")),
        "/btw is the gate shut?",
    ),
    "output of a command": (
        record(
            "system",
            subtype="local_command",
            content="<local-command-stdout>Shut.</local-command-stdout>",
        ),
        "",
    ),
    "memory": (user("<user-memory-input>always use tabs</user-memory-input>"), "always use tabs"),
    "answer in a dialog": (
        answers({"answers": {"Which fence?": "hazel, not willow"}}),
        "hazel, not willow",
    ),
    "note beside an answer": (
        answers(
            {
                "answers": {"Which fence?": "hazel"},
                "annotations": {"Which fence?": {"notes": "cut in winter"}},
            }
        ),
        "hazel\n\ncut in winter",
    ),
    "answer by its text alone": (
        result(
            'User has answered your questions: "Which fence?"="hazel", "How "high"?"="two "feet"". You can now continue with the user\'s answers in mind.',
            kept={},
        ),
        'hazel\n\ntwo "feet"',
    ),
    "answer without a choice": (
        result(
            'The user answered: "Which fence?"=(no option selected) notes: any that works. Read the answers carefully — they may request changes.',
            kept={},
        ),
        "any that works",
    ),
    "output that looks like an answer": (
        result('Your questions have been answered: "a"="b"', kept={"stdout": "x", "stderr": ""}),
        "",
    ),
    "reason for a refusal": (
        result(f"{SAID}use the old gate{NOTE}", is_error=True),
        "use the old gate",
    ),
    "reason for a refused plan": (
        result(f"{SAID}plan the hedge first,\nthen the gate", is_error=True),
        "plan the hedge first,\nthen the gate",
    ),
    "refusal without a reason": (result(STOP, is_error=True), ""),
    "dialog left for a talk": (result(SAID + CLARIFY, is_error=True), "hazel\n\ncut in winter"),
    "file that quotes a refusal": (result(f"1\t{SAID}dig", kept={"file": {"filePath": "/x"}}), ""),
    "words beside an approval": (
        user(
            [
                {"type": "tool_result", "content": "ok", "tool_use_id": "toolu_1"},
                {"type": "text", "text": "but keep the moss"},
            ]
        ),
        "but keep the moss",
    ),
    "queued prompt": (queued("and the shed", origin={"kind": "human"}), "and the shed"),
    "queued prompt with an image": (
        queued([{"type": "text", "text": "like this"}, IMAGE]),
        "like this\n\n[image]",
    ),
    "channel": (
        user(
            channel("water the beans", source="telegram", chat_id="1", user="ann"),
            isMeta=True,
            origin={"kind": "channel", "server": "telegram"},
        ),
        "water the beans",
    ),
    "queued message of a channel": (
        {
            **queued(
                channel("and the peas", source="telegram", chat_id="1"),
                origin={"kind": "channel"},
                isMeta=True,
            ),
            "isMeta": True,
        },
        "and the peas",
    ),
    "channel in a record of no kind": (
        user([{"type": "text", "text": channel("and the <b>kale</b>", source="slack", user="U1")}]),
        "and the <b>kale</b>",
    ),
    "event of a channel in a record of no kind": (
        user(channel("build failed", source="webhook")),
        "",
    ),
    "event of a channel": (
        user(channel("build failed", source="webhook", severity="high"), isMeta=True),
        "",
    ),
    "block of an editor in the same text": (user(f"{IDE}\nfix the latch"), "fix the latch"),
    "block of an editor before": (
        user([{"type": "text", "text": IDE}, {"type": "text", "text": "fix the latch"}]),
        "fix the latch",
    ),
    "reminder before": (
        user("<system-reminder>\nUse tools.\n</system-reminder>\nfix it"),
        "fix it",
    ),
    "reminder before a skill": (
        user(
            f"<system-reminder>\nUse tools.\n</system-reminder>\n\n{skill('dig', 'the rose bed')}"
        ),
        "/dig the rose bed",
    ),
    "interrupted before a skill": (
        user(f"{INTERRUPTED}\n{skill('dig', 'the rose bed')}"),
        "/dig the rose bed",
    ),
    "skill with line feeds and a closing tag": (
        user(skill("dig", "the </command-args> tag\n\nand the roses\n")),
        "/dig the </command-args> tag\n\nand the roses",
    ),
    "question about a tag of the CLI": (
        user("<bash-stdout> is empty, why?"),
        "<bash-stdout> is empty, why?",
    ),
    "question about the tag of a command": (
        user("<command-name> is a tag: who writes it?"),
        "<command-name> is a tag: who writes it?",
    ),
    "question about a notification": (
        user("<task-notification> comes twice"),
        "<task-notification> comes twice",
    ),
    "question about a channel": (
        user('<channel source="x"> comes twice'),
        '<channel source="x"> comes twice',
    ),
    "sentence that begins with an element": (
        user("<data_table>a</data_table> is not shown"),
        "<data_table>a</data_table> is not shown",
    ),
    "sentence that begins with an element of two words": (
        user("<my_button>a</my_button> is not shown"),
        "<my_button>a</my_button> is not shown",
    ),
    "block before words between tags": (
        user("<rules>\nBe kind.\n</rules>\n<user_query>fix it</user_query>"),
        "fix it",
    ),
    "block in the line of the words": (user("<ide_selection>a</ide_selection> fix it"), "fix it"),
    "block of an unknown program": (
        user("<workflow_phase>\nplan\n</workflow_phase>\nfix it"),
        "fix it",
    ),
    "interrupted, and then": (
        user([{"type": "text", "text": INTERRUPTED}, {"type": "text", "text": "do the gate"}]),
        "do the gate",
    ),
    "interruption": (user([{"type": "text", "text": INTERRUPTED}]), ""),
    "image with words": (
        user([IMAGE, {"type": "text", "text": "can we mend this?"}]),
        "[image]\n\ncan we mend this?",
    ),
}

ANSWERED = '{"answers":{"fence":{"answers":["hazel","user_note: cut in winter"]}}}'


def codex_model(payload: dict[str, object], *, is_new: bool = False) -> dict[str, object]:
    """What the model saw; new versions number their lines."""
    whole = codex_line("response_item", payload)
    return whole if is_new else {key: whole[key] for key in ("timestamp", "type", "payload")}


def codex_prompt(*texts: str) -> dict[str, object]:
    content = [{"type": "input_text", "text": text} for text in texts]
    return codex_model({"type": "message", "role": "user", "content": content})


def codex_item(text: str) -> dict[str, object]:
    item = {"type": "UserMessage", "id": "01a2-7", "content": [{"type": "text", "text": text}]}
    return codex_line("event_msg", {"type": "item_completed", "turn_id": "t1", "item": item})


def codex_output(output: str, *, is_new: bool = False) -> dict[str, object]:
    return codex_model(
        {"type": "function_call_output", "call_id": "call_1", "output": output}, is_new=is_new
    )


CODEX = {
    "request behind an editor's files": (
        codex_prompt(
            "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nfix the latch"
        ),
        "fix the latch",
    ),
    "environment in a block of its own": (
        codex_prompt("<environment_context>\n  <cwd>/w</cwd>\n</environment_context>", "fix it"),
        "fix it",
    ),
    "plugins that a program recommends": (
        codex_prompt("<recommended_plugins>\n- garden\n</recommended_plugins>\n\nfix the latch"),
        "fix the latch",
    ),
    "plugins alone": (codex_item("<recommended_plugins>\n- garden\n</recommended_plugins>"), ""),
    "skill with words": (codex_item("$dig the rose bed"), "$dig the rose bed"),
    "body of a skill": (codex_prompt("<skill>\n<name>dig</name>\nDig.\n</skill>"), ""),
    "answer in a dialog": (codex_output(ANSWERED), "hazel\n\ncut in winter"),
    "answer in a dialog of new versions": (
        codex_output(ANSWERED, is_new=True),
        "hazel\n\ncut in winter",
    ),
    "output of a command": (codex_output("Exit code: 0\nOutput:\nhazel"), ""),
    "interruption": (codex_prompt("<turn_aborted>\nThe user interrupted.\n</turn_aborted>"), ""),
    "steering": (codex_item("no, the other gate"), "no, the other gate"),
}


def qwen_result(name: str, **response: str) -> dict[str, object]:
    parts = [{"functionResponse": {"id": "call_1", "name": name, "response": response}}]
    return {
        **qwen_record("tool_result", ""),
        "provenance": "tool_result",
        "message": {"role": "user", "parts": parts},
    }


def qwen_command(command: str, **payload: object) -> dict[str, object]:
    said = {
        "phase": "invocation",
        "rawCommand": command,
        "sentToModel": False,
        "hiddenInvocation": False,
        **payload,
    }
    whole = {
        **qwen_record("system", ""),
        "provenance": "system",
        "subtype": "slash_command",
        "systemPayload": said,
    }
    return {key: value for key, value in whole.items() if key != "message"}


QWEN = {
    "skill": (qwen_command("/plan-work make umlauts work"), "/plan-work make umlauts work"),
    "built-in command": (qwen_command("/compress"), ""),
    "setting": (qwen_command("/model coder"), ""),
    "result of a command": (qwen_command("/plan-work make it", phase="result"), ""),
    "prompt made of a command": (
        {**qwen_record("user", "Plan."), "provenance": "slash_command"},
        "",
    ),
    "answer in a dialog": (
        qwen_result(
            "ask_user_question",
            output="User has provided the following answers:\n\n**Fence**: hazel\n**Height**: two feet,\nor three",
        ),
        "hazel\n\ntwo feet,\nor three",
    ),
    "file that looks like an answer": (
        qwen_result("read_file", output="User has provided the following answers:\n\n**A**: b"),
        "",
    ),
    "message typed meanwhile": (
        {**qwen_record("user", "the other gate"), "subtype": "mid_turn_user_message"},
        "the other gate",
    ),
    "text of a hook behind": (
        qwen_record("user", "fix it", systemPayload={"displayText": "fix it", "hookContext": "x"}),
        "fix it",
    ),
    "notification": (
        {
            **qwen_record("user", "<task-notification>x"),
            "provenance": "system",
            "subtype": "notification",
        },
        "",
    ),
}


def copilot_result(**data: object) -> dict[str, object]:
    return {
        **copilot_message("user", ""),
        "type": "tool.execution_complete",
        "data": {"toolCallId": "c1", **data},
    }


def copilot_said(content: str) -> dict[str, object]:
    return copilot_result(success=True, result={"content": content})


COPILOT = {
    "chosen answer": (copilot_said("User selected: hazel"), "hazel"),
    "typed answer": (copilot_said("User responded: hazel, cut in winter"), "hazel, cut in winter"),
    "reason for a refusal": (
        copilot_result(
            success=False,
            error={
                "message": "The user rejected this tool call. User feedback: use the old gate",
                "code": "rejected",
            },
        ),
        "use the old gate",
    ),
    "reason for a refused plan": (
        copilot_said(
            "Plan not approved. User feedback:\n\nplan the hedge first\n\nPlease update the plan based on this feedback and try again."
        ),
        "plan the hedge first",
    ),
    "output of a command": (copilot_said("hazel"), ""),
    "compact with words": (
        {
            **copilot_result(success=True, customInstructions="keep the fruit list"),
            "type": "session.compaction_complete",
        },
        "/compact keep the fruit list",
    ),
    "queued prompt": (copilot_message("user", "and the shed", delivery="queued"), "and the shed"),
    "skill's body": (copilot_message("user", "Dig.", source="skill-dig"), ""),
    "skill with words": (copilot_message("user", "/dig the rose bed"), "/dig the rose bed"),
    "fields of a program": (
        copilot_message("user", "[[ ## user_query ## ]]\nwhy is the gate shut?"),
        "why is the gate shut?",
    ),
    "image with words": (
        copilot_message("user", "mend this", attachments=[{"mimeType": "image/png"}]),
        "mend this\n\n[image]",
    ),
}


def opencode_tool(tool: str, **state: object) -> dict[str, object]:
    data = {"type": "tool", "tool": tool, "callID": "c1", "state": {"input": {}, **state}}
    return {**opencode_part("assistant", ""), "data": data}


OPENCODE = {
    "answer in a dialog": (
        opencode_tool(
            "question",
            status="completed",
            output='User has answered your questions: "Which fence?"="hazel". You can now continue.',
            metadata={"answers": [["hazel", "cut in winter"], ["two feet"]]},
        ),
        "hazel\n\ncut in winter\n\ntwo feet",
    ),
    "reason for a refusal": (
        opencode_tool(
            "bash",
            status="error",
            error="The user rejected permission to use this specific tool call with the following feedback: use the old gate",
        ),
        "use the old gate",
    ),
    "refusal without a reason": (
        opencode_tool(
            "bash",
            status="error",
            error="The user rejected permission to use this specific tool call.",
        ),
        "",
    ),
    "output that looks like an answer": (
        opencode_tool(
            "bash", status="completed", output='User has answered your questions: "a"="b"'
        ),
        "",
    ),
    "quotes of run": (opencode_part("user", '"fix the latch"'), "fix the latch"),
    "block of a program within the quotes": (
        opencode_part("user", '"<system_instruction>Be kind.</system_instruction> fix the latch"'),
        "fix the latch",
    ),
    "text that was put in": (
        opencode_part("user", "", told="The following tool was executed by the user"),
        "",
    ),
}


def gemini_calls(name: str, output: str) -> dict[str, object]:
    response = {"functionResponse": {"id": "c1", "name": name, "response": {"output": output}}}
    call = {"id": "c1", "name": name, "args": {}, "status": "success", "result": [response]}
    return gemini_message("gemini", "", toolCalls=[call])


GEMINI = {
    "answer in a dialog": (
        gemini_calls("ask_user", '{"answers":{"0":"hazel","1":"two feet"}}'),
        "hazel\n\ntwo feet",
    ),
    "reason for a refused plan": (
        gemini_calls(
            "exit_plan_mode",
            "Plan rejected. User feedback: the hedge first\n\nThe plan is stored at: /p.md\nRevise the plan.",
        ),
        "the hedge first",
    ),
    "file that looks like an answer": (gemini_calls("read_file", '{"answers":{"0":"hazel"}}'), ""),
    "hint typed meanwhile": (
        gemini_message(
            "user",
            "User hint:\n<user_input>\nthe other gate\n</user_input>\n\nInternal instruction: Re-evaluate.",
        ),
        "the other gate",
    ),
    "text of a hook behind": (gemini_message("user", "fix it", told="x"), "fix it"),
}

SHELL = "I ran the following shell command:\n```sh\nmake gate\n```\n\nThis produced the following result:\n```\nok\n```"


def pi_record(role: str, text: str, **fields: object) -> dict[str, object]:
    session = PiSession()
    session.message(role, content=[{"type": "text", "text": text}], **fields)
    return session.records[-1]


PI = {
    "skill": (
        pi_record("user", '<skill name="dig" location="/x">\nDig.\n</skill>\n\nthe rose bed'),
        "/skill:dig the rose bed",
    ),
    "file": (pi_record("user", '<file name="/w/a.py">x</file>fix it'), "@/w/a.py fix it"),
    "answer in an extension's dialog": (
        pi_record(
            "toolResult",
            'User has answered your questions: "Which fence?"="hazel". You can now continue with the user\'s answers in mind.',
            toolCallId="c1",
            toolName="ask_user",
        ),
        "hazel",
    ),
    "output that looks like an answer": (
        pi_record(
            "toolResult",
            'User has answered your questions: "a"="b"',
            toolCallId="c1",
            toolName="bash",
        ),
        "",
    ),
    "block of a program": (
        pi_record("user", "<system_instruction>\nBe kind.\n</system_instruction>\n\nfix it"),
        "fix it",
    ),
}

ATIF = {
    "query between tags": (
        {
            "type": "step",
            "id": "1",
            "number": 1,
            "source": "user",
            "message": "<user_info>\nOS\n</user_info>\n<user_query>\nfix the <b>latch</b>\n</user_query>",
        },
        "fix the <b>latch</b>",
    ),
    "system": (
        {"type": "step", "id": "1", "number": 1, "source": "system", "message": "Be kind."},
        "",
    ),
}

CELLS = [
    pytest.param(name, value, words, id=f"{name}: {place}")
    for name, cells in {
        "claude-code": CLAUDE,
        "codex": CODEX,
        "qwen-code": QWEN,
        "copilot": COPILOT,
        "opencode": OPENCODE,
        "gemini": GEMINI,
        "pi": PI,
        "atif": ATIF,
    }.items()
    for place, (value, words) in cells.items()
]


@pytest.mark.parametrize(("name", "value", "words"), CELLS)
def test_the_words_of_a_person_are_theirs_and_no_other_text_is(name, value, words):
    content = line(value)
    meaning = RUNTIMES[name].records
    for wanted in (MESSAGES, MESSAGES | CALLS, MESSAGES | CALLS | RESULTS):
        read = meaning.prefilter(content, wanted)
        events = meaning.events(json.loads(content), 0, wanted) if read else []
        said = [
            event.text
            for event in events
            if isinstance(event, Entry) and event.role == "user" and event.text
        ]
        assert said == ([words] if words else [])
    reader = TranscriptReader(RUNTIMES[name], b"")
    both = [*reader.forward([(0, content)], with_results=True), *reader.backward([(0, content)])]
    said = [
        entry.text
        for entry in both
        if isinstance(entry, Entry) and entry.role == "user" and entry.text
    ]
    assert said == ([words, words] if words else [])


RAN = {
    "claude-code": user("<bash-input>make gate</bash-input>"),
    "codex": codex_prompt(
        "<user_shell_command>\n<command>\nmake gate\n</command>\n<result>\nExit code: 0\n</result>\n</user_shell_command>"
    ),
    "qwen-code": qwen_record("user", SHELL),
    "gemini": gemini_message("user", SHELL),
}


@pytest.mark.parametrize("name", RAN)
def test_a_command_that_the_user_ran_is_their_call_and_no_prompt(name):
    entry = RUNTIMES[name].records.entry(json.loads(line(RAN[name])))
    assert (entry.role, entry.text, [(use.argument, use.kind) for use in entry.tools]) == (
        "user",
        "",
        [("make gate", "command")],
    )


def test_a_command_that_the_user_ran_in_claude_code_has_its_output_as_result():
    ran = RAN["claude-code"]
    printed = user(
        "<bash-stdout>shut</bash-stdout><bash-stderr></bash-stderr>", parentUuid=ran["uuid"]
    )
    content = [(0, line(ran)), (1000, line(printed))]
    events = list(
        TranscriptReader(RUNTIMES["claude-code"], b"").forward(content, with_results=True)
    )
    [entry, outcome] = events
    assert isinstance(outcome, CallResult)
    assert outcome.call_id == entry.tools[0].call_id == ran["uuid"]


def test_an_answer_follows_the_call_that_asked_in_both_directions():
    content = [(0, line(GEMINI["answer in a dialog"][0]))]
    reader = TranscriptReader(RUNTIMES["gemini"], b"")
    forward = [entry.role for entry in reader.forward(content) if isinstance(entry, Entry)]
    assert forward == ["assistant", "user"]
    assert [entry.role for entry in reader.backward(content)] == ["user", "assistant"]


def test_the_name_of_a_teammate_is_that_of_its_session():
    named = {"type": "agent-name", "agentName": "rose-digger", "sessionId": ""}
    reader = TranscriptReader(RUNTIMES["claude-code"], b"")
    list(reader.forward([(0, line(named)), (100, line(assistant("dug")))]))
    assert reader.title == (3, "rose-digger")


def test_every_cell_of_the_page_has_a_record_here():
    """The page has a table with a row for each place; here each runtime has records for the rows
    that it keeps."""
    page = (Path(__file__).resolve().parents[3] / "docs/inside/typed-words.md").read_text()
    head, *rows = [row.split("|") for row in page.splitlines() if row.startswith("| ")]
    assert len(rows) >= 12
    assert {len(row) for row in rows} == {len(head)}
    titles = ",".join(head[2:-1])
    named = [re.sub(r" \(\d+\)", "", title).strip() for title in titles.split(",")]
    assert sorted(named) == sorted(runtime.TITLE for runtime in RUNTIMES.values())
