"""The recipes of CONTRIBUTING.md, followed in a copy of the tree."""

import asyncio
import re
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass
from os import environ
from pathlib import Path

ROOT = Path(__file__).parents[2]
TREE = (
    *("docflow", "adapters", "activities", "workflows", "workers", "stack", "emulators"),
    *("benchmarks", "samples", "deploy", "docs", "tests"),
    *("pyproject.toml", "requirements.lock", "requirements-workers.lock", "Makefile"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
)
_BLOCK = re.compile(r"^```(diff|python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block of code of a recipe."""

    language: str
    text: str

    @property
    def path(self) -> str:
        """The file that it is about: the first line names it."""
        return self.text.splitlines()[0].removeprefix("+++ ").removeprefix("# ")

    @property
    def body(self) -> str:
        """What follows the first line."""
        return self.text.partition("\n")[2]


def recipe(title: str) -> str:
    """The section of CONTRIBUTING.md under a heading."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    _, found, rest = text.partition(f"\n## {title}\n")
    assert found, f"CONTRIBUTING.md has no section {title!r}"
    return re.split(r"^## ", rest, flags=re.MULTILINE)[0]


def blocks(section: str, language: str) -> list[Block]:
    """The blocks of a recipe in one language."""
    return [Block(name, text) for name, text in _BLOCK.findall(section) if name == language]


@dataclass(frozen=True)
class Tree:
    """A copy of the tree that a recipe changes."""

    root: Path

    @classmethod
    def copy(cls, root: Path) -> "Tree":
        """Copy all that tests and checks read, histories and pictures apart."""
        # With their bytecode: each of the many processes of a recipe would compile the tree anew.
        left_out = shutil.ignore_patterns("histories", "histories.lock.json", "*.png")
        root.mkdir(exist_ok=True)
        for name in TREE:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=left_out)
            else:
                shutil.copy(source, root / name)
        return cls(root)

    def write(self, path: str, text: str) -> None:
        """Add a file."""
        target = self.root / path
        assert not target.exists(), f"{path} is there already"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def apply(self, block: Block) -> None:
        """Apply a diff without line numbers: what it shows of a file must be there once."""
        target = self.root / block.path
        for hunk in block.body.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            assert all(line[0] in " +-" for line in lines), f"{block.path}: {hunk}"
            before = "".join(line[1:] for line in lines if line[0] in " -")
            after = "".join(line[1:] for line in lines if line[0] in " +")
            if not before:
                self.write(block.path, after)
                continue
            text = target.read_text()
            found = list(re.finditer(f"^{re.escape(before)}", text, re.MULTILINE))
            assert len(found) == 1, f"{block.path} holds this {len(found)} times:\n{before}"
            start, end = found[0].span()
            target.write_text(text[:start] + after + text[end:])

    def run(self, *command: str) -> str:
        """Run a module of the copy as a program; what it prints, and it must succeed."""
        return self._run(sys.executable, "-m", *command)

    def follow(self, block: Block) -> None:
        """Run the commands of a block in a shell; those of make are left to the caller."""
        for command in block.text.splitlines():
            if not command.startswith("make "):
                self._run("sh", "-ec", command)

    def check(self, program: str, *arguments: str) -> str:
        """Run a program of the virtual environment on the copy."""
        return self._run(str(Path(sys.executable).with_name(program)), *arguments)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
        return done.stdout

    def test(self, *arguments: str) -> str:
        """Run tests of the copy."""
        return self.run("pytest", "-n0", "-q", "-p", "no:cacheprovider", *arguments)

    async def docflow(self, settings: Mapping[str, str], *arguments: str) -> Process:
        """Start `docflow ...` of the copy."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workers.shared.cli", *arguments),
            cwd=self.root,
            env=dict(settings),
            stdout=PIPE,
            stderr=PIPE,
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """For programs of the copy: its modules come first."""
        kept = {name: environ[name] for name in ("PATH", "HOME") if name in environ}
        kept["PATH"] = f"{Path(sys.executable).parent}:{kept['PATH']}"
        return {**kept, "PYTHONPATH": str(self.root)}
