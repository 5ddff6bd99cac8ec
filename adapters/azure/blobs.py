"""Blobs in an Azure storage container."""

import asyncio
import base64
import http.client
import re
import secrets
import socket
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import AzureStore

from adapters.azure.storage_account import Answer, StorageAccount, store_config
from adapters.object_blobs import ObjectBlobs
from adapters.ports.errors import BlobNotFound, PortError, Throttled, Unavailable
from workflows.shared.contracts import BlobRef
from workflows.shared.dependencies import Dependency

_BLOCK = 2 << 20
_COPY_POLL_SECONDS = 0.5
_PROBED = "docflow-probe"
_STATUS = re.compile(r"status code: (\d{3})")
_ERROR_CODE = re.compile(r"<Code>(\w+)</Code>")
_UNRESOLVED = "dns error"  # as hyper, which `obstore` sends with, says it
_QUERY = re.compile(r"\?\S*")  # of a URL: it may hold a signature


class AzureBlobs(ObjectBlobs):
    """One container of a storage account."""

    def __init__(self, connection_string: str, container: str) -> None:
        """Use a container that exists; see `create_container`.

        Raises:
            ValueError: The connection string is malformed; the message says how.
        """
        self._account = StorageAccount.from_connection_string(connection_string)
        self._container = container
        store = AzureStore(
            container,
            config=store_config(self._account),
            client_options={
                "allow_http": self._account.endpoint.startswith("http://"),
                "connect_timeout": timedelta(seconds=5),
                "read_timeout": timedelta(seconds=30),
                # Counts until the last byte of a body: a large blob over a slow line.
                "timeout": timedelta(hours=1),
            },
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=30)},
        )
        super().__init__(store, _BLOCK)

    async def create_container(self) -> None:
        """Make the container, unless it is there.

        Raises:
            PortError: The account refuses.
        """
        answer = await self._request("PUT", "", query={"restype": "container"})
        if answer.status != 201 and answer.error != "ContainerAlreadyExists":
            raise _failure(answer, f"container {self._container!r}")

    async def has_container(self) -> bool:
        """Whether the container is there; asked by the right to read a blob, which is all we need.

        Raises:
            PortError: The account does not answer, or refuses.
        """
        answer = await self._request("HEAD", _PROBED)
        if answer.status in (200, 404):
            return answer.error != "ContainerNotFound"
        raise _failure(answer, f"container {self._container!r}")

    async def probe(self) -> None:
        """Ask for a blob that need not be there."""
        with suppress(BlobNotFound):
            await self.stat(_PROBED)

    async def _create_from_blocks(self, name: str, blocks: AsyncIterator[bytes]) -> str | None:
        """Upload blocks and commit them only where no blob is: `obstore` cannot do both."""
        # All block ids of a blob, of unfinished uploads too, must be of one length: `obstore`'s.
        upload = secrets.token_hex(12)
        ids: list[str] = []
        async for block in blocks:
            ids.append(base64.b64encode(f"{upload}{len(ids):08}".encode()).decode())
            answer = await self._request(
                "PUT", name, query={"comp": "block", "blockid": ids[-1]}, body=block
            )
            if answer.status != 201:
                raise _failure(answer, f"blob {name!r}")
        latest = "".join(f"<Latest>{id}</Latest>" for id in ids)
        answer = await self._request(
            "PUT",
            name,
            query={"comp": "blocklist"},
            headers={"if-none-match": "*"},
            body=f"<?xml version='1.0'?><BlockList>{latest}</BlockList>".encode(),
        )
        if answer.status in (409, 412):
            raise FileExistsError(f"there is a blob {name!r} already")
        if answer.status != 201:
            raise _failure(answer, f"blob {name!r}")
        return answer.headers.get("etag")

    async def copy(self, source: str, target: str) -> BlobRef:
        """Copy within the account, without the bytes passing through here."""
        where = self._account.authorised_url(f"{self._container}/{source}")
        answer = await self._request("PUT", target, headers={"x-ms-copy-source": where})
        if answer.status not in (201, 202):
            raise _failure(answer, f"blob {source!r}")
        status = answer.headers.get("x-ms-copy-status", "success")
        while status == "pending":
            await asyncio.sleep(_COPY_POLL_SECONDS)
            answer = await self._request("HEAD", target)
            if answer.status != 200:
                raise _failure(answer, f"blob {target!r}")
            status = answer.headers.get("x-ms-copy-status", "success")
        if status != "success":
            raise Unavailable(f"copying blob {source!r} to {target!r} ended as {status!r}")
        return await self.stat(target)

    async def delete(self, name: str, *, etag: str | None = None) -> bool:
        """Delete a blob, if it is still at `etag`."""
        headers = {"x-ms-delete-snapshots": "include"}
        if etag is not None:
            headers["if-match"] = etag
        answer = await self._request("DELETE", name, headers=headers)
        if answer.status == 202:
            return True
        if answer.status == 412 or answer.error == "BlobNotFound":
            return False
        raise _failure(answer, f"blob {name!r}")

    async def _request(
        self,
        method: str,
        name: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        path = f"{self._container}/{name}" if name else self._container
        try:
            return await asyncio.to_thread(
                self._account.request, method, path, query=query, headers=headers, body=body
            )
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(
                f"the storage account does not answer: {error}",
                Dependency.BLOB_STORE,
                misconfigured=isinstance(error, socket.gaierror),
            ) from error

    @contextmanager
    def _translated(self, name: str) -> Generator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if "ContainerNotFound" in str(error):
                raise Unavailable(
                    f"there is no container {self._container!r}",
                    Dependency.BLOB_STORE,
                    misconfigured=True,
                ) from error
            raise BlobNotFound(f"there is no blob {name!r}") from error
        except AlreadyExistsError as error:
            raise FileExistsError(f"there is a blob {name!r} already") from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise Unavailable(
                f"the storage account refuses access to {name!r}",
                Dependency.BLOB_STORE,
                misconfigured=True,
            ) from error
        except (BaseError, TimeoutError, ConnectionError) as error:
            raise _failure_of_obstore(str(error), f"blob {name!r}") from error


def _failure(answer: Answer, what: str) -> PortError:
    message = f"{what}: the storage account answered {answer.status} {answer.error}".rstrip()
    if answer.status in (429, 503):
        seconds = answer.headers.get("retry-after", "")
        asked = float(seconds) if seconds.isdecimal() else None
        return Throttled(message, asked, Dependency.BLOB_STORE)
    if answer.status >= 500 or answer.status == 408:
        return Unavailable(message, Dependency.BLOB_STORE)
    if answer.status in (401, 403):
        return Unavailable(message, Dependency.BLOB_STORE, misconfigured=True)
    if answer.error == "ContainerNotFound":
        return Unavailable(message, Dependency.BLOB_STORE, misconfigured=True)
    if answer.status == 404:
        return BlobNotFound(f"there is no {what}")
    return PortError(message)


def _failure_of_obstore(message: str, what: str) -> PortError:
    """Failures that `obstore` has no class for, distinguished by its message."""
    if status := _STATUS.search(message):
        code = _ERROR_CODE.search(message)
        headers = {"x-ms-error-code": code[1]} if code else {}
        return _failure(Answer(int(status[1]), headers, ""), what)
    first_line = _QUERY.sub("", message.partition("\n")[0])
    return Unavailable(
        f"{what}: the storage account does not answer: {first_line[:300]}",
        Dependency.BLOB_STORE,
        misconfigured=_UNRESOLVED in message,
    )
