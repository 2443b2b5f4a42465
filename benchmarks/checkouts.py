"""Other checkouts of the repository, whose library is measured by the benchmarks of this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
ANSWER = "answer "
# The process of a checkout: its own library, but these benchmarks.
SERVE = """
import sys
sys.path.insert(0, {checkout!r})
import ecc_core
sys.path[0] = {repository!r}
from {module} import serve
serve()
"""


class Checkout:
    """A checkout of the repository, whose library runs in a process of its own.

    The module of a benchmark has a function `serve`, which calls `answer_questions`.
    """

    def __init__(self, path: Path, module: str) -> None:
        self.name = path.resolve().name
        given = {"checkout": str(path.resolve()), "repository": str(REPOSITORY), "module": module}
        command = [sys.executable, "-W", "ignore", "-c", SERVE.format(**given)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def ask(self, **question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                return json.loads(line[len(ANSWER) :])
        raise RuntimeError(f"the process of {self.name} ended")


def answer_questions(answer: Callable[[dict[str, Any]], Any]) -> None:
    """Answer questions of :meth:`Checkout.ask`, a line each."""
    for line in sys.stdin:
        print(ANSWER + json.dumps(answer(json.loads(line))), flush=True)
