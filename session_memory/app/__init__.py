"""Programs that people and agents run: commands, tools, install, upkeep."""
