"""Report how dense the code is: syntax nodes a line, and statements that nest expressions deeply.

    python tools/density.py [FOLDER ...] [--functions 40] [--statements 40]

A line counts if it holds code: blank lines, comments and docstrings do not. Annotations and
docstrings have no nodes, and neither do the contexts (load, store) of names. The nesting of a
statement is that of its deepest expression, in which a call counts 2, a comprehension, a
conditional expression and a lambda 3, an assignment within an expression 4, and operators and
subscripts 1. A statement that nests 9 or more is easier to read in several.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDERS = ["ecc_core", "napari_ecc", "benchmarks", "tools", "tests"]
DEEP = 9
SHORT = 4
"""Functions of fewer lines are not listed, because a formula on one line is no fault."""

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
WEIGHTS: dict[type[ast.AST], int] = {
    ast.Call: 2,
    **dict.fromkeys(COMPREHENSIONS, 3),
    ast.IfExp: 3,
    ast.Lambda: 3,
    ast.NamedExpr: 4,
    ast.Subscript: 1,
    ast.BinOp: 1,
    ast.BoolOp: 1,
    ast.Compare: 1,
    ast.Starred: 1,
}
CONTEXTS = (ast.Load, ast.Store, ast.Del)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
BODIES = {"body", "orelse", "finalbody", "handlers", "cases", "decorator_list"}
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


class Function(NamedTuple):
    """A function and the density of its body."""

    nodes_per_line: float
    place: str
    name: str


class Statement(NamedTuple):
    """A statement and how deeply its expressions nest."""

    nesting: int
    place: str
    text: str


class Module:
    """A file, parsed."""

    def __init__(self, path: Path) -> None:
        source = path.read_text(encoding="utf-8")
        self.path = path
        self.tree = ast.parse(source)
        docstrings = _remove_docstrings(self.tree)
        _remove_annotations(self.tree)
        self.lines = _lines_of_code(source) - docstrings

    @property
    def nodes(self) -> int:
        return count_nodes(self.tree)

    def functions(self) -> Iterator[Function]:
        """Yield the functions that are long enough to have a density."""
        for node in ast.walk(self.tree):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not node.body:
                continue
            first = node.body[0].lineno
            last = node.end_lineno or node.lineno
            lines = len(self.lines.intersection(range(first, last + 1)))
            if lines >= SHORT:
                nodes = sum(count_nodes(statement) for statement in node.body)
                yield Function(nodes / lines, f"{self.path}:{node.lineno}", node.name)

    def statements(self) -> Iterator[Statement]:
        """Yield statements other than definitions; a statement within another is one of its own."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and not isinstance(node, DEFINITIONS):
                nesting = max((nesting_of(one) for one in _expressions(node)), default=0)
                first_line = ast.unparse(node).splitlines()[0] if nesting >= DEEP else ""
                yield Statement(nesting, f"{self.path}:{node.lineno}", first_line)


def count_nodes(tree: ast.AST) -> int:
    """Return the number of nodes of a tree."""
    return sum(not isinstance(node, CONTEXTS) for node in ast.walk(tree))


def nesting_of(expression: ast.AST) -> int:
    """Return the weight of the heaviest path from an expression down to a name."""
    below = [nesting_of(child) for child in ast.iter_child_nodes(expression)]
    return WEIGHTS.get(type(expression), 0) + max(below, default=0)


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement, without the statements that it contains."""
    for name, value in ast.iter_fields(statement):
        if name in BODIES:
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST):
                yield one


def _lines_of_code(source: str) -> set[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def _remove_docstrings(tree: ast.AST) -> set[int]:
    """Remove strings that are statements, and return their lines."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        docstrings = [one for one in body if _is_docstring(one)]
        for one in docstrings:
            body.remove(one)
            lines.update(range(one.lineno, one.end_lineno + 1))
    return lines


def _is_docstring(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)


def _remove_annotations(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None


def print_summary(folder: str, modules: list[Module]) -> None:
    """Print the line of a folder."""
    nodes = sum(module.nodes for module in modules)
    lines = sum(len(module.lines) for module in modules)
    statements = [one for module in modules for one in module.statements()]
    deep = sum(one.nesting >= DEEP for one in statements)
    share = 1000 * deep / max(len(statements), 1)
    print(
        f"{folder:12} {lines:6} lines: {nodes / max(lines, 1):.2f} nodes a line,"
        f" {nodes / max(len(statements), 1):.2f} a statement; {deep:4} of {len(statements)}"
        f" statements nest {DEEP} or more ({share:.1f} in 1,000)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--functions", type=int, default=0, help="list as many dense functions")
    parser.add_argument("--statements", type=int, default=0, help="list as many deep statements")
    arguments = parser.parse_args()
    functions: list[Function] = []
    statements: list[Statement] = []
    for folder in arguments.folders:
        modules = [Module(path) for path in sorted(Path(folder).rglob("*.py"))]
        print_summary(folder, modules)
        for module in modules:
            functions += module.functions()
            statements += module.statements()
    for function in sorted(functions, reverse=True)[: arguments.functions]:
        print(f"{function.nodes_per_line:5.1f}  {function.place}  {function.name}")
    for statement in sorted(statements, reverse=True)[: arguments.statements]:
        print(f"{statement.nesting:3}  {statement.place}  {statement.text[:100]}")


if __name__ == "__main__":
    main()
