"""One question to Claude through claude-agent-sdk: no tools, one request, an answer in JSON, what it cost, a deadline.

The runtime that the SDK starts for it sees none of the user's settings, runs no hooks, and leaves no session behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ....text.format import one_line, shorten
from ....text.sanitize import for_people
from ...strategy import StrategyError, UnavailableError, Usage

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions, Message, ResultMessage

OVERHEAD_TOKENS = 3000  # what the runtime adds to a request: its own words about the environment, and the tool
ANSWER_TOOL = "StructuredOutput"
PROBLEM_CHARACTERS = 200
_PASSING = (408, 409, 429)  # of the client's errors, those that another attempt may not meet
_TOO_LARGE = 413


class ModelAnswer(NamedTuple):
    """What came back: the JSON value in it (None if there was none), the text, and what the API says it cost."""

    value: Any
    text: str
    usage: Usage


class FailedCallError(Exception):
    """A call that brought no answer: `error` is what to raise, `usage` what was reported of it (None if nothing)."""

    def __init__(self, error: StrategyError, usage: Usage | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.usage = usage


class Claude:
    """A model to be asked. `directory` is where its runtime is started, which is to be empty; '' for a temporary one.
    `guard` goes into its environment, so that our hooks stay silent in it."""

    def __init__(
        self, model: str, *, output_tokens: int, timeout_seconds: float, guard: Mapping[str, str], directory: str = ""
    ) -> None:
        self.model = model
        self.output_tokens = output_tokens
        self.directory = directory
        self._timeout = timeout_seconds
        self._guard = guard

    def ask(self, system: str, prompt: str, schema: Mapping[str, Any]) -> ModelAnswer:
        """The answer to one request. Raises FailedCallError."""
        try:
            import claude_agent_sdk  # noqa: F401 (it takes over a second)
        except ImportError as error:
            unavailable = UnavailableError("claude-agent-sdk is not installed", "pip install claude-agent-sdk")
            raise FailedCallError(unavailable, Usage()) from error
        if self.directory:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            return asyncio.run(self._ask(system, prompt, schema, self.directory))
        with tempfile.TemporaryDirectory(prefix="session-memory-") as directory:
            return asyncio.run(self._ask(system, prompt, schema, directory))

    async def _ask(self, system: str, prompt: str, schema: Mapping[str, Any], directory: str) -> ModelAnswer:
        from claude_agent_sdk import ClaudeSDKError, CLINotFoundError

        heard = _Heard(self.model)
        errors: list[str] = []
        options = self._options(system, schema, directory)
        options.stderr = errors.append
        try:
            await asyncio.wait_for(_listen(heard, prompt, options), self._timeout)
        except asyncio.TimeoutError as error:
            late = StrategyError(f"no answer within {self._timeout:g} s", is_temporary=True)
            raise FailedCallError(late, heard.usage) from error
        except CLINotFoundError as error:
            hint = "install Claude Code, or claude-agent-sdk, whose wheel carries it"
            raise FailedCallError(UnavailableError("Claude Code is not there to be started", hint), Usage()) from error
        except ClaudeSDKError as error:
            if heard.result is None:
                raise FailedCallError(_broken(error, errors), heard.usage) from error
        if heard.result is None:
            raise FailedCallError(_broken(None, errors), heard.usage)
        # A runtime that stops after its one turn calls that an error; the answer is there all the same.
        if heard.result.is_error and heard.result.subtype != "error_max_turns":
            raise FailedCallError(_refusal(heard.result), heard.usage)
        return heard.answer()

    def _options(self, system: str, schema: Mapping[str, Any], directory: str) -> ClaudeAgentOptions:
        from claude_agent_sdk import ClaudeAgentOptions

        environment = {
            **self._guard,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(self.output_tokens),
            "CLAUDE_CODE_MAX_RETRIES": "0",  # the queue tries again, later
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        return ClaudeAgentOptions(
            model=self.model, system_prompt=system, tools=[], max_turns=1, cwd=directory, env=environment,
            output_format={"type": "json_schema", "schema": dict(schema)},
            setting_sources=[], settings=json.dumps({"disableAllHooks": True}), strict_mcp_config=True,
            extra_args={"no-session-persistence": None},
        )  # fmt: skip


class _Heard:
    """What has come of an answer so far."""

    def __init__(self, model: str) -> None:
        self.result: ResultMessage | None = None
        self._model = model
        self._texts: list[str] = []
        self._value: Any = None

    def take(self, message: Message) -> None:
        from claude_agent_sdk import AssistantMessage, ResultMessage, TextBlock, ToolUseBlock

        if isinstance(message, ResultMessage):
            self.result = message
        elif isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    self._texts.append(block.text)
                elif isinstance(block, ToolUseBlock) and block.name == ANSWER_TOOL:
                    self._value = block.input

    @property
    def usage(self) -> Usage | None:
        """What the runtime reported; None as long as it has not."""
        reported = self.result.usage if self.result else None
        if not isinstance(reported, dict):
            return None
        models = list((self.result.model_usage if self.result else None) or {})
        return Usage(
            _count(reported, "input_tokens") + _count(reported, "cache_creation_input_tokens"),
            _count(reported, "output_tokens"),
            _count(reported, "cache_read_input_tokens"),
            models[0] if len(models) == 1 else self._model,
        )

    def answer(self) -> ModelAnswer:
        text = "\n".join(self._texts)
        value = self._value if self._value is not None else _json_in(text)
        return ModelAnswer(value, text, self.usage or Usage(model=self._model))


async def _listen(heard: _Heard, prompt: str, options: ClaudeAgentOptions) -> None:
    from claude_agent_sdk import query

    async for message in query(prompt=prompt, options=options):
        heard.take(message)


def _json_in(text: str) -> Any:
    """The JSON object that a text consists of, perhaps fenced as code; None if it does not."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```"):
        stripped = stripped[3:-3].partition("\n")[2].strip()
    try:
        value = json.loads(stripped)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _refusal(result: ResultMessage) -> StrategyError:
    """What to raise for an answer that is an error."""
    status = result.api_error_status
    said = shorten(one_line(for_people(result.result or "; ".join(result.errors or []))), PROBLEM_CHARACTERS)
    message = f"Claude did not answer: {said or result.subtype}"
    if status == _TOO_LARGE or (status == 400 and "too long" in said.lower()):
        return StrategyError(message, "lower memories: summary: max_input_tokens in config.yaml")
    is_refused = status is not None and 400 <= status < 500 and status not in _PASSING
    if is_refused or "/login" in said:  # a key, a model, an account without credit: no conversation's fault
        hint = "check the key in ANTHROPIC_API_KEY, or log in with `claude`, and the model in config.yaml"
        return UnavailableError(f"Claude cannot be asked: {said}", hint)
    return StrategyError(message, is_temporary=True)


def _broken(error: Exception | None, errors: list[str]) -> StrategyError:
    said = shorten(one_line(for_people(" ".join(errors[-3:]) or str(error or "no result"))), PROBLEM_CHARACTERS)
    return StrategyError(f"Claude Code ended without an answer: {said}", is_temporary=True)


def _count(reported: Mapping[str, Any], key: str) -> int:
    value = reported.get(key)
    return value if isinstance(value, int) else 0
