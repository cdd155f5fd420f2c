"""The hooks of the runtimes: an event, its context, the answer."""
