"""Finds code whose result may differ between processes, which ruff does not see.

What iterates a set does so in the order of its hashes. Whether an expression is a set is read from
the text: what makes one, and names, attributes and functions that are annotated as one.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

BUILTINS = frozenset(
    ("__import__", "breakpoint", "eval", "exec", "hash", "id", "input", "open", "import_module")
)
"""Functions without an import of their own: files, hashes, and imports within functions."""
_SET = re.compile(r"(?:typing\.)?(?:set|frozenset|Set|AbstractSet)(?:\[.*)?(?: \| None)?")
_OF_SETS = re.compile(r"\w+\[.*\b(?:set|frozenset|Set|AbstractSet)\[.*")
_MAKES = frozenset(("set", "frozenset"))
_METHODS = frozenset(("union", "intersection", "difference", "symmetric_difference", "copy"))
_ORDERED = frozenset(
    (
        *("list", "tuple", "dict", "deque", "str", "repr", "join", "fromkeys", "extend"),
        *("iter", "map", "filter", "zip", "enumerate", "reversed", "islice", "accumulate"),
        *("chain", "from_iterable"),
    )
)
"""Calls whose result has the order of what they are given."""
_UNORDERED = frozenset(("set", "frozenset", "sorted", "any", "all", "len", "update"))
"""Calls whose result has not."""
_OPERATORS = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Names:
    """Names that stand for sets, and for mappings and sequences of them."""

    sets: set[str] = field(default_factory=set[str])
    boxes: set[str] = field(default_factory=set[str])

    def note(self, name: str, annotation: ast.expr | None) -> None:
        """Remember what a name is annotated as."""
        text = "" if annotation is None else ast.unparse(annotation).strip("'")
        text = text.removeprefix("Final[") if "Final[" in text else text
        if _SET.fullmatch(text):
            self.sets.add(name)
        elif _OF_SETS.fullmatch(text):
            self.boxes.add(name)


def declared(trees: Iterable[ast.AST]) -> Names:
    """Attributes, constants and functions of all modules that are annotated as sets."""
    names = Names()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, _Function):
            names.note(node.name, node.returns)
        elif isinstance(node, ast.ClassDef | ast.Module):
            for each in node.body:
                if isinstance(each, ast.AnnAssign):
                    names.note(_last(each.target), each.annotation)
    return names


def _with_own(tree: ast.AST, known: Names) -> Names:
    """The same, with attributes that a module's objects give themselves."""
    names = Names(set(known.sets), set(known.boxes))
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            names.note(node.target.attr, node.annotation)
    return names


def findings(tree: ast.AST, known: Names) -> Iterator[tuple[int, str]]:
    """Lines of a module, and what stands there."""
    yield from _Reader(tree, known).found()


def findings_in(folders: Iterable[Path]) -> Iterator[str]:
    """The same of every module below some folders, as `path:line: what`."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    trees = {path: ast.parse(path.read_text()) for path in paths}
    known = declared(trees.values())
    for path, tree in trees.items():
        for line, what in findings(tree, known):
            yield f"{path}:{line}: {what}"


def _last(node: ast.expr) -> str:
    """Name of a name, attribute or call."""
    if isinstance(node, ast.Call):
        return _last(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


class _Reader:
    def __init__(self, tree: ast.AST, known: Names) -> None:
        self._tree = tree
        self._known = _with_own(tree, known)
        self._parents = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }
        self._local: dict[ast.AST, Names] = {}

    def found(self) -> Iterator[tuple[int, str]]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and _last(node) in BUILTINS and self._is_banned(node):
                yield node.lineno, f"{_last(node)}()"
            for iterated in self._iterated(node):
                if self._is_set(iterated):
                    yield iterated.lineno, f"the order of the set {ast.unparse(iterated)}"

    def _is_banned(self, call: ast.Call) -> bool:
        by_name = isinstance(call.func, ast.Name)
        return (by_name or _last(call) == "import_module") and (
            _last(call) != "import_module" or self._scope(call) is not self._tree
        )

    def _iterated(self, node: ast.AST) -> Iterator[ast.expr]:
        """Expressions in whose order a node does something."""
        match node:
            case ast.For() | ast.AsyncFor():
                yield node.iter
            case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
                if not self._is_unordered(node):
                    yield from (each.iter for each in node.generators)
            case ast.Call():
                yield from self._of_call(node)
            case ast.YieldFrom() | ast.FormattedValue():
                yield node.value
            case ast.Starred():
                if not isinstance(self._parents[node], ast.Set):
                    yield node.value
            # The one element of a set of one has no order.
            case ast.Assign(targets=[ast.Tuple(elts=[_, _, *_]) | ast.List(elts=[_, _, *_])]):
                yield node.value
            case _:
                pass

    def _of_call(self, node: ast.Call) -> Iterator[ast.expr]:
        name = _last(node)
        if name == "pop" and isinstance(node.func, ast.Attribute) and not node.args:
            yield node.func.value
        by_key = name in ("min", "max") and any(each.arg == "key" for each in node.keywords)
        if (name in _ORDERED or by_key) and not self._is_unordered(node):
            yield from node.args

    def _is_unordered(self, node: ast.AST) -> bool:
        """Whether what becomes of it has no order."""
        parent = self._parents[node]
        if isinstance(parent, ast.comprehension):
            outer = self._parents[parent]
            return isinstance(outer, ast.SetComp) or self._is_unordered(outer)
        if isinstance(parent, ast.Compare):
            return True
        if not isinstance(parent, ast.Call) or node not in parent.args:
            return False
        return _last(parent) in _UNORDERED or (
            _last(parent) in _ORDERED and self._is_unordered(parent)
        )

    def _is_set(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Set | ast.SetComp):
            return True
        if isinstance(node, ast.Name | ast.Attribute):
            return _last(node) in self._names(node).sets
        if isinstance(node, ast.Call):
            return self._is_set_of_call(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
            return any(self._is_set(each) or _is_keys(each) for each in (node.left, node.right))
        if isinstance(node, ast.BoolOp):
            return any(map(self._is_set, node.values))
        if isinstance(node, ast.IfExp):
            return self._is_set(node.body) or self._is_set(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return self._is_set(node.value)
        return isinstance(node, ast.Subscript) and self._is_box(node.value)

    def _is_set_of_call(self, node: ast.Call) -> bool:
        name = _last(node)
        if isinstance(node.func, ast.Attribute):
            base = node.func.value
            if name in _METHODS and self._is_set(base):
                return True
            if name in ("get", "pop", "setdefault") and self._is_box(base):
                return True
        return name in _MAKES or name in self._known.sets

    def _is_box(self, node: ast.expr) -> bool:
        return _last(node) in self._names(node).boxes

    def _names(self, node: ast.AST) -> Names:
        """What is known where a node stands; attributes are known everywhere."""
        scope = self._scope(node)
        if isinstance(node, ast.Attribute) or not isinstance(scope, _Function):
            return self._known
        if scope not in self._local:
            self._local[scope] = Names()
            self._local[scope] = self._of_function(scope)
        return self._local[scope]

    def _of_function(self, function: _Function) -> Names:
        # A name that a function gives itself hides that of the same name elsewhere.
        own = Names()
        arguments = function.args
        given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        bound = {each.arg for each in given}
        for each in given:
            own.note(each.arg, each.annotation)
        for node in ast.walk(function):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                bound.add(node.target.id)
                own.note(node.target.id, node.annotation)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.add(node.id)
        own.sets |= self._known.sets - bound
        own.boxes |= self._known.boxes - bound
        self._local[function] = own
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.NamedExpr) and self._is_set(node.value):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                own.sets |= {each.id for each in targets if isinstance(each, ast.Name)}
        return own

    def _scope(self, node: ast.AST) -> ast.AST:
        while node in self._parents and not isinstance(node, _Function):
            node = self._parents[node]
        return node


def _is_keys(node: ast.expr) -> bool:
    """Views of mappings make sets of one another."""
    return isinstance(node, ast.Call) and _last(node) in ("keys", "items") and not node.args
