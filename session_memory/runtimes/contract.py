"""What each runtime offers: the types of the four modules in its folder. Only a type checker reads this."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from ..transcripts.edits import Edit
from ..transcripts.entries import Entry, Reply, Session, ToolUse
from ..transcripts.usage import ModelUsage
from .settings_hooks import Hook

# Of transcripts, or single ones where a runtime has no folder for a project; each with the name of its worktree, '' for
# that at hand.
Folders = Sequence[tuple[str, str]]
Title = tuple[int, str] | tuple[int, str, str, bytes]
ToolResult = tuple[str, bool, object]  # the id of the call, whether it went wrong, a string or blocks with text


class Branch(Protocol):
    """What of a transcript counts, where not every record does or tells all of itself: as of a tree of records, whose
    live branch is found by reading it from its end."""

    is_of_subagent: bool
    """Whether none of it counts, since it is a sub-agent's."""

    of_session: str
    """The id of the session that the sub-agent belongs to, where nothing but this tells it; else ''."""

    def holds(self, line: bytes) -> bool:
        """Whether what `line` says counts. To be asked of every line, from the last to the first."""

    def note(self, record: dict[str, Any]) -> None:
        """Takes from a record that is no entry what it says of those behind it. To be given all of them, in order."""

    def complete(self, entry: Entry) -> None:
        """Adds to an entry what the transcript says once for many of them. Read backward, that may follow later."""


class RuntimeRecords(Protocol):
    """What the lines of a transcript mean."""

    def may_matter(self, line: bytes, with_tools: bool = ...) -> bool:
        """False only for a line that surely holds no entry, title or compaction: it need not be decoded.

        Without tools (they count if nothing is said) entries that have no text do not count either."""

    def branch(self, first_line: bytes) -> Branch | None:
        """The live branch of the transcript that begins with this line; None where every record counts as it is."""

    def entry(self, record: dict[str, Any], offset: int) -> Entry | None:
        """The entry that a record at byte `offset` holds, if it is a user's or the assistant's."""

    TITLE_MARKS: tuple[bytes, ...]
    """Bytes of which each line with a title has one, and few others do; none if no line ever has a title."""

    def title(self, record: dict[str, Any]) -> Title | None:
        """Return the title that the record is, with its rank: the user's own ranks highest. Behind them may stand whose
        it is: the id of the session, and bytes that have to be in its transcript, each empty if the record does not
        say."""

    def is_compaction(self, record: dict[str, Any]) -> bool:
        """Whether the record marks where the runtime compacted the conversation."""

    def may_bring_results(self, line: bytes) -> bool:
        """False only for a line that surely brings no result of a tool call."""

    def results_in(self, line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> list[ToolResult] | None:
        """The results of tool calls in a line that is recognised as holding nothing else; None for any other line.

        `decode` gives the values in some JSON, and how many of them could not be read: no more than is needed is
        decoded."""

    def results(self, record: dict[str, Any]) -> list[ToolResult]:
        """The results of tool calls that the record brings."""

    def may_show_told(self, line: bytes) -> bool:
        """False only for a line that surely says nothing of what a hook told."""

    def told(self, record: dict[str, Any]) -> tuple[str, ...] | None:
        """The texts that hooks gave to the agent, where the record shows them; none of them where it shows that a hook
        failed which a prompt had started; None for any other record."""

    def may_link(self, line: bytes) -> bool:
        """False only for a line that surely holds no record of a conversation."""

    def link(self, record: dict[str, Any]) -> tuple[str, str, bool] | None:
        """The id of a record of the conversation, that of the record which it goes on from ('' for none), and whether
        it is a message, of the user's side or the model's, whatever that holds; None for any other record."""

    def time(self, record: dict[str, Any]) -> float | None:
        """When the record was written, in seconds since the epoch; None where it does not say."""

    def written(self, record: dict[str, Any], call_id: str) -> str | None:
        """What a call in the record wrote as the whole of a file; None for any other call."""

    def edits(self, record: dict[str, Any], call_id: str) -> list[Edit]:
        """What a call in the record took out of a file and put in, as pairs of texts; [] for any other call."""

    def of_sub_agent(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record of a sub-agent's as one of a session's, which counts. Where both stand in one transcript, an empty
        one for what the session's own agent said and did."""

    def prompt_id(self, record: dict[str, Any]) -> str:
        """The id that whoever sent a prompt gave it, where the record is one; else ''."""

    def reply(self, record: dict[str, Any]) -> Reply | None:
        """What the record holds of a message of the model; None for any other record."""

    def may_bring_usage(self, line: bytes) -> bool:
        """False only for a line that surely says nothing of what an answer took."""

    def usage(self, record: dict[str, Any]) -> ModelUsage | None:
        """What an answer of a model took, where the record says it; None for any other record."""

    def recognises(self, line: bytes) -> bool:
        """Whether a line (perhaps cut off) at the beginning of a transcript shows that it is this runtime's."""


class RuntimeFiles(Protocol):
    """Which sessions there are, and where their transcripts lie."""

    SESSIONS_FOLDER: str
    """The folder in an agent home's memory directory that names its sessions."""

    USUAL_DIR: str
    """The runtime's own directory as it lies in a user's home."""

    CONFIG_VARIABLE: str
    """The variable of the environment that names another directory than that."""

    DEEPEST: int
    """How deep transcripts lie in `transcripts_dir`: 2 for `<project>/<session>.jsonl`."""

    HAS_PROJECT_FOLDERS: bool
    """Whether transcripts lie in a folder for the directory that their session was started in."""

    PROGRAM: str
    """A word in the command line of the runtime's processes."""

    OWN_ID_VARIABLE: str
    """The variable in which an agent's commands find the id of its session."""

    AGENT_VARIABLES: tuple[str, ...]
    """Variables of which at least one is set in whatever an agent starts, and none in a terminal of its user's."""

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """The runtime's own directory, by the environment."""

    def transcripts_dir(self, config_dir: str) -> str:
        """The directory that holds a folder of transcripts for each project, or all transcripts."""

    def copies_dir(self, config_dir: str) -> str:
        """Where copies of transcripts lie that the runtime has compressed or put away, with the paths that they had
        below `transcripts_dir`; '' where it does neither."""

    def refresh(self, config_dir: str, everything: bool = ...) -> None:
        """Brings the mirrors that lie there up to date, where the runtime keeps no transcripts, and the copies of
        compressed ones: as far as a prompt has time for, or `everything`. To be called before they are listed. Never
        fails: what cannot be read now is read the next time."""

    def project_dir(self, config_dir: str, cwd: str) -> str:
        """The directory for the transcripts of sessions that are started in `cwd`."""

    def folders_below(self, config_dir: str, directory: str) -> list[str]:
        """The folders that may hold the transcripts of sessions that were started in `directory` or below it. Their
        names do not tell for certain: `/srv/app-old` may be named as `/srv/app/old`. Without folders for projects, the
        youngest transcripts of all."""

    def listed_dirs(self, config_dir: str) -> list[str]:
        """The directories whose listings change as soon as `folders_below` has something else to say."""

    def sessions_in(self, folder: str, is_elsewhere: bool = ..., worktree: str = ...) -> list[Session]:
        """The sessions whose transcripts lie in `folder`."""

    def sub_agents(self, path: str) -> list[str]:
        """The transcripts of the sub-agents of the session whose transcript lies at `path`: those that lie beside it,
        or that one, where what they did stands there too."""

    def session_names(self, sessions_dir: str) -> list[str]:
        """The names of the sessions of an agent home, in no particular order."""

    def other_sessions(
        self, sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ...
    ) -> list[Session]:
        """The sessions of an agent home, or, where `sessions_dir` is '', those of the project or of `all`.

        A project is the folder that the own transcript lies in, and `folders`. The session at hand may be among the
        sessions."""

    def named_sessions(self, sessions_dir: str, config_dir: str, root: str) -> list[Session]:
        """The named sessions of the agent home `root`, wherever their transcripts lie."""

    def project_sessions(
        self, config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ...
    ) -> list[Session]:
        """The sessions of the project of the session `own_id`, or of `directory`, or of `all` projects. A project is
        one folder, and `folders`."""

    def live_session_id(self, config_dir: str, pid: int) -> str:
        """The id of the session that is open in the runtime's process `pid`; '' where nothing tells."""

    def live_processes(self, config_dir: str) -> list[tuple[int, str]]:
        """The runtime's processes that are noted in `config_dir`, running or not: the id of each, and its start time as
        proc(5) has it ('' where that is not noted)."""

    def place_of(self, file: str) -> str:
        """Where a transcript lies below `transcripts_dir` that is called `file`, wherever it was moved or copied to; ''
        where the name does not tell."""

    def session_id_of(self, path: str) -> str:
        """The id of the session whose transcript lies at `path`."""

    def given_name(self, path: str) -> str:
        """The name that the user gave the session whose transcript lies at `path`, where that stands elsewhere; else
        ''."""


class RuntimeHooks(Protocol):
    """What an event says that the runtime hands to a hook, and how it is answered."""

    PROMPT_EVENT: str
    """What the event of a prompt is called."""

    START_EVENT: str
    """What the event is called that a session starts with; '' where none is answered."""

    TOOL_EVENT: str
    """What the event of a tool call is called, before it is run."""

    SHOWS_WHAT_WAS_TOLD: bool
    """Whether its transcripts show what a hook told the agent (RECORDS.told)."""

    def keeps_transcript(self, event: Mapping[str, Any], environ: Mapping[str, str]) -> bool | None:
        """Whether the session has a transcript as soon as a prompt was answered; None where that is not known."""

    def process(self, event: Mapping[str, Any], environ: Mapping[str, str]) -> str:
        """What names the process that the session runs in, by the event and the environment of the hook; '' where
        neither tells."""

    def is_own(self, event: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        """Whether an event comes from this runtime, and not from another that takes its plugins or runs the hooks in
        its settings; by the event and the environment of the hook."""

    def prompt_id(self, event: Mapping[str, Any]) -> str:
        """What tells the prompt of an event from every other, whichever of our hooks it starts; a prompt in the middle
        of a turn may have that of the turn. '' where nothing does."""

    def start_dir(self, event: Mapping[str, Any], environ: Mapping[str, str]) -> str:
        """The directory from which upwards an agent home is looked for."""

    def project_start(self, event: Mapping[str, Any], environ: Mapping[str, str]) -> str:
        """The directory that the session was started in, which says of what project it is."""

    def config_dir(self, event: Mapping[str, Any], environ: Mapping[str, str]) -> str:
        """The runtime's own directory, which is the home where there is no agent home."""

    def own_path(self, event: Mapping[str, Any], start: str, config_dir: str) -> str:
        """Where the transcript of the session at hand, which was started in `start`, lies or will lie."""

    def own_name(self, event: Mapping[str, Any], sessions_dir: str, sessions: Iterable[Session]) -> str:
        """The name of the session at hand in an agent home, whose `sessions` are given; '' if it has none."""

    def is_from_a_person(self, prompt: str) -> bool:
        """Whether a prompt was typed, and not put in by the runtime."""

    def tool_calls(self, event: Mapping[str, Any]) -> tuple[ToolUse, ...]:
        """The tool call that is about to be run, with the file or command as its argument, if it may change files; one
        for each file of a patch."""

    def sub_agent(self, event: Mapping[str, Any]) -> str:
        """Which of the session's sub-agents makes the call; '' where it is the session's own."""

    def can_ask(self, event: Mapping[str, Any], environ: Mapping[str, str]) -> bool:
        """Whether there is somebody who can be asked whether a tool may run."""

    def held_output(self, reason: str, text: str) -> dict[str, Any]:
        """What a hook prints so that the runtime asks its user, for this reason, whether the tool may run; it tells the
        agent `text`, unless that is ''."""

    def context_output(self, text: str, event: str = ...) -> dict[str, Any]:
        """What a hook prints (or a callback returns) so that the runtime tells the agent `text`.

        `event` is the one that is answered, by default a prompt."""

    def notice_output(self, text: str) -> dict[str, Any]:
        """What a hook prints so that the runtime shows `text` to its user."""


class RuntimeInstall(Protocol):
    """What of ours goes where in the runtime's settings, and what its user types."""

    TITLE: str
    """What people call the runtime."""

    HOME_FOLDER: str
    """The folder in an agent's or a project's directory that holds the runtime's settings for it."""

    SETTINGS_FILE: str
    """The file in the runtime's directory, or in HOME_FOLDER, that hooks are put in; '' if it reads none there."""

    COMMAND: str
    """The command that starts it, by which an install finds it where it was never used; '' where other programs have
    the same name."""

    SKILLS_FOLDER: str
    """The folder beside the settings file that holds skills; '' where it also looks in the `.agents/skills` that
    several runtimes share, and needs none of its own."""

    AFTER_INSTALL: str
    """What its user has to do after an install, beside beginning sessions anew; '' for nothing."""

    MANAGED_SETTINGS: Mapping[str, str]
    """Where an administrator's settings lie, by `sys.platform`; empty if there are none."""

    LOCAL_SETTINGS_FILE: str
    """The file beside SETTINGS_FILE that has one user's own settings of a project."""

    HOOKS_ARE_OFF: str
    """The key of settings that, if true, keeps every hook from running."""

    ONLY_MANAGED_HOOKS: str
    """The key of an administrator's settings that, if true, keeps all other hooks from running."""

    PLUGIN_ROOT: str
    """What stands for a plugin's directory in the commands of hooks and skills; '' where nothing does."""

    FAIL_OPEN: str
    """What ends the commands of hooks, so that a prompt goes on whatever becomes of them; '' where nothing has to."""

    COMMAND_RULE: str
    """The permission rule that lets a shell command run without asking, whatever follows it: a format with `command`;
    '' where the runtime asks nothing."""

    READ_RULE: str
    """The permission rule that lets all in a directory be read: a format with `directory`."""

    TOOL_RULE: str
    """The permission rule that lets a tool of an MCP server be called: a format with `server` and `tool`."""

    RENAME: str
    """What a user types to name the session: a format with `name`."""

    CLEAR: str
    """What a user types to begin a new session."""

    RESUME: str
    """What a user types in a terminal to go on with an earlier session: a format with `id`."""

    def plugin_data_dirs(self, environ: Mapping[str, str], plugin: str) -> list[str]:
        """The directories that the runtime keeps for the data of a plugin of this name, if it has any."""

    def settings_dir(self, environ: Mapping[str, str]) -> str:
        """The directory of a user's settings of the runtime, which an install goes into: mostly its own directory."""

    def plugins_named(self, settings_dir: str, plugin: str) -> list[str]:
        """The plugins of this name that are switched on in a directory of settings, each as its user calls it."""

    def wanted_hooks(self, declared: str, python: str, app: str) -> list[Hook]:
        """The hooks for the settings that `declared` (the text of hooks.json) lists, to be run by `python` from the
        directory `app`."""

    def wanted_files(self, declared: str, python: str, app: str) -> dict[str, str]:
        """The files of ours that the runtime is to find below its directory of settings, such as an extension: the text
        of each, by its path there. The arguments are those of `wanted_hooks`."""

    def untrusted_hooks(self, settings_dir: str) -> list[str]:
        """The events whose hooks in SETTINGS_FILE the runtime does not run, since its user has not trusted them yet."""

    def prompt_event(self, session_id: str, transcript_path: str, cwd: str, prompt: str) -> dict[str, Any]:
        """The event that a prompt hook reads from its stdin."""

    def hook_variables(self, session_id: str, start: str) -> dict[str, str]:
        """What the runtime adds to a hook's environment in a session that was started in `start`."""
