"""What reaches partners of transfers: endpoints, and the secrets that their records refer to."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from activities.transfers.breaker import Breaker
from activities.transfers.endpoints import EndpointPorts
from adapters.aws.session import AwsSettings
from adapters.database import Database
from adapters.database.transfers.partners import SqlPartnerStore
from adapters.places.egress import Egress
from adapters.places.partner_places import PartnerPlaces
from adapters.places.pool import SessionPool
from adapters.places.sessions import Sessions
from adapters.ports import Blobs
from adapters.ports.transfers import PartnerStore, Staging
from adapters.secrets.references import ReferencedSecrets
from adapters.staging.notes import BlobNotes
from workers.settings.batches import read_aws
from workers.settings.check import declared_groups
from workers.settings.errors import SettingsError
from workers.settings.transfers import EndpointSettings, TransferFileSettings

if TYPE_CHECKING:
    from adapters.places.sftp_session import SftpSession

_OWN = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "TEMPORAL_API_KEY")


def partner_secrets(environment: Mapping[str, str]) -> ReferencedSecrets:
    """Secrets by reference; docflow's own are none of a partner's.

    Raises:
        SettingsError: A setting is wrong.
    """
    declared = (each for group in declared_groups() for each in group.declared())
    own = {name for each in declared if each.setting.secret for name in each.names}
    own |= {
        each.partition(":")[2] for each in TransferFileSettings.read(environment).key_references
    }
    return ReferencedSecrets(
        environment,
        own.union(_OWN),
        EndpointSettings.read(environment).secret_folders,
        secret_manager(environment),
    )


def partner_places(
    environment: Mapping[str, str],
    partners: PartnerStore,
    secrets: ReferencedSecrets,
    pool: "SessionPool[SftpSession] | None" = None,
) -> PartnerPlaces:
    """Endpoints, as the settings permit them.

    Args:
        environment: Settings.
        partners: Where sessions are counted.
        secrets: Finds those of partners.
        pool: Reuses sessions, from one step to the next.

    Raises:
        SettingsError: A setting is wrong.
    """
    settings = EndpointSettings.read(environment)
    egress = Egress(settings.hosts, settings.networks, settings.local, settings.folders)
    return PartnerPlaces(secrets, Sessions(partners), egress, pool=pool)


def endpoint_ports(
    environment: Mapping[str, str],
    database: Database,
    blobs: Blobs,
    staging: Staging,
    secrets: ReferencedSecrets,
    pool: "SessionPool[SftpSession]",
) -> EndpointPorts:
    """What actions at endpoints are given.

    Args:
        environment: Settings.
        database: Where records and sessions of partners are kept.
        blobs: The container of documents; notes of attempts lie there.
        staging: Bytes between actions.
        secrets: Finds those of partners.
        pool: Reuses sessions, from one step to the next.

    Raises:
        SettingsError: A setting is wrong.
    """
    partners = SqlPartnerStore(database)
    places = partner_places(environment, partners, secrets, pool)
    # A probe has ten seconds in all: one that waited for a session would look as if the partner
    # did not answer.
    probes = replace(places, sessions=Sessions(partners, wait=0.0), pool=None)
    breaker = Breaker(places, probes=probes)
    return EndpointPorts(breaker, partners, staging, BlobNotes(blobs), breaker.probing)


def secret_manager(environment: Mapping[str, str]) -> AwsSettings | None:
    """Where Secrets Manager is; None: no region is set, so there is none."""
    try:
        return read_aws(environment)
    except SettingsError:
        return None
