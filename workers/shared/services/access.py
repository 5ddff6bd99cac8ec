"""The audit, for those who may read it."""

from collections.abc import Sequence
from dataclasses import replace

from adapters.database.access import AuditEntry, AuditFilter, SqlAudit
from workers.shared.services.errors import Forbidden
from workers.shared.services.identity import ADMIN, Identity


async def read_audit(
    audit: SqlAudit, who: Identity, wanted: AuditFilter, limit: int
) -> Sequence[AuditEntry]:
    """Return entries of the organisations where somebody is an admin, the newest first.

    Raises:
        Forbidden: They are an admin nowhere.
    """
    if not who.may_anywhere(ADMIN):
        raise Forbidden("the audit is for admins: your token lacks the role admin")
    visible = replace(wanted, organisations=who.where(ADMIN), others=who.may(ADMIN))
    return await audit.list(visible, limit)
