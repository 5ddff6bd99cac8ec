"""From the body of an import message, as it came from outside, to one that may be trusted."""

from typing import Final

from pydantic import ValidationError

from contracts.imports import IMPORT_MESSAGE, MESSAGE_BYTES, DocumentType, ImportMessage
from workers.services.bodies import invalid, kind_of, object_of, text_of
from workers.services.verdicts import UNKNOWN_DOCUMENT_TYPE

_KNOWN: Final = tuple(DocumentType)


def read_message(raw: bytes) -> ImportMessage:
    """Check a body from outside and turn it into a message.

    Raises:
        RefusedMessage: It is not one; reason and description explain why.
    """
    text = text_of(raw, MESSAGE_BYTES)
    kind_of(object_of(text), "document_type", _KNOWN, UNKNOWN_DOCUMENT_TYPE)
    try:
        return IMPORT_MESSAGE.validate_json(text)
    except ValidationError as error:
        raise invalid(error) from error
