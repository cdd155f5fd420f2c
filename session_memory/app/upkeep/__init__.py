"""Background work: keep the store up to date, and do the tasks that are due.

forget_journal: forgets sessions step by step
rules: moves files that rules exclude
run: the values of a run, and how it takes steps
runner: one run of upkeep
state_files: steps for the state of sessions
watch: runs of upkeep while sessions run
"""
