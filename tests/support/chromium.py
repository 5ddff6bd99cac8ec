"""The browser of the page tests: the machine's Chromium, or the one that an npm package holds."""

import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from stack.node import search_path

_MODULES = Path(__file__).parents[2] / "node_modules"
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_INFLATE = """
import { readdir } from "node:fs/promises";
import { inflate } from "@sparticuz/chromium";
const folder = "node_modules/@sparticuz/chromium/bin";
for (const name of await readdir(folder)) await inflate(`${folder}/${name}`);
"""
_CURE = (
    "install it (apt-get install chromium), name it in DOCFLOW_CHROMIUM, or run `make tools`, "
    "which installs one for x86-64 Linux"
)


@dataclass(frozen=True)
class Chromium:
    """A browser that starts on this machine.

    Attributes:
        program: What is started.
        environment: What it needs besides the environment of this process.
        arguments: What it needs besides those of playwright.
    """

    program: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    arguments: tuple[str, ...] = ()


def find_chromium(modules: Path = _MODULES) -> Chromium:
    """The one that DOCFLOW_CHROMIUM names, one on the path, or the package's.

    Args:
        modules: What npm has installed.

    Raises:
        RuntimeError: There is none, and how to get one.
    """
    # As root it does not start inside of its own sandbox.
    arguments = ("--no-sandbox",) if os.geteuid() == 0 else ()
    named = os.environ.get("DOCFLOW_CHROMIUM")
    if named:
        if (program := shutil.which(named)) is None:
            raise RuntimeError(f"DOCFLOW_CHROMIUM is {named}, which is not a program: {_CURE}")
        return Chromium(program, arguments=arguments)
    if found := next(filter(None, map(shutil.which, _PROGRAMS)), None):
        return Chromium(found, arguments=arguments)
    package = modules / "@sparticuz" / "chromium"
    if not package.exists() or platform.machine() != "x86_64":
        raise RuntimeError(f"page tests need Chromium: {_CURE}")
    return _of_package(package, modules / ".cache")


@asynccontextmanager
async def browser() -> AsyncGenerator[Browser]:
    """Chromium without a window."""
    found = find_chromium()
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=found.program,
            args=found.arguments,
            env={**os.environ, **found.environment},
        )
        try:
            yield running
        finally:
            await running.close()


def _of_package(package: Path, cache: Path) -> Chromium:
    version = json.loads((package / "package.json").read_text())["version"]
    folder = cache / f"chromium-{version}"
    if not folder.exists():
        _inflate(package, folder)
    program = str(folder / "chromium")
    fonts = {"FONTCONFIG_FILE": str(folder / "fonts.conf")}
    libraries = {"LD_LIBRARY_PATH": str(folder / "al2023" / "lib")}
    for environment in (fonts, fonts | libraries):
        if _starts(program, environment):
            # Without a helper that belongs to root its sandbox depends on the machine's policy.
            return Chromium(program, environment, ("--no-sandbox",))
    raise RuntimeError(f"Chromium of {package} does not start on this machine: {_CURE}")


def _starts(program: str, environment: Mapping[str, str]) -> bool:
    """Whether this machine has the libraries that it is linked to."""
    command = [program, "--version"]
    done = subprocess.run(
        command, check=False, capture_output=True, env={**os.environ, **environment}
    )
    return done.returncode == 0


def _inflate(package: Path, folder: Path) -> None:
    """Unpack the program, its libraries and its fonts, or take what another process unpacked."""
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as name:
        unpacked = Path(name, "unpacked")
        unpacked.mkdir()
        done = subprocess.run(
            ["node", "--input-type=module", "--eval", _INFLATE],
            check=False,
            capture_output=True,
            text=True,
            cwd=package.parents[2],
            env={**os.environ, "PATH": search_path(), "TMPDIR": str(unpacked)},
        )
        if done.returncode != 0:
            raise RuntimeError(f"{package} could not be unpacked: {done.stderr.strip()}")
        (unpacked / "fonts.conf").write_text(
            f"<fontconfig><dir>{folder / 'fonts'}</dir>"
            f"<cachedir>{folder / 'fonts-cache'}</cachedir></fontconfig>\n"
        )
        try:
            unpacked.rename(folder)
        except OSError:
            if not folder.exists():
                raise
