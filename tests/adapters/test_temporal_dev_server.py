"""The dev server of the stack survives that it is killed, also while it makes its file."""

from pathlib import Path

from stack.children import free_port
from stack.temporal import temporal_part


async def test_a_file_that_a_killed_server_left_half_made_is_made_anew(tmp_path: Path) -> None:
    part = temporal_part(tmp_path, free_port(), None)
    part.prepare()
    # As found after SIGKILL at 50 ms: no server starts with it.
    (tmp_path / "temporal.db").touch()
    async with part.ready():
        assert (tmp_path / "temporal.db").stat().st_size > 0
    assert not (tmp_path / "temporal.unfinished").exists()


async def test_a_file_that_a_server_has_used_is_kept(tmp_path: Path) -> None:
    part = temporal_part(tmp_path, free_port(), None)
    files: set[int] = set()
    for _ in range(2):
        async with part.ready() as process:
            files.add((tmp_path / "temporal.db").stat().st_ino)
            process.kill()
            await process.wait()
    assert len(files) == 1
