"""Settings that pipelines share."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from contracts.base import built_when_used, problem_text
from domain.notices import NoticePolicies, NoticePolicy
from workers.settings.base import (
    Missing,
    Setting,
    Settings,
    Whole,
    parse_flag,
)

if TYPE_CHECKING:
    from adapters.notices.smtp import MailServer

DEFAULT_POLICY: Final = "default"
"""Names the policy of every pipeline that has none of its own."""
_POLICIES: Final[TypeAdapter[Mapping[str, NoticePolicy]]] = TypeAdapter(
    Mapping[str, NoticePolicy], config=built_when_used()
)


def web_address(value: str | None) -> str | None:
    """An address of the web, without a slash at its end.

    Raises:
        ValueError: It is none.
    """
    if value is None:
        return None
    value = value.rstrip("/")
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"must be an address like https://example.org, not {value!r}")
    return value


class ScratchSettings(Settings):
    """Where files are while they are read."""

    title: ClassVar[str] = "Scratch folder"
    used_by: ClassVar[str] = "workers, bridges, gateway, commands that read or send documents"

    root: Annotated[
        Path | None, Setting(kind="folder", default="`docflow` in the system's temporary folder")
    ] = Field(
        None,
        validation_alias="DOCFLOW_SCRATCH",
        description="where files are while they are read",
    )

    @property
    def folder(self) -> Path:
        """The folder that is set, or the one that is used without."""
        return self.root or Path(tempfile.gettempdir()) / "docflow"


class LogSettings(Settings):
    """How processes log."""

    title: ClassVar[str] = "Logs"
    used_by: ClassVar[str] = "workers, bridges, gateway"

    format: Annotated[
        Literal["text", "json"], Setting(kind="`text` or `json`", rule="must be text or json")
    ] = Field(
        "text",
        validation_alias="DOCFLOW_LOG_FORMAT",
        description="lines for people, or one JSON object for each event",
    )


class WorkflowSettings(Settings):
    """How workers run workflows."""

    title: ClassVar[str] = "Workflows"
    used_by: ClassVar[str] = "workers"

    sandboxed: Annotated[bool, BeforeValidator(parse_flag)] = Field(
        False,
        validation_alias="DOCFLOW_WORKFLOW_SANDBOX",
        description="run workflows in the sandbox of Temporal's SDK, which refuses code that is "
        "not deterministic, and costs CPU for every run",
    )


class ServiceBusSettings(Settings):
    """The Service Bus namespace, and how its queues are received from."""

    title: ClassVar[str] = "Service Bus"
    used_by: ClassVar[str] = "bridges of Service Bus queues, `docflow submit`, `docflow rejected`"
    queue_setting: ClassVar[str] = ""
    """Names the queue of a group that stands on this one."""

    connection_string: Annotated[str, Setting(secret=True)] = Field(
        validation_alias="AZURE_SERVICE_BUS_CONNECTION_STRING",
        description="the namespace of the queues",
    )
    max_messages: Annotated[int, Whole(1, 1000)] = Field(
        10,
        validation_alias="MAX_MESSAGES_PER_RUN",
        description="messages received and started together",
    )
    max_wait_seconds: Annotated[int, Whole(1, 3600)] = Field(
        30,
        validation_alias="MAX_WAIT_TIME_SECONDS",
        description="seconds that an empty queue is waited on before `--drain` ends",
    )


class HttpSettings(Settings):
    """Where processes listen."""

    title: ClassVar[str] = "HTTP"
    used_by: ClassVar[str] = (
        "`docflow gateway`, workers with `--health-port`, all processes with `--metrics-port`"
    )

    host: str = Field(
        "127.0.0.1",
        validation_alias="DOCFLOW_HTTP_HOST",
        description="host name, IPv4 or IPv6 address of the gateway without `--host`, and of the "
        "health and metrics ports",
    )


def _webhook_url(url: str | None) -> str | None:
    if url is None:
        return None
    from adapters.notices.webhook import check_webhook_url

    return check_webhook_url(url.strip())


def _webhook_secret(secret: object) -> object:
    from adapters.http.signatures import secret_bytes

    return secret_bytes(secret.strip()) if isinstance(secret, str) else secret


def _smtp_url(url: str | None) -> str | None:
    from adapters.notices.smtp import MailServer

    if url is not None:
        MailServer.parse(url.strip())
        url = url.strip()
    return url


def _address(address: str) -> str:
    from adapters.notices.smtp import check_address

    return check_address(address)


def _addresses(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(_address(part.strip()) for part in value.split(","))


def _policy(value: object) -> object:
    """Read the policies of pipelines; which names there are is not known here.

    Raises:
        ValueError: With all that is wrong.
    """
    if not isinstance(value, str):
        return value
    try:
        read = _POLICIES.validate_json(value)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, each['loc'])) or 'it'}: {problem_text(each)}"
            for each in error.errors(include_url=False, include_input=False)
        ]
        raise ValueError(
            'must be JSON like {"default": {"to": ["ops@example.org"], "kinds": ["parked"]}}; '
            + "; ".join(problems[:10])
        ) from None
    for name, policy in read.items():
        for address in policy.to or ():
            try:
                _address(address)
            except ValueError as error:
                raise ValueError(f"{name}.to: {error}") from None
    return read


class AddressSettings(Settings):
    """Where people find docflow and Temporal."""

    title: ClassVar[str] = "Addresses"
    used_by: ClassVar[str] = "workers, `docflow gateway`, `docflow spreadsheets`"

    public_url: Annotated[str | None, AfterValidator(web_address), Setting(kind="URL")] = Field(
        None,
        validation_alias="DOCFLOW_PUBLIC_URL",
        description="address of the gateway for its users, for links in notices",
    )
    """Without a slash at the end."""
    temporal_ui: Annotated[str | None, AfterValidator(web_address), Setting(kind="URL")] = Field(
        None,
        validation_alias="TEMPORAL_UI_ADDRESS",
        description="Temporal's Web UI, for links that pages and commands show",
    )


class NoticeSettings(Settings):
    """Where notices are sent, and to whom; the log when neither webhook nor mail is set."""

    title: ClassVar[str] = "Notices"
    used_by: ClassVar[str] = "workers, bridges, gateway"

    webhook_url: Annotated[
        str | None, AfterValidator(_webhook_url), Setting(secret=True, kind="URL")
    ] = Field(
        None,
        validation_alias="DOCFLOW_NOTIFY_WEBHOOK_URL",
        description="notices are posted there as JSON",
    )
    webhook_secret: Annotated[
        bytes | None,
        BeforeValidator(_webhook_secret),
        Setting(secret=True, kind="text, or `whsec_` and base64"),
    ] = Field(
        None,
        validation_alias="DOCFLOW_NOTIFY_WEBHOOK_SECRET",
        description="signs them as [Standard Webhooks](https://www.standardwebhooks.com) do",
    )
    smtp_url: Annotated[str | None, AfterValidator(_smtp_url), Setting(secret=True, kind="URL")] = (
        Field(
            None,
            validation_alias="DOCFLOW_SMTP_URL",
            description="mail server: `smtps://user:password@host` (TLS), "
            "`smtp+starttls://...`, or `smtp://host` for one that needs neither",
        )
    )
    sender: Annotated[
        str | None, Setting(kind="mail address", default="required with `DOCFLOW_SMTP_URL`")
    ] = Field(
        None,
        validation_alias="DOCFLOW_NOTIFY_FROM",
        description="address that mail comes from",
        validate_default=True,
    )
    escalate_to: Annotated[
        tuple[str, ...], BeforeValidator(_addresses), Setting(kind="mail addresses, with commas")
    ] = Field(
        (),
        validation_alias="DOCFLOW_ESCALATE_TO",
        description="notified when a question stays unanswered, a run parks or fails, or something "
        "that docflow needs is down",
    )
    policy: Annotated[
        Mapping[str, NoticePolicy], BeforeValidator(_policy), Setting(kind="JSON")
    ] = Field(
        {},
        validation_alias="DOCFLOW_NOTIFY_POLICY",
        description="for each pipeline, `outages` or `default`: `to`, `kinds`, "
        "`remind_after_hours`, `remind_every_hours`",
    )

    @field_validator("sender")
    @classmethod
    def _needed_by_mail(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("smtp_url") is not None:
            raise Missing("mail needs the address that it comes from")
        return None if value is None else _address(value)

    @property
    def policies(self) -> NoticePolicies:
        """Who is sent what."""
        named = dict(self.policy)
        default = named.pop(DEFAULT_POLICY, NoticePolicy())
        return NoticePolicies(self.escalate_to, default, named)

    @property
    def mail_server(self) -> "MailServer | None":
        """The mail server; None when none is set."""
        from adapters.notices.smtp import MailServer

        return None if self.smtp_url is None else MailServer.parse(self.smtp_url)
