"""The base classes of runtimes.

A runtime is one object; a subclass states only its differences from these defaults. The class
itself has everything a prompt needs: the places of sessions, how to read a hook's event, and how to
answer it. The meaning of transcript lines (`records`) and the needs of an install (`install`) are
loaded on first use.
"""

from __future__ import annotations

from ...common.system.files import Opened, is_file, names_in, path_text, read_at, user_dir
from ...common.system.json import as_string
from ..transcripts.entries import Session, called

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ...common.system.process_table import ProcessTable
    from ...common.system.processes import NotedProcess
    from ..settings.homes import Home
    from ..transcripts.entries import ToolUse
    from ._evidence import ProcessEvidence, SessionPlace
    from .backup import Backup
    from .install import Install
    from .records import Records

    # Folders of transcripts, or single transcripts if a runtime has no folder for a project. Each
    # has the name of its worktree, '' for the current one.
    Folders = Sequence[tuple[str, str]]
    Event = Mapping[str, Any]


MARK_BYTES = 16 * 1024  # of a transcript, searched for the marks of programs
REFUSED = "\nThe call was not run. It is run if it comes again."  # ends the reason of a refusal


class Runtime:
    """A runtime.

    By default all transcripts are in one place, whatever their project, and are never deleted.
    Sessions in agent homes have no names, and hooks have Claude Code's form."""

    # of a runtime in another package: the INTERFACE in outside.py that it was written for
    INTERFACE = 0
    name: str  # what archives and the store call it
    TITLE: str  # what people call it
    USUAL_DIR: str  # the runtime's own directory, relative to a user's home
    CONFIG_VARIABLE: str  # the environment variable that names a different directory
    TRANSCRIPTS: str  # the folder in that directory with all transcripts
    DEEPEST = 2  # how deep transcripts are in `transcripts_dir`: 2 for `<project>/<session>.jsonl`
    # True if transcripts are in a folder named after the directory where their session started
    HAS_PROJECT_FOLDERS = False
    IS_MIRRORED = False  # whether its transcripts are mirrors, which we write
    # True if old transcripts in these folders may be left out (see transcripts/old_sessions.py):
    # only the runtime itself writes them, and its hooks run with each prompt
    LISTS_RECENT = False
    SESSIONS_FOLDER: str  # the folder in an agent home's memory directory that names its sessions
    PROGRAM: str  # a word in the command line of the runtime's processes
    PROCESS_TITLE = ""  # replaces the whole command line of its processes; '' if they keep that
    PACKAGE = ""  # a folder in the path of its program, if an interpreter runs that; '' if none
    SERVERS: tuple[str, ...] = ()  # its commands that run no session of a terminal
    # words in its command line that go on with the last session of the directory
    CONTINUES: tuple[str, ...] = ("--continue", "-c")
    HELPERS: tuple[str, ...] = ()  # programs that it starts for itself and that stay
    # the variable in which an agent's commands find the id of its session; '' if they have none
    OWN_ID_VARIABLE: str
    # a variable that is set in every process an agent starts, and not in its user's terminal; '' if
    # there is none
    AGENT_VARIABLE: str
    # The variable in which a hook finds the session's start directory; '' if only the event
    # contains it
    PROJECT_VARIABLE = ""
    PROMPT_EVENT = "UserPromptSubmit"  # the event of a prompt; '' if it starts no hooks
    START_EVENT = "SessionStart"  # the event at the start of a session; '' if we answer none
    START_SOURCE = ""  # what begins a session whose first event does not say it
    # whether that is answered as a prompt too, because some sessions have no event of a prompt
    TELLS_AT_START = False
    # The event key, at the start, for a file of variables that the session's commands get: a hook
    # adds OWN_ID_VARIABLE to it. '' if the runtime sets that itself
    VARIABLES_KEY = ""
    CONTEXT_KEY = "additionalContext"  # the key of a hook's output for the text that the agent gets
    TOOL_EVENT = "PreToolUse"  # the event of a tool call, before it is run
    # whether the agent gets a text before a call only as the reason why the call was refused
    REFUSES = False
    SUB_AGENT_EVENT = ""  # the event at a sub-agent's start that we answer; '' if none
    FAILED_EVENT = ""  # the event of a failed tool call; '' if we answer none
    # the events with which a session may begin to wait for its user; () if we answer none
    WAITING_EVENTS: tuple[str, ...] = ()
    # The event key that identifies its prompt, the same for all our hooks; '' if there is none. A
    # prompt in the middle of a turn may have the id of the turn.
    PROMPT_ID_KEY = ""
    # The tools whose calls we answer, each with its kind and with the input key for the call's
    # target
    TOOLS: Mapping[str, tuple[str, str]] = {}
    # Further tools for which we answer only failures, in the same form
    FAILING_TOOLS: Mapping[str, tuple[str, str]] = {}
    # whether the `systemMessage` that a hook prints is shown to the user, and not to the agent
    SHOWS_NOTICES = False
    # bytes in the first records of a session that a program started, not a person
    AUTOMATED_MARKS: tuple[bytes, ...] = ()
    SHOWS_WHAT_WAS_TOLD = True  # whether its transcripts show the text that a hook gave the agent
    # whether a session has files other than its transcript and the folder beside it
    HAS_BACKUP = False
    # The modules in the class's package. A runtime that extends another one names only those that
    # differ, and gets the others from there.
    PARTS: tuple[str, ...] = ("records", "install", "backup", "mirrors")

    if TYPE_CHECKING:
        records: Records  # the meaning of a transcript's lines
        install: Install  # our entries in the runtime's settings, and the commands its user types
        # which files a session has, when the runtime deletes them, and how they are put back
        backup: Backup
    else:

        def __getattr__(self, part):
            if part not in ("records", "install", "backup"):
                raise AttributeError(part)
            loaded = self.load(part)
            setattr(self, part, loaded)
            return loaded

    def load(self, part: str) -> Any:
        """Return `records`, `install` or `backup`.

        By default this is the class of that name in the runtime's package: for a class Codex,
        CodexRecords in `records.py`. If PARTS lacks the part, it is the one of the runtime that
        this one extends. A runtime without any `backup.py` sets HAS_BACKUP to False."""
        if part == "backup" and not self.HAS_BACKUP:
            from .backup import Backup

            return Backup(self)
        part_class = getattr(self.module(part), self._class_with(part).__name__ + part.capitalize())
        return part_class() if part == "records" else part_class(self)

    def module(self, part: str) -> Any:
        """Return the module `part`, from the runtime's package or from one that it extends."""
        return __import__(f"{self._class_with(part).__module__}.{part}", fromlist=[part])

    def _class_with(self, part: str) -> type[Runtime]:
        return next(kind for kind in self._family() if part in kind.PARTS)

    def _family(self) -> list[type[Runtime]]:
        """Return the runtime's class, and the classes of the runtimes that it extends."""
        first, *others = type(self).__mro__
        return [first, *[kind for kind in others if "name" in kind.__dict__]]

    def family(self) -> str:
        """Return the name of the runtime that it extends; its own name if it extends none."""
        first = self._family()[-1]
        return self.name if first is type(self) else first.name

    # Where sessions are stored

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """Return the runtime's own directory, by the environment."""
        return (
            environ.get(self.CONFIG_VARIABLE) or f"{user_dir(environ)}/{self.USUAL_DIR}"
        ).rstrip("/")

    def transcripts_dir(self, config_dir: str) -> str:
        """Return the directory with a folder of transcripts for each project, or all
        transcripts."""
        return f"{config_dir}/{self.TRANSCRIPTS}"

    def copies_dir(self, config_dir: str) -> str:
        """Return the directory with copies of compressed or archived transcripts.

        The copies have the paths that the originals had below `transcripts_dir`. Return '' if the
        runtime neither compresses nor archives."""
        return ""

    def refresh(self, config_dir: str, everything: bool = False) -> None:
        """Update our copies of the sessions, if the runtime needs copies.

        Call it before listing sessions. It does as much as a prompt has time for, or `everything`.
        It never fails: sessions that cannot be read now are read the next time."""

    def look(self, config_dir: str) -> None:
        """Do what `refresh` does for a prompt, but leave copies in UNFINISHED until they are
        read."""
        self.refresh(config_dir)

    def project_dir(self, config_dir: str, cwd: str) -> str:
        """Return the directory for the transcripts of sessions that are started in `cwd`."""
        return self.transcripts_dir(config_dir)

    def is_folder_of(self, folder: str, directory: str) -> bool:
        """Check by its name if `folder` has the transcripts of sessions started in `directory`."""
        return False

    def all_folders(self, config_dir: str) -> Iterable[str]:
        """Return the folders of all projects; without folders, the newest transcripts."""
        raise NotImplementedError

    def folders_below(self, config_dir: str, *directories: str) -> list[str]:
        """Return the folders that may have transcripts of sessions from `directories` or below.

        Their names are ambiguous: `/srv/app-old` and `/srv/app/old` may have the same name."""
        return list(self.all_folders(config_dir))

    def listed_dirs(self, config_dir: str) -> list[str]:
        """Return the directories whose listings change whenever `folders_below` would change."""
        return [self.transcripts_dir(config_dir)]

    def watched_dirs(self, config_dir: str) -> list[str]:
        """Return the directories in or below which a file changes whenever a session does."""
        return [self.transcripts_dir(config_dir)]

    def sessions_in(
        self, folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        """Return the sessions whose transcripts are in `folder`."""
        raise NotImplementedError

    def sessions_called(
        self, files: Iterable[str], folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        """Return the sessions with these `files` in `folder`; leave out other files.

        Only runtimes with LISTS_RECENT need it."""
        raise NotImplementedError

    def sub_agents(self, path: str) -> list[str]:
        """Return the transcripts of the sub-agents of the session with the transcript at `path`.

        These are the files beside it, or `path` itself if it also contains the sub-agents'
        actions."""
        return self.sub_agents_beside(path)

    def sub_agents_beside(self, path: str) -> list[str]:
        """Return the transcripts of the same sub-agents that are separate files."""
        return []

    def is_of_workflow(self, path: str) -> bool:
        """Check if a workflow started the sub-agent whose transcript is at `path`."""
        return False

    def folder_beside(self, path: str) -> str:
        """Return the folder with the other files of the session whose transcript is at `path`."""
        return path.removesuffix(".jsonl")

    def session_names(self, sessions_dir: str) -> list[str]:
        """Return the names of the sessions of an agent home, in no particular order."""
        return []

    def named_sessions(self, sessions_dir: str, config_dir: str, root: str) -> list[Session]:
        """Return the named sessions of the agent home `root`, wherever their transcripts are."""
        return []

    def other_sessions(
        self, sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        """Return the sessions of an agent home; without `sessions_dir`, of the project or `all`.

        A project is the folder of the session's own transcript, and `folders`. The result may
        include the session itself."""
        return [] if sessions_dir else self._sessions(config_dir, "", scope, folders)

    def project_sessions(
        self, config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        """Return the sessions of the project of session `own_id` or of `directory`, or of `all`.

        A project is one folder, and `folders`."""
        return self._sessions(config_dir, "", scope, folders)

    @property
    def called(self) -> tuple[str, ...]:
        """Return the words by which a person may name the runtime, in small letters."""
        return self.name, self.TITLE.casefold(), self.PROGRAM

    def session_id_of(self, path: str) -> str:
        """Return the id of the session whose transcript is at `path`."""
        return path_text(path.rpartition("/")[2].removesuffix(".jsonl"))

    def is_automated(self, path: str) -> bool:
        """Check if a program started the session of a transcript, not a person. Raises OSError."""
        if not self.AUTOMATED_MARKS:
            return False
        with Opened(path) as descriptor:
            head = read_at(descriptor, 0, MARK_BYTES)
        return any([mark in head for mark in self.AUTOMATED_MARKS])

    def given_name(self, path: str) -> str:
        """Return the user's name for a session, if it is not in the transcript at `path`."""
        return ""

    def call_began(self, lines: Iterable[bytes]) -> float | None:
        """Return when a call was made, if its record is written only at its end.

        The time is in seconds since 1970. The first of `lines` has the call's record; the others
        are the earlier lines, the last first. Return None if a record is written when its call is
        made."""
        return None

    def place_of(self, file: str) -> str:
        """Return the path below `transcripts_dir` of a transcript that is called `file`.

        The result does not depend on where the file was moved or copied. Return '' if the name does
        not tell."""
        return ""

    def exported_lines(self, content: bytes) -> Sequence[dict[str, Any] | bytes]:
        """Return a session in the runtime's own or export format as lines of its mirror.

        This is only for a runtime whose sessions are read in another form. Return [] if `content`
        is not a session."""
        return []

    def live_session_id(self, config_dir: str, pid: int) -> str:
        """Return the id of the session that is open in the runtime's process `pid`;

        '' if unknown."""
        return ""

    def live_processes(self, config_dir: str) -> list[NotedProcess]:
        """Return the runtime's processes that are noted in `config_dir`, running or not."""
        return []

    def has_left(self, path: str) -> bool:
        """Return whether the process of the session with the transcript at `path` has ended.

        The runtime's notes decide; without such notes, return False."""
        return False

    def evidence(
        self, config_dir: str, candidates: Sequence[SessionPlace], table: ProcessTable
    ) -> Mapping[str, ProcessEvidence]:
        """Return the evidence of the processes of sessions, by the paths of their transcripts.

        By default, a process in a session's directory is its own."""
        from ._evidence import evidence_by_directory

        return evidence_by_directory(self, candidates, table)

    def own_session_id(self, environ: Mapping[str, str]) -> str:
        """Return the id by which we know the session whose agent started a process.

        `environ` is the process's environment. Return '' if no agent of the runtime started it."""
        return environ.get(self.OWN_ID_VARIABLE, "")

    def has_started(self, environ: Mapping[str, str]) -> bool:
        """Return whether an agent of the runtime started the process with this environment."""
        return bool(environ.get(self.OWN_ID_VARIABLE) or environ.get(self.AGENT_VARIABLE))

    def asks_for_approval(self, words: Sequence[str]) -> bool:
        """Return whether it asks its user before it runs some tools.

        `words` are the command line of the process."""
        return True

    def _sessions(
        self, config_dir: str, own_dir: str, scope: str, folders: Folders
    ) -> list[Session]:
        """Return the sessions in `own_dir` and `folders`, and with the scope `all` all others."""
        from ..transcripts.projects import sessions_of_project

        return sessions_of_project(
            own_dir, folders, scope, self.all_folders(config_dir), self.sessions_in
        )

    # The contents of an event that the runtime hands to a hook

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Return whether an event comes from this runtime, by the event and the hook's environment.

        Another runtime may use its plugins or run the hooks in its settings."""
        raise NotImplementedError

    def keeps_transcript(self, event: Event, environ: Mapping[str, str]) -> bool | None:
        """Return whether the session has a transcript after the first answer; None if unknown."""
        return None

    def process(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return a name for the session's process.

        Return '' if neither event nor environment has one, or if the runtime continues after an
        aborted prompt too."""
        return ""

    def prompt(self, event: Event) -> str:
        """Return the text of an event's prompt."""
        return str(event.get("prompt") or "")

    def prompt_id(self, event: Event) -> str:
        """Return the id of an event's prompt (see PROMPT_ID_KEY)."""
        return as_string(event.get(self.PROMPT_ID_KEY))

    def forked_from(self, event: Event, path: str) -> str:
        """Return the session that a starting one, with its transcript at `path`, continues as a
        fork; '' if none is known."""
        return ""

    def start_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the directory from which the search for an agent home goes upwards."""
        return environ.get(self.PROJECT_VARIABLE) or as_string(event.get("cwd"))

    def project_start(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the directory in which the session started; it determines the session's
        project."""
        return self.start_dir(event, environ)

    def own_event(self, event: dict[str, object], environ: Mapping[str, str]) -> dict[str, object]:
        """Return the event with the id by which we know its session."""
        return event

    def event_config_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the runtime's own directory according to an event: the one with the folder
        TRANSCRIPTS."""
        above, mark, _ = as_string(event.get("transcript_path")).rpartition(f"/{self.TRANSCRIPTS}/")
        return above if mark else self.config_dir(environ)

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str:
        """Return the path of the transcript of a session started in `cwd`, even before it
        exists."""
        return f"{self.project_dir(config_dir, cwd)}/{session_id}.jsonl"

    def own_path(self, event: Event, start: str, config_dir: str) -> str:
        """Return the path of this session's transcript, existing or not; it started in `start`."""
        named = as_string(event.get("transcript_path"))
        return named or self.transcript_path(config_dir, start, as_string(event.get("session_id")))

    def own_name(self, event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
        """Return this session's name in an agent home with these `sessions`; '' if it has none."""
        return ""

    def is_from_a_person(self, prompt: str) -> bool:
        """Tell whether a prompt was typed, and not put in by the runtime."""
        return True

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        """Return the tool call that is about to run, if it may change files.

        Its argument is the file or command; a patch gives one call for each file."""
        return called(event, self.TOOLS)

    def replaced_texts(self, event: Event) -> list[str]:
        """Return the texts that an upcoming edit replaces; none if the event does not contain
        them."""
        return []

    def sub_agent(self, event: Event) -> str:
        """Return the id of the sub-agent that makes the call; '' if the session itself makes it."""
        return as_string(event.get("agent_id"))

    def tasks(self, event: Event) -> list[str]:
        """Return the task of the sub-agent that starts with an event.

        If several start at once and nothing tells them apart, return all their tasks."""
        return []

    def missed_file(self, event: Event) -> str:
        """Return the path that a failed call tried to read or edit; '' if it did something else."""
        calls = called(event, {**self.TOOLS, **self.FAILING_TOOLS})
        return calls[0].argument if calls and calls[0].kind != "command" else ""

    def can_ask(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Tell whether the user can be asked whether a tool may run."""
        return False

    # How an event is answered

    def held_output(self, reason: str, text: str) -> dict[str, Any]:
        """Return the hook output that makes the runtime ask its user if the tool may run.

        The user sees `reason`; the agent gets `text`, unless it is ''. By default nobody is asked.
        """
        return self.context_output(text, self.TOOL_EVENT) if text else {}

    def context_output(self, text: str, event: str = "") -> dict[str, Any]:
        """Return the hook output (or the callback's result) that gives the agent `text`.

        `event` is the answered event, by default a prompt."""
        answer = {"hookEventName": event or self.PROMPT_EVENT}
        if self.REFUSES and event == self.TOOL_EVENT:
            answer |= {"permissionDecision": "deny", "permissionDecisionReason": text + REFUSED}
        else:
            answer[self.CONTEXT_KEY] = text
        return {"hookSpecificOutput": answer}

    def notice_output(self, text: str) -> dict[str, Any]:
        """Return the hook output that shows `text` to the user; by default the agent passes it on.

        If only the user sees it, it is merged with `context_output` into one object."""
        return {"systemMessage": text} if self.SHOWS_NOTICES else self.context_output(text)


class ProjectFolders(Runtime):
    """A runtime with a folder of transcripts for each directory that sessions start in.

    The path is `<transcripts_dir>/<folder><INNER>/<session>.jsonl`."""

    HAS_PROJECT_FOLDERS = True

    INNER = ""  # the path between a project's folder and the transcripts
    SUB_AGENTS = ""  # the path between `<session>` and the transcripts of its sub-agents
    # prefixes of files that are not transcripts of sessions
    NO_SESSIONS: tuple[str, ...] = (".",)

    def folder_name(self, directory: str) -> str:
        """Return the name of the folder for sessions that are started in `directory`."""
        raise NotImplementedError

    def name_inside(self, name: str) -> str:
        """Return the common prefix of folder names for directories inside folder `name`'s."""
        return name + "-"

    def project_dir(self, config_dir: str, cwd: str) -> str:
        return f"{self.transcripts_dir(config_dir)}/{self.folder_name(cwd)}{self.INNER}"

    def is_folder_of(self, folder: str, directory: str) -> bool:
        return folder.endswith(f"/{self.folder_name(directory)}{self.INNER}")

    def all_folders(self, config_dir: str) -> Iterator[str]:
        root = self.transcripts_dir(config_dir)
        for name in names_in(root):  # listed when the first is asked for
            if not name.startswith("."):
                yield f"{root}/{name}{self.INNER}"

    def folders_below(self, config_dir: str, *directories: str) -> list[str]:
        root, names = (
            self.transcripts_dir(config_dir),
            {self.folder_name(directory) for directory in directories},
        )
        inside = tuple([self.name_inside(name) for name in names])
        return [
            f"{root}/{name}{self.INNER}"
            for name in names_in(root)
            if name in names or name.startswith(inside)
        ]

    def sessions_in(
        self, folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        return self.sessions_called(names_in(folder), folder, is_elsewhere, worktree)

    def sessions_called(
        self, files: Iterable[str], folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        return [
            Session(path_text(file[:-6]), f"{folder}/{file}", "", is_elsewhere, worktree)
            for file in files
            if file.endswith(".jsonl") and not file.startswith(self.NO_SESSIONS)
        ]

    def sub_agents_beside(self, path: str) -> list[str]:
        return transcripts_in(self.folder_beside(path) + self.SUB_AGENTS)

    def other_sessions(
        self, sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        return (
            []
            if sessions_dir
            else self._sessions(config_dir, own_path.rpartition("/")[0], scope, folders)
        )

    def project_sessions(
        self, config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        own_dir = self.transcript_of(config_dir, own_id).rpartition("/")[0] if own_id else ""
        return self._sessions(
            config_dir, own_dir or self.started_in(config_dir, directory), scope, folders
        )

    def started_in(self, config_dir: str, directory: str) -> str:
        """Return the folder of the project that `directory` is in."""
        return self.project_dir(config_dir, directory)

    def transcript_of(self, config_dir: str, session_id: str) -> str:
        """Return the path of a session's transcript, wherever it started, or ''."""
        paths = (f"{folder}/{session_id}.jsonl" for folder in self.all_folders(config_dir))
        return next((path for path in paths if is_file(path)), "")


class CopiedSessions(Runtime):
    """A runtime that compresses, deletes or rewrites its sessions, so we keep copies of them."""

    def copies_root(self, config_dir: str) -> str:
        return f"{self.home_of(config_dir).state_dir}/{self.name}"

    def home_of(self, config_dir: str) -> Home:
        """Return the home to which the sessions in `config_dir` belong."""
        from ..settings.homes import environment, runtime_home

        return runtime_home(config_dir, self.USUAL_DIR, environment())


def transcripts_in(folder: str) -> list[str]:
    """Return the paths of the transcripts in a folder, sorted; none if there is no such folder."""
    return [f"{folder}/{name}" for name in sorted(names_in(folder)) if name.endswith(".jsonl")]
