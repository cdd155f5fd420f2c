"""A repository and the user whose sessions wrote it, for `why` and `handoff`."""

from __future__ import annotations

import time
from pathlib import Path

from git_scene import git, repository
from records import as_written, assistant, user
from store_scene import StoreUser

LINE = "total = price * (1 + tax_rate)"
OTHER = "shipping = weight * rate_per_kilogram"
REQUEST = "the cart has to add the tax to the price, as the invoice does"


class Work:
    """A repository and the user whose sessions wrote it."""

    def __init__(self, path: Path) -> None:
        self.user = StoreUser(path / "home")
        self.began = time.time() - 5 * 3600  # the commits are made now
        self.root = repository(path / "repo", **{"cart.py": "price = 1\n"})
        self._calls = 0

    def said(
        self, text: str, session: str, role: str = "user", minute: float = 0
    ) -> dict[str, object]:
        make = user if role == "user" else assistant
        return make(text, sessionId=session, cwd=str(self.root), at=self.began + 60 * minute)

    def edit(
        self, session: str, after: str, path: str = "cart.py", minute: float = 1
    ) -> dict[str, object]:
        given = {"file_path": f"{self.root}/{path}", "old_string": "price = 1", "new_string": after}
        return assistant(
            ("Edit", given), sessionId=session, cwd=str(self.root), at=self.began + 60 * minute
        )

    def part_edit(self, before: str, after: str, *lines: str) -> list[dict[str, object]]:
        """An edit of session `a` that replaces a part of a line, and its result with whole lines."""
        path = f"{self.root}/cart.py"
        given = {"file_path": path, "old_string": before, "new_string": after}
        block = {"type": "tool_use", "id": f"part_{after}", "name": "Edit", "input": given}
        patch = [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": lines}]
        result = {"type": "tool_result", "tool_use_id": block["id"], "content": "updated"}
        fields = {"sessionId": "a", "cwd": str(self.root), "at": self.began + 60}
        whole = {"filePath": path, "structuredPatch": patch}
        written = as_written(user([result], toolUseResult=whole, **fields))
        return [assistant(block, **fields), written]

    def session(self, name: str, *records: dict[str, object]) -> None:
        self.user.session(name, *records)

    def write(self, text: str, path: str = "cart.py") -> None:
        (self.root / path).write_text(text)

    def commit(self, subject: str = "Add the tax", *options: str) -> str:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", subject, *options)
        return git(self.root, "rev-parse", "HEAD")

    def why(self, *words: str, code: int = 0) -> str:
        done = self.user.run("why", *words, cwd=self.root)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def reasons(self, *words: str, code: int = 0) -> list[dict]:
        return self.user.result("why", *words, code=code, cwd=self.root)["reasons"]
