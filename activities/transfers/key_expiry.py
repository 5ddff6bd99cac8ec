"""`transfers.expiring_keys`: keys of partners that expire soon, or have."""

from collections.abc import Callable
from datetime import UTC, datetime, time

from temporalio import activity

from activities.failures import translate_failures
from activities.transfers.endpoints import now_utc
from adapters.ports import Denied, UnreadableDocument
from adapters.ports.transfer_files import OpenPgp
from adapters.ports.transfers import PartnerStore
from contracts.transfers import HostKey, OpenPgpKey, Partner
from contracts.transfers.key_expiry import WARNINGS, KeyWarning, KeyWarnings, KeyWarningsOrder
from domain.transfers.partner_rules import expiry_step, fingerprint


class KeyExpiry:
    """Looks at the keys of all partners.

    Args:
        partners: Their records.
        openpgp: Reads keys.
        now: The time.
    """

    def __init__(
        self, partners: PartnerStore, openpgp: OpenPgp, now: Callable[[], datetime] = now_utc
    ) -> None:
        self._partners, self._openpgp, self._now = partners, openpgp, now

    @activity.defn(name="transfers.expiring_keys")
    @translate_failures
    async def expiring_keys(self, order: KeyWarningsOrder) -> KeyWarnings:
        """Keys that need a notice: 30, 14 and 7 days before they expire, and afterwards.

        In the order of partners and of their records, so that the next call continues after them.
        """
        found: list[KeyWarning] = []
        for partner in await self._partners.all():
            if not partner.enabled:
                continue
            for host_key in partner.host_keys:
                found += self._host_key(partner, host_key)
            for key in partner.keys:
                found += await self._openpgp_key(partner, key)
        return KeyWarnings(warnings=tuple(found[order.skip :][:WARNINGS]))

    def _host_key(self, partner: Partner, key: HostKey) -> list[KeyWarning]:
        today = self._now().date()
        later = [
            each
            for each in partner.host_keys
            if each.valid_until is None or (key.valid_until and each.valid_until > key.valid_until)
        ]
        # One that another key follows is no loss.
        if key.valid_until is None or later:
            return []
        ends = datetime.combine(key.valid_until, time(), UTC)
        return self._warning(
            partner,
            f"host key {fingerprint(key)}",
            ends,
            expiry_step(key.valid_until, today),
            "no server that shows it is trusted afterwards",
        )

    async def _openpgp_key(self, partner: Partner, key: OpenPgpKey) -> list[KeyWarning]:
        name = f"{'our ' if key.own else ''}OpenPGP key {key.fingerprint}"
        try:
            async with self._openpgp.open([key]) as keyring:
                facts = next(iter(keyring.keys), None)
            if facts is not None and facts.lacking and not facts.decrypts:
                lacking = ", ".join(facts.lacking)
                raise Denied(f"its text lacks the private part of {lacking}, which decrypts")
            ends = facts and facts.expires
        except (Denied, UnreadableDocument) as problem:
            now = self._now()
            sentence = f"{name} of {partner.name} cannot be used: {problem}"[:500]
            return [
                KeyWarning(
                    partner=partner.name, key=name[:100], ends=now, step=0, sentence=sentence
                )
            ]
        if ends is None:
            return []
        meaning = (
            "it still decrypts afterwards, and signs nothing"
            if key.own
            else "nothing is encrypted to it afterwards: runs that need it park"
        )
        step = expiry_step(ends.date(), self._now().date())
        return self._warning(partner, name, ends, step, meaning)

    def _warning(
        self, partner: Partner, key: str, ends: datetime, step: int | None, meaning: str
    ) -> list[KeyWarning]:
        if step is None:
            return []
        when = "has expired on" if step == 0 else "expires on"
        contact = f" (contact: {partner.contact})" if partner.contact else ""
        sentence = f"{key} of {partner.name} {when} {ends:%Y-%m-%d}: {meaning}{contact}"
        return [
            KeyWarning(
                partner=partner.name, key=key[:100], ends=ends, step=step, sentence=sentence[:500]
            )
        ]
