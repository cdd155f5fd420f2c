"""Durable memories: knowledge that strategies draw from finished conversations, worked off a queue.

call_memories: memories about the file or git command of a call
doubts: evidence against a memory
entry_points: strategies that other packages bring
folders: where memories of an agent, a group or a person are
forgotten: forgotten memories, and their undo for a day
format: a page of memories as Markdown, and back
last_work: the answer to a question about the last sessions
library: a group's memories: the pages and their index
memory_index: the index for searches
pages: reading and writing pages without losing a person's edit
prompt_index: writing the index that hooks read
prompt_index_reader: reading that index quickly
prompt_memories: memories relevant to a prompt
queue: finished conversations, given to each strategy in turn
runner: a run over the queue
session_ids: short ids that commands print and accept
shared_store: the interface of a store that several people or machines share
strategies: the built-in strategies
strategy: the interface of a strategy
token_budget: the limit for calls of a model
upkeep: the steps of upkeep for memories
writer: adding, replacing and correcting memories
"""
