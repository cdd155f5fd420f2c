"""One question to Claude through claude-agent-sdk: a request without tools and a JSON answer.

It has a cost and a deadline. The runtime that the SDK starts sees none of the user's settings, runs
no hooks, and leaves no session behind."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....common.text.sanitize import shortened
from ....sessions.settings.homes import ENV_GUARD
from ....sessions.settings.sections import SummarySettings
from ...strategy import StrategyError, UnavailableError, Usage

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions, Message, ResultMessage

# the runtime adds to a request: a description of the environment, and the answer's tool
OVERHEAD_TOKENS = 3000
ANSWER_TOOL = "StructuredOutput"
PROBLEM_CHARACTERS = 200
_TEMPORARY = (408, 409, 429)  # client errors worth a retry
_TOO_LARGE = 413


class Claude:
    """A model to ask, by the settings `own`.

    `directory` is an empty working directory for its runtime, '' for a temporary one."""

    def __init__(self, settings: SummarySettings) -> None:
        self.directory = ""
        self._own = settings

    def cost(self, tokens: int) -> Usage:
        """Return the highest cost of a request with this many tokens of content."""
        return Usage(tokens + OVERHEAD_TOKENS, self._own.max_output_tokens, model=self._own.model)

    def ask(
        self, system: str, prompt: str, schema: Mapping[str, Any], report: Callable[[Usage], None]
    ) -> Any:
        """Send one request and return the JSON value of the answer, None if there is none.

        Calls `report` with the usage, unless that is unknown. Raises StrategyError."""
        try:
            import claude_agent_sdk  # noqa: F401 (it takes over a second)
        except ImportError as error:
            from ....sessions.settings.program import how_to_add

            report(Usage())
            raise UnavailableError(
                "claude-agent-sdk is not installed", how_to_add("sdk")
            ) from error
        if self.directory:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            return asyncio.run(self._ask(system, prompt, schema, self.directory, report))
        with tempfile.TemporaryDirectory(
            prefix="session-memory-", ignore_cleanup_errors=True
        ) as directory:
            return asyncio.run(self._ask(system, prompt, schema, directory, report))

    async def _ask(
        self,
        system: str,
        prompt: str,
        schema: Mapping[str, Any],
        directory: str,
        report: Callable[[Usage], None],
    ) -> Any:
        from claude_agent_sdk import ClaudeSDKError, CLINotFoundError, ResultMessage, query

        messages: list[Message] = []
        errors: list[str] = []
        options = self._options(system, schema, directory)
        options.stderr = errors.append

        async def listen() -> None:
            async for message in query(prompt=prompt, options=options):
                messages.append(message)

        problem: Exception | None = None
        try:
            await asyncio.wait_for(listen(), self._own.timeout_seconds)
        except CLINotFoundError as error:
            report(Usage())
            hint = "install Claude Code, or claude-agent-sdk, whose wheel includes it"
            raise UnavailableError("Claude Code was not found", hint) from error
        except (asyncio.TimeoutError, ClaudeSDKError) as error:
            problem = error
        result = next(
            (message for message in reversed(messages) if isinstance(message, ResultMessage)), None
        )
        usage = _usage(result, self._own.model)
        if usage:
            report(usage)
        self._check(result, problem, errors)
        if not usage:
            report(Usage())
        return _answer(messages)

    def _check(
        self, result: ResultMessage | None, problem: Exception | None, errors: list[str]
    ) -> None:
        """Raise StrategyError without an answer: for a `problem`, with the last lines of `errors`."""
        if isinstance(problem, asyncio.TimeoutError):
            raise StrategyError(
                f"no answer within {self._own.timeout_seconds} s", is_temporary=True
            ) from problem
        if result is None:
            said = shortened(
                " ".join(errors[-3:]) or str(problem or "no result"), PROBLEM_CHARACTERS
            )
            raise StrategyError(
                f"Claude Code exited without an answer: {said}", is_temporary=True
            ) from problem
        # The runtime reports its end after one turn as an error, although the answer is there.
        if result.is_error and result.subtype != "error_max_turns":
            raise _refusal(result)

    def _options(
        self, system: str, schema: Mapping[str, Any], directory: str
    ) -> ClaudeAgentOptions:
        from claude_agent_sdk import ClaudeAgentOptions

        environment = {
            ENV_GUARD: "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(self._own.max_output_tokens),
            "CLAUDE_CODE_MAX_RETRIES": "0",  # the queue retries later
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        return ClaudeAgentOptions(
            model=self._own.model,
            system_prompt=system,
            tools=[],
            max_turns=1,
            cwd=directory,
            env=environment,
            output_format={"type": "json_schema", "schema": dict(schema)},
            setting_sources=[],
            settings=json.dumps({"disableAllHooks": True}),
            strict_mcp_config=True,
            extra_args={"no-session-persistence": None},
        )


def _usage(result: ResultMessage | None, model: str) -> Usage | None:
    """Return the reported usage; None before the report."""
    reported = result.usage if result else None
    if result is None or not isinstance(reported, dict):
        return None
    models = list(result.model_usage or {})
    return Usage(
        _count(reported, "input_tokens") + _count(reported, "cache_creation_input_tokens"),
        _count(reported, "output_tokens"),
        _count(reported, "cache_read_input_tokens"),
        models[0] if len(models) == 1 else model,
    )


def _answer(messages: Sequence[Message]) -> Any:
    """Return the JSON object of an answer, else the one in its text, or None.

    In the text it may be in a code fence."""
    from claude_agent_sdk import AssistantMessage, TextBlock, ToolUseBlock

    blocks = [
        block
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
    ]
    given = [
        block.input
        for block in blocks
        if isinstance(block, ToolUseBlock) and block.name == ANSWER_TOOL
    ]
    if given:
        return given[-1]
    text = "\n".join([block.text for block in blocks if isinstance(block, TextBlock)]).strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].partition("\n")[2].strip()
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _refusal(result: ResultMessage) -> StrategyError:
    """Return the error for an answer that reports one."""
    status = result.api_error_status
    said = shortened(result.result or "; ".join(result.errors or []), PROBLEM_CHARACTERS)
    message = f"Claude did not answer: {said or result.subtype}"
    if status == _TOO_LARGE or (status == 400 and "too long" in said.lower()):
        return StrategyError(message, "lower memories: summary: max_input_tokens in config.yaml")
    is_refused = status is not None and 400 <= status < 500 and status not in _TEMPORARY
    if is_refused or "/login" in said:  # the key, the model or the account, not the conversation
        hint = (
            "check the key in ANTHROPIC_API_KEY, or log in with `claude`, and the model in "
            "config.yaml"
        )
        return UnavailableError(f"Claude refused the call: {said}", hint)
    return StrategyError(message, is_temporary=True)


def _count(reported: Mapping[str, Any], key: str) -> int:
    value = reported.get(key)
    return value if isinstance(value, int) else 0
