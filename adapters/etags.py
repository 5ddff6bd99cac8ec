"""Blobs that are meant as they were when they were first seen."""

from adapters.ports import PortError


def refuse_other(name: str, found: str | None, etag: str | None) -> None:
    """Refuse a blob that is not the one that is meant.

    Args:
        name: Its name.
        found: The etag of what is there.
        etag: The one that is meant; None: any.

    Raises:
        PortError: It was replaced.
    """
    if etag and found and etag != found:
        raise PortError(f"blob {name!r} was replaced meanwhile")
