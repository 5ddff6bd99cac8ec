"""What actions on files of transfers are given: staging area, keys, archives, scanner."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from activities.transfers.archives import ArchivePorts
from activities.transfers.crypto import CryptoPorts
from activities.transfers.receipt import ReceiptPorts
from activities.transfers.scan import ScanPorts
from adapters.files.archives import ArchiveFiles
from adapters.files.openpgp import GnuPg
from adapters.ports import Blobs
from adapters.ports.transfers import PartnerStore, Secrets, Staging
from adapters.scanning import Clamd, ClamdAddress
from adapters.secrets.references import ReferencedSecrets
from adapters.staging.store import BlobCopies, BlobStaging, SealedBlobs, StagingKeys
from workers.resources.blobs import open_blobs
from workers.resources.endpoints import secret_manager
from workers.settings.blobs import BlobSettings
from workers.settings.transfers import EndpointSettings, TransferFileSettings


@dataclass(frozen=True)
class FilePorts:
    """What activities on files are given."""

    staging: Staging
    crypto: CryptoPorts
    archives: ArchivePorts
    scan: ScanPorts
    receipts: ReceiptPorts
    copies: BlobCopies
    scanner: Clamd | None
    keeps_copies: bool
    """Whether there is a key to encrypt them with."""


def sealed_blobs(environment: Mapping[str, str], blobs: Blobs) -> SealedBlobs:
    """Blobs of the staging area, and kept copies, with their keys.

    Args:
        environment: Settings.
        blobs: The container of documents.

    Raises:
        SettingsError: A setting is wrong.
    """
    settings = TransferFileSettings.read(environment)
    # Its keys are docflow's own, which no partner is given.
    secrets = ReferencedSecrets(
        environment,
        folders=EndpointSettings.read(environment).secret_folders,
        aws=secret_manager(environment),
    )
    return SealedBlobs(blobs, StagingKeys(secrets, settings.staging_key, settings.old_staging_keys))


def file_ports(
    environment: Mapping[str, str],
    blobs: Blobs,
    partners: PartnerStore,
    secrets: Secrets,
    scratch: Path,
) -> FilePorts:
    """Wire the adapters of actions on files.

    Args:
        environment: Settings.
        blobs: The container of documents.
        partners: Records, with their keys.
        secrets: Of partners.
        scratch: Folder for temporary files.

    Raises:
        SettingsError: A setting is wrong.
    """
    settings = TransferFileSettings.read(environment)
    sealed = sealed_blobs(environment, blobs)
    staging, copies = BlobStaging(sealed), BlobCopies(sealed)
    scanner = None
    if settings.clamd_address is not None:
        scanner = Clamd(ClamdAddress.parsed(settings.clamd_address), settings.clamd_max_bytes)
    return FilePorts(
        staging=staging,
        crypto=CryptoPorts(GnuPg(secrets), partners, staging, scratch),
        archives=ArchivePorts(ArchiveFiles(), secrets, staging, scratch),
        scan=ScanPorts(
            scanner, _quarantine(environment, settings, blobs), staging, settings.clamd_undated
        ),
        receipts=ReceiptPorts(blobs, copies, staging),
        copies=copies,
        scanner=scanner,
        keeps_copies=settings.staging_key is not None,
    )


def _quarantine(
    environment: Mapping[str, str], settings: TransferFileSettings, blobs: Blobs
) -> Blobs:
    if settings.quarantine is None:
        return blobs
    named = BlobSettings.read(environment).model_copy(update={"container": settings.quarantine})
    return open_blobs(named)
