"""Labels of what rules found in public sessions, and of what a reader found worth keeping
(README.md)."""
