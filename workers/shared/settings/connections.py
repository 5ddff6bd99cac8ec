"""Settings of the gateway's connections: how many, how long, how much."""

import ipaddress
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, BeforeValidator, Field

from workers.shared.settings.base import Setting, Settings, Whole, WholeMessage, parse_list

_NUMBER: Final = Setting(kind="whole number")


def _networks(value: tuple[str, ...]) -> tuple[str, ...]:
    for each in value:
        try:
            ipaddress.ip_network(each)
        except ValueError:
            raise WholeMessage(
                f"DOCFLOW_TRUSTED_PROXIES: {each!r} is not an address or a network; write 10.0.0.7 "
                "or 10.0.0.0/16, separated by commas"
            ) from None
    return value


class ConnectionSettings(Settings):
    """How many connections the gateway keeps, and how long and how much it reads from each.

    Each gateway process counts on its own.
    """

    title: ClassVar[str] = "Connections and their limits"
    used_by: ClassVar[str] = "`docflow gateway`"

    connections: Annotated[int, Whole(1, 1_000_000)] = Field(
        500,
        validation_alias="DOCFLOW_CONNECTIONS",
        description="open connections. If there are more, the gateway closes the one that has "
        "waited longest for a request; if none waits, a new one gets 503 with `Retry-After`",
    )
    header_seconds: Annotated[float, Whole(1, 3_600), _NUMBER] = Field(
        10,
        validation_alias="DOCFLOW_HEADER_SECONDS",
        description="seconds in which the headers of a request must come; then 408",
    )
    body_seconds: Annotated[float, Whole(1, 86_400), _NUMBER] = Field(
        60,
        validation_alias="DOCFLOW_BODY_SECONDS",
        description="seconds that the gateway waits for a body in all, and again for each "
        "1,000,000 bytes of it that have come; then 408",
    )
    send_seconds: Annotated[float, Whole(1, 86_400), _NUMBER] = Field(
        60,
        validation_alias="DOCFLOW_SEND_SECONDS",
        description="seconds in which a client must read some of an answer; then the connection is "
        "closed",
    )
    idle_seconds: Annotated[float, Whole(1, 86_400), _NUMBER] = Field(
        75,
        validation_alias="DOCFLOW_IDLE_SECONDS",
        description="seconds that a connection stays open after an answer; longer than a proxy "
        "keeps its own connections to the gateway",
    )
    grace_seconds: Annotated[int, Whole(0, 86_400)] = Field(
        20,
        validation_alias="DOCFLOW_GRACE_SECONDS",
        description="seconds that requests under way, such as uploads, have to end if the gateway "
        "is stopped. What stops it must wait a little longer before it kills it",
    )
    body_bytes: Annotated[int, Whole(1_024, 100_000_000)] = Field(
        1 << 20,
        validation_alias="DOCFLOW_BODY_BYTES",
        description="bytes of a body that is no upload; more get 413. For uploads, see "
        "`DOCFLOW_UPLOAD_LIMIT_MB`",
    )
    streams: Annotated[int, Whole(0, 1_000_000)] = Field(
        50,
        validation_alias="DOCFLOW_STREAMS",
        description="event streams that one caller may have open; more get 429 with "
        "`Retry-After`. 0: no limit",
    )
    sign_in_attempts: Annotated[int, Whole(0, 1_000_000)] = Field(
        10,
        validation_alias="DOCFLOW_SIGN_IN_ATTEMPTS",
        description="sign-ins that may fail in a minute from one IPv4 address or one IPv6 network "
        "of 64 bits; then sign-ins from there get 429 with `Retry-After`. 0: no limit",
    )
    trusted_proxies: Annotated[
        tuple[str, ...],
        BeforeValidator(parse_list),
        AfterValidator(_networks),
        Setting(
            kind="addresses and networks, with commas",
            also="FORWARDED_ALLOW_IPS",
            default="`127.0.0.1`",
        ),
    ] = Field(
        ("127.0.0.1",),
        validation_alias="DOCFLOW_TRUSTED_PROXIES",
        description="proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed",
    )
