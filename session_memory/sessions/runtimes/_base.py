"""The base classes of runtimes. A runtime is one object: a subclass states what differs from these
defaults.

What a prompt needs is in the class itself: where sessions lie, what an event of a hook says, how it
is answered. What the lines of a transcript mean (`records`) and what an install needs (`install`)
is loaded when it is first asked for."""

from __future__ import annotations

from ...common.system.files import is_file, names_in, path_text, user_dir
from ...common.system.json import as_string
from ..transcripts.entries import Session, called

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from ...common.system.processes import NotedProcess
    from ..settings.homes import Home
    from ..transcripts.entries import ToolUse
    from .backup import Backup
    from .install import Install
    from .records import Records

    # Of transcripts, or single ones if a runtime has no folder for a project; each with the name of
    # its worktree, '' for that at hand.
    Folders = Sequence[tuple[str, str]]
    Event = Mapping[str, Any]


class Runtime:
    """A runtime. By default it keeps all transcripts in one place, whatever their project, each as
    long as it lives, names no sessions in agent homes, and has hooks of Claude Code's form."""

    name: str  # what archives and the store call it
    TITLE: str  # what people call it
    USUAL_DIR: str  # the runtime's own directory as it lies in a user's home
    CONFIG_VARIABLE: str  # the variable of the environment that names another directory than that
    TRANSCRIPTS: str  # the folder in that directory with all transcripts
    DEEPEST = 2  # how deep transcripts lie in `transcripts_dir`: 2 for `<project>/<session>.jsonl`
    # Whether transcripts lie in a folder for the directory that their session was started in
    HAS_PROJECT_FOLDERS = False
    SESSIONS_FOLDER: str  # the folder in an agent home's memory directory that names its sessions
    PROGRAM: str  # a word in the command line of the runtime's processes
    OWN_ID_VARIABLE: str  # the variable in which an agent's commands find the id of its session
    # a variable that is set in whatever an agent starts, and not in a terminal of its user
    AGENT_VARIABLE: str
    # The variable in which a hook finds the directory that the session was started in; '' if only
    # its event tells
    PROJECT_VARIABLE = ""
    PROMPT_EVENT = "UserPromptSubmit"  # the event of a prompt; '' if it starts no hooks
    START_EVENT = "SessionStart"  # the event that a session starts with; '' if none is answered
    TOOL_EVENT = "PreToolUse"  # the event of a tool call, before it is run
    SUB_AGENT_EVENT = ""  # the event of a sub-agent's start that is answered; '' if none is
    FAILED_EVENT = ""  # the event of a tool call that failed; '' if none is answered
    # The key of an event that tells its prompt from every other, whichever of our hooks it starts;
    # '' if none does. A prompt in the middle of a turn may have the id of the turn.
    PROMPT_ID_KEY = ""
    # The tools whose calls are answered: the kind of each, and the key of its input that says to
    # what it is done
    TOOLS: Mapping[str, tuple[str, str]] = {}
    # The tools beside TOOLS whose failure is answered, in the same form
    FAILING_TOOLS: Mapping[str, tuple[str, str]] = {}
    # whether it shows the `systemMessage` that a hook prints to its user, and not to the agent
    SHOWS_NOTICES = False
    SHOWS_WHAT_WAS_TOLD = True  # whether its transcripts show what a hook told the agent
    # whether its sessions are other files than a transcript and all in the folder beside it
    HAS_BACKUP = False

    if TYPE_CHECKING:
        records: Records  # what the lines of a transcript mean
        install: Install  # what goes into the runtime's settings, and what its user types
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
        """Return `records`, `install` or `backup`: by default what is called so in the package of
        the runtime: for a class Codex, CodexRecords in `records.py`. Without a `backup.py` of its
        own its HAS_BACKUP is False."""
        if part == "backup" and not self.HAS_BACKUP:
            from .backup import Backup

            return Backup(self)
        module = __import__(f"{self.__module__}.{part}", fromlist=[part])
        found = getattr(module, type(self).__name__ + part.capitalize())
        return found() if part == "records" else found(self)

    # Where sessions lie

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """Return the runtime's own directory, by the environment."""
        return (
            environ.get(self.CONFIG_VARIABLE) or f"{user_dir(environ)}/{self.USUAL_DIR}"
        ).rstrip("/")

    def transcripts_dir(self, config_dir: str) -> str:
        """Return the directory that holds a folder of transcripts for each project, or all
        transcripts."""
        return f"{config_dir}/{self.TRANSCRIPTS}"

    def copies_dir(self, config_dir: str) -> str:
        """Return the directory with copies of transcripts that the runtime has compressed or
        archived, at the paths that they had below `transcripts_dir`; '' if it does neither."""
        return ""

    def refresh(self, config_dir: str, everything: bool = False) -> None:
        """Update our copies of the sessions, if there are any: as far as a prompt has time for, or
        `everything`. To be called before sessions are listed. Never fails: what cannot be read now
        is read the next time."""

    def project_dir(self, config_dir: str, cwd: str) -> str:
        """Return the directory for the transcripts of sessions that are started in `cwd`."""
        return self.transcripts_dir(config_dir)

    def is_folder_of(self, folder: str, directory: str) -> bool:
        """Check if sessions that are started in `directory` have their transcripts in `folder`, as
        its name tells."""
        return False

    def all_folders(self, config_dir: str) -> Iterable[str]:
        """Return the folders of all projects; without folders for projects, the youngest
        transcripts of all."""
        raise NotImplementedError

    def folders_below(self, config_dir: str, *directories: str) -> list[str]:
        """Return the folders that may hold the transcripts of sessions that were started in
        `directories` or below. Their names do not tell for certain: `/srv/app-old` may be named as
        `/srv/app/old`."""
        return list(self.all_folders(config_dir))

    def listed_dirs(self, config_dir: str) -> list[str]:
        """Return the directories whose listings change as soon as `folders_below` has something
        else to say."""
        return [self.transcripts_dir(config_dir)]

    def sessions_in(
        self, folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        """Return the sessions whose transcripts lie in `folder`."""
        raise NotImplementedError

    def sub_agents(self, path: str) -> list[str]:
        """Return the transcripts of the sub-agents of the session whose transcript lies at `path`:
        those beside it, or that one, if what they did stands there too."""
        return self.sub_agents_beside(path)

    def sub_agents_beside(self, path: str) -> list[str]:
        """Return the transcripts of the same sub-agents that are files of their own."""
        return []

    def folder_beside(self, path: str) -> str:
        """Return the folder with what else belongs to the session whose transcript lies at
        `path`."""
        return path.removesuffix(".jsonl")

    def session_names(self, sessions_dir: str) -> list[str]:
        """Return the names of the sessions of an agent home, in no particular order."""
        return []

    def named_sessions(self, sessions_dir: str, config_dir: str, root: str) -> list[Session]:
        """Return the named sessions of the agent home `root`, wherever their transcripts lie."""
        return []

    def other_sessions(
        self, sessions_dir: str, config_dir: str, own_path: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        """Return the sessions of an agent home, or, if `sessions_dir` is '', those of the project
        or of `all`. A project is the folder that the own transcript lies in, and `folders`. The
        session at hand may be one."""
        return [] if sessions_dir else self._sessions(config_dir, "", scope, folders)

    def project_sessions(
        self, config_dir: str, own_id: str, directory: str, scope: str, folders: Folders = ()
    ) -> list[Session]:
        """Return the sessions of the project of the session `own_id`, or of `directory`, or of
        `all` projects. A project is one folder, and `folders`."""
        return self._sessions(config_dir, "", scope, folders)

    def session_id_of(self, path: str) -> str:
        """Return the id of the session whose transcript lies at `path`."""
        return path_text(path.rpartition("/")[2].removesuffix(".jsonl"))

    def given_name(self, path: str) -> str:
        """Return the name that the user gave the session whose transcript lies at `path`, if that
        stands elsewhere."""
        return ""

    def call_began(self, lines: Iterable[bytes]) -> float | None:
        """Return when the call was made whose record is in the first of `lines` and was written
        only when the call was over, in seconds since the epoch; None if a record is written as its
        call is made. The rest are the lines before it, the last first."""
        return None

    def place_of(self, file: str) -> str:
        """Return where a transcript that is called `file` lies below `transcripts_dir`, wherever it
        was moved or copied to; '' if the name does not tell."""
        return ""

    def exported_lines(self, content: bytes) -> Sequence[dict[str, Any] | bytes]:
        """Return a session in the form that the runtime itself keeps or exports, if that is not the
        one that is read, as lines of its mirror; [] if it is none."""
        return []

    def live_session_id(self, config_dir: str, pid: int) -> str:
        """Return the id of the session that is open in the runtime's process `pid`; '' if nothing
        tells."""
        return ""

    def live_processes(self, config_dir: str) -> list[NotedProcess]:
        """Return the runtime's processes that are noted in `config_dir`, running or not."""
        return []

    def has_left(self, path: str) -> bool:
        """Return whether the process of the session with the transcript at `path` has ended, by the
        runtime's notes; False without such notes."""
        return False

    def has_started(self, environ: Mapping[str, str]) -> bool:
        """Tell whether an agent of the runtime started the process with this environment."""
        return bool(environ.get(self.OWN_ID_VARIABLE) or environ.get(self.AGENT_VARIABLE))

    def _sessions(
        self, config_dir: str, own_dir: str, scope: str, folders: Folders
    ) -> list[Session]:
        """Return the sessions in `own_dir` and in `folders`, and with the scope `all` those
        elsewhere."""
        from ..transcripts.projects import sessions_of_project

        return sessions_of_project(
            own_dir, folders, scope, self.all_folders(config_dir), self.sessions_in
        )

    # What an event says that the runtime hands to a hook

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Tell whether an event comes from this runtime, and not from another that takes its
        plugins or runs the hooks in its settings; by the event and the environment of the hook."""
        raise NotImplementedError

    def keeps_transcript(self, event: Event, environ: Mapping[str, str]) -> bool | None:
        """Tell whether the session has a transcript as soon as a prompt was answered; None if that
        is not known."""
        return None

    def process(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return what names the process that the session runs in; '' if neither event nor
        environment tells, or if the runtime goes on from a prompt that was aborted as well."""
        return ""

    def prompt_id(self, event: Event) -> str:
        """Return the id of an event's prompt (see PROMPT_ID_KEY)."""
        return as_string(event.get(self.PROMPT_ID_KEY))

    def start_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the directory from which upwards an agent home is looked for."""
        return environ.get(self.PROJECT_VARIABLE) or as_string(event.get("cwd"))

    def project_start(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the directory that the session was started in, which says of what project it
        is."""
        return self.start_dir(event, environ)

    def event_config_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the runtime's own directory, by an event: the one that holds the folder
        TRANSCRIPTS."""
        above, mark, _ = as_string(event.get("transcript_path")).rpartition(f"/{self.TRANSCRIPTS}/")
        return above if mark else self.config_dir(environ)

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str:
        """Return where the transcript of a session that was started in `cwd` lies, or will lie."""
        return f"{self.project_dir(config_dir, cwd)}/{session_id}.jsonl"

    def own_path(self, event: Event, start: str, config_dir: str) -> str:
        """Return where the transcript of the session at hand, which was started in `start`, lies or
        will lie."""
        named = as_string(event.get("transcript_path"))
        return named or self.transcript_path(config_dir, start, as_string(event.get("session_id")))

    def own_name(self, event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
        """Return the name of the session at hand in an agent home, whose `sessions` are given; ''
        if it has none."""
        return ""

    def is_from_a_person(self, prompt: str) -> bool:
        """Tell whether a prompt was typed, and not put in by the runtime."""
        return True

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        """Return the tool call that is about to be run, with the file or command as its argument,
        if it may change files; one for each file of a patch."""
        return called(event, self.TOOLS)

    def replaced_texts(self, event: Event) -> list[str]:
        """Return the texts that the edit which is about to be made replaces; none if the event does
        not tell."""
        return []

    def sub_agent(self, event: Event) -> str:
        """Return which of the session's sub-agents makes the call; '' if it is the session's
        own."""
        return as_string(event.get("agent_id"))

    def tasks(self, event: Event) -> list[str]:
        """Return what the sub-agent that starts with an event was asked; all that it may have been
        asked if several start at once, and nothing tells which it is."""
        return []

    def missed_file(self, event: Event) -> str:
        """Return the path at which a failed call read or edited a file; '' if it did something
        else."""
        found = called(event, {**self.TOOLS, **self.FAILING_TOOLS})
        return found[0].argument if found and found[0].kind != "command" else ""

    def can_ask(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Tell whether the user can be asked whether a tool may run."""
        return False

    # How an event is answered

    def held_output(self, reason: str, text: str) -> dict[str, Any]:
        """Return what a hook prints so that the runtime asks its user, for this reason, whether the
        tool may run, and tells the agent `text`, unless that is ''. By default it asks nobody."""
        return self.context_output(text, self.TOOL_EVENT) if text else {}

    def context_output(self, text: str, event: str = "") -> dict[str, Any]:
        """Return what a hook prints (or a callback returns) so that the runtime tells the agent
        `text`. `event` is the one that is answered, by default a prompt."""
        return {
            "hookSpecificOutput": {
                "hookEventName": event or self.PROMPT_EVENT,
                "additionalContext": text,
            }
        }

    def notice_output(self, text: str) -> dict[str, Any]:
        """Return what a hook prints so that the runtime shows `text` to its user; by default the
        agent passes it on. If the user alone sees it, it goes with `context_output` in one
        object."""
        return {"systemMessage": text} if self.SHOWS_NOTICES else self.context_output(text)


class ProjectFolders(Runtime):
    """A runtime with a folder of transcripts for each directory that sessions are started in:
    `<transcripts_dir>/<folder><INNER>/<session>.jsonl`."""

    HAS_PROJECT_FOLDERS = True

    INNER = ""  # what stands between a project's folder and the transcripts
    SUB_AGENTS = ""  # what stands between `<session>` and the transcripts of its sub-agents
    # how the names of files begin that are no sessions' transcripts
    NO_SESSIONS: tuple[str, ...] = (".",)

    def folder_name(self, directory: str) -> str:
        """Return the name of the folder for sessions that are started in `directory`."""
        raise NotImplementedError

    def name_inside(self, name: str) -> str:
        """Return how the names of folders begin that are for directories in that of the folder
        `name`."""
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
            {self.folder_name(one) for one in directories},
        )
        inside = tuple([self.name_inside(name) for name in names])
        return [
            f"{root}/{one}{self.INNER}"
            for one in names_in(root)
            if one in names or one.startswith(inside)
        ]

    def sessions_in(
        self, folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        return [
            Session(path_text(file[:-6]), f"{folder}/{file}", "", is_elsewhere, worktree)
            for file in names_in(folder)
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
        """Return the transcript of a session, wherever that was started; '' if there is none
        yet."""
        paths = (f"{folder}/{session_id}.jsonl" for folder in self.all_folders(config_dir))
        return next((path for path in paths if is_file(path)), "")


class CopiedSessions(Runtime):
    """A runtime of whose sessions we keep copies, since it compresses, deletes or rewrites what it
    has written."""

    def copies_root(self, config_dir: str) -> str:
        return f"{self.home_of(config_dir).state_dir}/{self.name}"

    def home_of(self, config_dir: str) -> Home:
        """Return whose sessions are in `config_dir`."""
        from ..settings.homes import environment, runtime_home

        return runtime_home(config_dir, self.USUAL_DIR, environment())


def transcripts_in(folder: str) -> list[str]:
    """Return the paths of the transcripts in a folder, sorted; none if there is no such folder."""
    return [f"{folder}/{name}" for name in sorted(names_in(folder)) if name.endswith(".jsonl")]
