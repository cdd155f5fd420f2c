"""The section `host` of a host's config.yaml."""

from __future__ import annotations

from collections.abc import Sequence

from ...sessions.settings.compiled import Kind, Section, key


class HostSettings(Section):
    SECTION = "host"
    ABOUT = "A host with several groups of agents: `session-memory host run`."

    model: str | None = key(
        Kind.MODEL,
        None,
        "The model, by its name in Claude Code; without it, the runtime's own choice.",
        sample="claude-sonnet-5",
    )
    groups_at_once: int = key(
        Kind.WHOLE, 5, "How many groups may use a model at the same time; the others wait.", 1, 100
    )
    idle_seconds: float = key(
        Kind.NUMBER,
        60,
        "How many seconds an idle agent stays ready for the next message.",
        0,
        24 * 3600,
    )
    allowed_tools: Sequence[str] = key(
        Kind.TEXTS,
        [],
        "Tools that agents may use without asking, besides the files of their own group.\nBash, "
        "or Read without a path, also reaches other groups.",
        sample="[WebSearch]",
    )
    attempts: int = key(
        Kind.WHOLE, 5, "How many times a message is tried before the chat gets an error.", 1, 20
    )
    sandbox: str = key(
        Kind.ANY_OF,
        "none",
        "With bubblewrap, an agent sees only its own group, no matter what it runs.",
        choices=("none", "bubblewrap"),
        if_wrong="bubblewrap",
        sample="bubblewrap",
    )
    network: str = key(
        Kind.ANY_OF,
        "shared",
        "The network of agents in a sandbox; none also cuts them off from a model API.",
        choices=("shared", "none"),
        if_wrong="none",
    )
    agent_command: Sequence[str] = key(
        Kind.TEXTS,
        [],
        "`{mounts}`, `{env}` and `{cwd}` in it are a group's directories, variables and place.\n"
        "Starts Claude Code, in a container.",
        if_wrong=[""],
        sample='[docker, run, -i, "{mounts}", my-agent, claude]',
    )

    prompts: str = key(
        Kind.ANY_OF,
        "stdin",
        "How agent_command gets prompts: stdin, or files in ipc/input.",
        choices=("stdin", "files"),
    )
    channels: Sequence[str] = key(
        Kind.TEXTS,
        [],
        "The services whose chats the host serves: telegram.",
        sample="[telegram]",
    )
    telegram_api: str = key(
        Kind.URL,
        "https://api.telegram.org",
        "The address of Telegram's Bot API, or of your own Bot API server.",
    )

    @property
    def wall(self) -> str:
        """The wall between an agent and the machine, in a few words."""
        if self.agent_command:
            return "each by agent_command"
        return "without a sandbox" if self.sandbox == "none" else f"each in {self.sandbox}"
