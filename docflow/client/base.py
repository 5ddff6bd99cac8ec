"""What every answer of the API has."""

from typing import Self, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from docflow.client.errors import GatewayUnreachable
from docflow.client.protocol import refuse

Answer = TypeVar("Answer", bound="Model")


class Model(BaseModel):
    """What the API answers; a field that this version does not know is kept as it came."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)
    _http_etag: str | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, response: httpx.Response) -> Self:
        """What the gateway answered; the body has been read.

        Raises:
            Problem: It refused.
            GatewayUnreachable: The answer is none of docflow's.
        """
        refuse(response)
        try:
            made = cls.model_validate_json(response.content)
        except ValidationError as error:
            raise GatewayUnreachable(f"{response.url} answered something else: {error}") from error
        made._http_etag = response.headers.get("ETag")
        return made

    @property
    def http_etag(self) -> str | None:
        """What `if_match` of a change takes; None: the answer had none."""
        return self._http_etag
