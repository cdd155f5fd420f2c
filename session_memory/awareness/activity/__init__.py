"""Activity of other sessions: changes, entries, reports, collisions, updates and their delivery.

actions: actions of a session on files and with git
call_collisions: collisions and conflicts in the files that a call is about to edit
call_log: the log of a session's calls, beside its state
changes: the sessions that wrote something since they were last read, and moves of HEAD
collisions: two sessions on the same file, branch or worktree
conflicts: conflicts with other branches, which upkeep stored
delivery: how an update is prepared, printed, committed and acknowledged
inbox: notes that upkeep keeps for prompts
report: the activity of one session as a value
session_edits: the edits of a session that its transcript proves
session_state: everything kept about a session between its prompts
status_line: the line about other sessions that a person sees
update_text: the text of all reports, within a limit
updates: the steps from changes to text, in one pass
viewpoint: files named as git prints them where the reader started
"""
