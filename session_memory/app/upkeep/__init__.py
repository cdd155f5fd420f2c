"""Background work: keep the store up to date, and do the tasks that are due.

runner: one run of upkeep
watch: runs of upkeep while sessions run
"""
