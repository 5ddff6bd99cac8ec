"""What a job reads, as it is at the moment of its submission."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import TypeAdapter, ValidationError

from adapters.ports import BlobNotFound, Blobs, PortError, Unavailable
from contracts.base import problem_text
from contracts.blobs import BlobName, BlobRef
from contracts.jobs import InputIdentity
from workers.services.jobs.errors import FieldError, InvalidJob

INPUTS: Final = 1_000
"""A job that reads more is refused."""
MANIFEST: Final = "@"
"""Begins the name of a blob that lists names, one a line."""
MANIFEST_BYTES: Final = 1_000_000
TIER: Final = "bronze://"
_NAME: Final = TypeAdapter[str](BlobName)


class JobInputs:
    """Finds the blobs that a job reads.

    Args:
        bronze: The container that they lie in.
        scratch: Folder for a manifest while it is read.
    """

    def __init__(self, bronze: Blobs, scratch: Path) -> None:
        self._bronze = bronze
        self._scratch = scratch

    async def resolve(self, names: Sequence[str]) -> tuple[InputIdentity, ...]:
        """Size and version of every input, each once, in the order of the names.

        Args:
            names: Of blobs; `name/` is all of a folder, `@name` what a blob lists.

        Raises:
            InvalidJob: One is missing, a folder is empty, or there are too many.
            Unavailable: The blob store does not answer.
        """
        found: dict[str, BlobRef] = {}
        for name in names:
            for each in await self._blobs(name):
                found[each.name] = each
                if len(found) > INPUTS:
                    raise _refused(f"a job reads at most {INPUTS:,} files; divide it")
        return tuple(
            InputIdentity(uri=f"{TIER}{each.name}", size=each.size, etag=each.etag)
            for each in found.values()
        )

    async def _blobs(self, name: str) -> Sequence[BlobRef]:
        name = name.removeprefix(TIER)
        if name.startswith(MANIFEST):
            return [
                each
                for line in await self._manifest(name.removeprefix(MANIFEST))
                for each in await self._of_name(line)
            ]
        return await self._of_name(name)

    async def _of_name(self, name: str) -> Sequence[BlobRef]:
        if name.endswith("/"):
            found = await self._bronze.list(f"{_checked(name[:-1])}/", INPUTS + 1)
            if not found:
                raise _refused(f"the folder {name!r} of the bronze container holds no file")
            return found
        return [await self._stat(name)]

    async def _stat(self, name: str) -> BlobRef:
        try:
            return await self._bronze.stat(_checked(name))
        except BlobNotFound:
            raise _refused(f"there is no file {name!r} in the bronze container") from None
        except Unavailable:
            raise
        except PortError as error:
            raise _refused(str(error)) from error

    async def _manifest(self, name: str) -> Sequence[str]:
        if (await self._stat(name)).size > MANIFEST_BYTES:
            raise _refused(f"the manifest {name!r} has more than {MANIFEST_BYTES:,} bytes")
        with TemporaryDirectory(dir=self._scratch) as folder:
            path = Path(folder) / "manifest"
            await self._bronze.download(name, path)
            try:
                text = path.read_text("utf-8-sig")
            except UnicodeDecodeError:
                raise _refused(f"the manifest {name!r} is not UTF-8") from None
        lines = [line.strip() for line in text.splitlines()]
        listed = [line for line in lines if line and not line.startswith("#")]
        if not listed:
            raise _refused(f"the manifest {name!r} lists no file")
        return listed


def _checked(name: str) -> str:
    try:
        return _NAME.validate_python(name)
    except ValidationError as error:
        why = problem_text(error.errors(include_url=False, include_input=False)[0])
        raise _refused(f"{name[:100]!r} is not the name of a file: {why}") from None


def _refused(message: str) -> InvalidJob:
    return InvalidJob([FieldError("parameters", message)])
