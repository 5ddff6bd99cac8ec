"""Looks of watches, expected files, and keys of partners that expire."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Final, TypeVar

from temporalio import activity

from activities.shared.failures import Heartbeater, translate_failures
from activities.transfers.endpoints import now_utc, opened
from activities.transfers.operators_files import (
    BACK,
    first_day,
    has_arrived,
    judge,
    needs_notice,
    sentence_of,
)
from activities.transfers.records import Transfer
from activities.transfers.store import SqlSequenceLocks, SqlTransferStore
from activities.transfers.watch_store import SqlExpectedStore, SqlWatchStore
from adapters.files.openpgp.keyring import GnuPg
from adapters.ports.errors import Denied, UnreadableDocument
from adapters.ports.places import Entry, Place, Places
from adapters.ports.transfers import Arrival, EventSender, PartnerStore, RouteStore
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import TransferStatus, transfer_id_of
from workflows.transfers.partners import (
    HostKey,
    OpenPgpKey,
    Partner,
    PlaceKind,
    expiry_step,
    fingerprint,
)
from workflows.transfers.paths import (
    nearly_named,
    path_problem,
    printable,
    split_matches,
    widen_pattern,
)
from workflows.transfers.routes import RouteRule, matches, takes
from workflows.transfers.runs import (
    WARNINGS,
    KeyWarning,
    KeyWarnings,
    KeyWarningsInput,
    file_job_id,
)
from workflows.transfers.watches import (
    JUDGED,
    NAMED,
    Expectation,
    ExpectationCheckInput,
    ExpectedDay,
    ExpectedDays,
    ExpectedResult,
    ExpectedState,
    GapInput,
    Period,
    PollFailure,
    PollWatchInput,
    PollWatchResult,
    SeenFile,
    Version,
    Watch,
    WatchState,
    check_watch,
    detect_change,
    event_id,
    file_event_body,
    have_returned,
    is_watched,
    never_sent,
    newest_day,
    periods,
    returned_sentence,
    send_order,
    vanished_sentence,
)

_PAGE: Final = 500
"""Files that are written down in one transaction."""
_SENT_TOGETHER: Final = 20
"""Events that are written down together once they were started."""
_KEPT: Final = timedelta(days=30)
"""So long a file that vanished is still listed for people."""

_ABANDONED: Final = timedelta(days=1)
"""A file that its sender still writes, and has not touched for so long, was given up."""
_ENDED: Final = (TransferStatus.SUCCEEDED, TransferStatus.FAILED)
_NEXT: Final = timedelta(microseconds=1)
_SKEW: Final = timedelta(seconds=2)
"""By which the clocks of workers and server may differ."""

T = TypeVar("T")


@dataclass(frozen=True)
class WatchPollDeps:
    """What looks of watches are given."""

    places: Places
    partners: PartnerStore
    store: SqlWatchStore
    sender: EventSender
    transfers: SqlTransferStore
    turns: SqlSequenceLocks
    now: Callable[[], datetime] = now_utc


@dataclass
class _Look:
    """What one look has found so far."""

    watch: Watch
    at: datetime
    place: datetime
    """Of its next event among those of its watch."""
    files: int = 0
    sent: int = 0
    settling: int = 0
    vanished: list[SeenFile] = field(default_factory=list[SeenFile])
    gone_unsent: list[str] = field(default_factory=list[str])
    returned: int = 0
    problems: list[str] = field(default_factory=list[str])

    def problem(self, sentence: str) -> None:
        """Note one that people have to know of; the rest of many is counted by the files."""
        if len(self.problems) < NAMED:
            self.problems.append(sentence[:500])

    @property
    def result(self) -> PollWatchResult:
        return PollWatchResult(
            files=self.files,
            sent=self.sent,
            settling=self.settling,
            vanished=len(self.vanished),
            vanished_unsent=tuple(self.gone_unsent[:NAMED]),
            returned=self.returned,
            problems=tuple(self.problems),
        )


class Watching:
    """Looks at endpoints.

    Args:
        ports: Endpoints, what was seen before, and who starts events.
    """

    def __init__(self, ports: WatchPollDeps) -> None:
        self._ports = ports

    @activity.defn(name="transfers.look")
    @translate_failures
    async def look(self, order: PollWatchInput) -> PollWatchResult:
        """List once; done again, it starts no event twice.

        Raises:
            RuleViolation: There is no such partner, or its path is none.
            FileMissing: There is no such folder: an empty one is none that is missing.
            PartnerAway: The endpoint cannot be reached.
        """
        watch = order.watch
        check_watch(watch)
        async with Heartbeater() as beats:
            now, last = self._ports.now(), await self._ports.turns.newest(watch.name, watch.queue)
            # Clocks of workers differ: an event never comes before an earlier one.
            look = _Look(watch, now, now if last is None else max(now, last + _NEXT))
            entries, markers, is_whole = await self._listed(look)
            look.files = len(entries)
            if not is_whole:
                look.problem(
                    f"there are more than {watch.most:,} files at {printable(watch.path)}: those "
                    "beyond are not seen; move files away, or let the watch say `most`"
                )
            before = {each.path: each for each in await self._ports.store.seen(watch.name)}
            known = await self._ports.store.state(watch.name)
            await self._confirm_gone(look, known, entries)
            before |= await self._returned(look, known, entries)
            due: list[SeenFile] = []
            for page in _pages(_possible(look, entries), _PAGE):
                due += await self._page(look, page, before, markers)
                beats.beat(look.result)
            for some in _pages(sorted(due, key=send_order), _SENT_TOGETHER):
                sent = [await self._send(look, each) for each in some]
                await self._ports.store.put(watch.name, sent)
                beats.beat(look.result)
            if is_whole:
                # What is left of the files that were there before is there no more.
                await self._vanished(look, tuple(before.values()))
            await self._ports.store.prune(watch.name, look.at - _KEPT)
            result = look.result
            emptied, unsure = known and known.emptied, None
            if look.vanished and not look.files:
                unsure = look.at
                emptied = look.at if len(look.vanished) > 1 else emptied
            state = WatchState(
                watch=watch.name, looked=look.at, result=result, emptied=emptied, unsure=unsure
            )
            await self._ports.store.put_state(state)
        return result

    async def _listed(self, look: _Look) -> tuple[Sequence[Entry], frozenset[str], bool]:
        """The files, the markers, and whether there are no more files."""
        watch = look.watch
        end = opened(self._ports.places, self._ports.partners, watch.partner)
        async with end as (partner, place):
            widen = _same if partner.kind is PlaceKind.HTTPS else widen_pattern
            # First: a marker that is there is of a file that is complete when it is listed.
            markers = await self._markers(look, place, widen)
            found = await place.list(widen(watch.path), watch.most)
        listed = {each.path: each for each in found[: watch.most] if is_watched(watch, each.path)}
        named, missed, unfinished = split_matches(watch.path, listed)
        if watch.marker is not None:
            # The sender says itself that they are complete.
            named, unfinished = [*named, *unfinished], []
        _name_missed(look, watch.path, missed)
        for path in unfinished:
            look.settling += 1
            if (changed := listed[path].changed) is None or look.at - changed > _ABANDONED:
                look.problem(
                    f"{printable(path)}: no event is sent of it, as its sender never gave it its "
                    "name; have it sent again, or removed"
                )
        return [listed[path] for path in sorted(named)], markers, len(found) <= watch.most

    async def _markers(
        self, look: _Look, place: Place, widen: Callable[[str], str]
    ) -> frozenset[str]:
        watch = look.watch
        if watch.marker is None:
            return frozenset()
        pattern = f"{watch.path}{watch.marker}"
        found = await place.list(widen(pattern), watch.most)
        if len(found) > watch.most:
            look.problem(
                f"there are more than {watch.most:,} markers {printable(pattern)}: files whose "
                "markers are beyond are not sent; remove those of files that are gone, or let the "
                "watch say `most`"
            )
        named, missed, _ = split_matches(pattern, (each.path for each in found))
        _name_missed(look, pattern, missed)
        return frozenset(named)

    async def _page(
        self,
        look: _Look,
        page: Sequence[Entry],
        before: dict[str, SeenFile],
        markers: frozenset[str],
    ) -> Sequence[SeenFile]:
        """Write down what is new; returns what is due. Takes what it sees out of `before`."""
        new: list[SeenFile] = []
        due: list[SeenFile] = []
        for each in page:
            version, known = _version(each), before.pop(each.path, None)
            seen = detect_change(look.watch, version, known, markers, look.at)
            if seen.is_new:
                new.append(seen.file)
                await self._never_sent(look.watch, known)
            if seen.due:
                due.append(seen.file)
            elif seen.file.event is None and seen.file.problem is None:
                look.settling += 1
        # Before any event of theirs: another attempt has to make the same event.
        await self._ports.store.put(look.watch.name, new)
        return due

    async def _send(self, look: _Look, file: SeenFile) -> SeenFile:
        watch, job = look.watch, None
        try:
            known = await self._ports.transfers.get(_transfer(watch, event_id(watch, file)))
            again = known is not None and await self._comes_again(file, known)
            id = event_id(watch, file, again=again)
            if again or known is None or known.status not in _ENDED:
                # Before it is sent: whichever run begins first, jobs of one key keep this order.
                job = file_job_id(_transfer(watch, id))
                await self._ports.turns.reserve(watch.name, watch.queue, job, look.place)
                look.place += _NEXT
            await self._ports.sender.send(file_event_body(watch, file, again=again), watch.queue)
        except RuleViolation as refused:
            if job is not None:
                await self._ports.turns.unreserve(job)
            look.problem(f"{printable(file.path)}: no event is sent of it: {refused}")
            return file.model_copy(update={"problem": str(refused)[:500]})
        look.sent += 1
        return file.model_copy(update={"event": id})

    async def _never_sent(self, watch: Watch, file: SeenFile | None) -> None:
        """Give up the place of a version that is gone: a look may have been broken off there."""
        if file is not None and file.event is None:
            job = file_job_id(_transfer(watch, event_id(watch, file)))
            await self._ports.turns.unreserve(job)

    async def _comes_again(self, file: SeenFile, row: Transfer) -> bool:
        """Whether this version was there before, and its transfer failed: a person put it back.

        Raises:
            RuleViolation: It was there before, and its transfer did not fail.
        """
        first, *_ = await self._ports.transfers.trail(row.transfer_id)
        if first.at >= file.since - _SKEW:
            # Of a look that was broken off.
            return False
        if row.status is not TransferStatus.FAILED:
            raise RuleViolation(
                f"the same file was sent before, as transfer {row.transfer_id[:12]}, which is "
                f"{row.status}; to have it sent again, change its time (`touch`)"
            )
        return True

    async def _confirm_gone(
        self, look: _Look, known: WatchState | None, entries: Sequence[Entry]
    ) -> None:
        """Name files that the last look, which found nothing, missed before they were sent.

        Where this one finds them as they were, the folder was away for that look alone.
        """
        if known is None or known.unsure is None:
            return
        gone = await self._ports.store.vanished(look.watch.name, known.unsure)
        names = never_sent(gone, map(_version, entries))
        if entries:
            look.gone_unsent += names
        elif names:
            look.problem(vanished_sentence(look.watch, names[:NAMED], known.unsure))

    async def _returned(
        self, look: _Look, known: WatchState | None, entries: Sequence[Entry]
    ) -> dict[str, SeenFile]:
        """Files that had all gone at once and are back: those that were there before."""
        if known is None or known.emptied is None or not entries:
            return {}
        gone = await self._ports.store.vanished(look.watch.name, known.emptied)
        if not have_returned(gone, map(_version, entries)):
            return {}
        back = [each.model_copy(update={"vanished": None}) for each in gone]
        look.returned, failed = len(back), 0
        for each in gone:
            failed += await self._has_failed(look.watch, each)
        if failed or known.looked != known.emptied:
            look.problem(returned_sentence(len(gone), failed, known.emptied))
        for some in _pages(back, _PAGE):
            await self._ports.store.put(look.watch.name, some)
        return {each.path: each for each in back}

    async def _has_failed(self, watch: Watch, file: SeenFile) -> bool:
        if file.event is None:
            return False
        row = await self._ports.transfers.get(transfer_id_of(watch.source, file.event))
        return row is not None and row.status is TransferStatus.FAILED

    async def _vanished(self, look: _Look, gone: Sequence[SeenFile]) -> None:
        look.vanished += gone
        for each in gone:
            await self._never_sent(look.watch, each)
        if look.files:
            look.gone_unsent += never_sent(gone)
        for some in _pages(gone, _PAGE):
            marked = [each.model_copy(update={"vanished": look.at}) for each in some]
            await self._ports.store.put(look.watch.name, marked)

    @activity.defn(name="transfers.note_look")
    @translate_failures
    async def note_look(self, failure: PollFailure) -> None:
        """Note why a look failed; what the one before came to stays."""
        known = await self._ports.store.state(failure.watch) or WatchState(watch=failure.watch)
        await self._ports.store.put_state(known.model_copy(update={"problem": failure.problem}))


def _transfer(watch: Watch, event: str) -> str:
    return transfer_id_of(watch.source, event)


def _version(entry: Entry) -> Version:
    return Version(entry.path, entry.size, entry.changed, entry.tag)


def _name_missed(look: _Look, pattern: str, missed: Sequence[str]) -> None:
    """Have people know of files that their case or encoding alone keeps from being sent."""
    for sentence in nearly_named(pattern, missed):
        look.problem(f"{sentence}; `[cC]` or `*` in the path takes both, or have them renamed")


def _same(pattern: str) -> str:
    """Of an endpoint without lists, which has no patterns."""
    return pattern


def _possible(look: _Look, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Those whose names can be read; a notice names the others."""
    possible: list[Entry] = []
    problems: list[str] = []
    for each in entries:
        if problem := path_problem(each.path):
            problems.append(problem)
        else:
            possible.append(each)
    if problems:
        more = f", nor of {len(problems) - 1:,} others like it" if len(problems) > 1 else ""
        look.problem(f"{problems[0]}: no event is sent of it{more}; have it renamed")
    return possible


def _pages(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


_DAYS: Final = BACK.days + 1
_EXPECTED_PAGE: Final = 10_000
"""Arrivals that are read at once."""


@dataclass(frozen=True)
class ExpectedPorts:
    """What checks are given."""

    store: SqlExpectedStore
    routes: RouteStore
    now: Callable[[], datetime] = now_utc


class Expecting:
    """Judges days of expectations.

    Args:
        ports: Arrivals, what was recorded, and the rules.
    """

    def __init__(self, ports: ExpectedPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.check_expected")
    @translate_failures
    async def check_expected(self, order: ExpectationCheckInput) -> ExpectedResult:
        """Judge the days that are not over, and those that no check has seen; changes nothing.

        Raises:
            RuleViolation: The zone or the rule of a route is unknown.
        """
        expected, now = order.expectation, self._ports.now()
        newest = newest_day(expected, now)
        if newest is None:
            return ExpectedResult()
        rules = await self._rules(expected)
        recorded = {each.day: each for each in await self._ports.store.days(expected.name, _DAYS)}
        days: list[ExpectedDay] = []
        gaps: list[GapInput] = []
        arrived: list[ExpectedDay] = []
        for period in periods(expected, first_day(newest, tuple(recorded.values())), newest):
            before = recorded.get(period.day)
            if before is not None and before.state is ExpectedState.CLOSED:
                continue
            day = judge(expected, period, await self._arrivals(expected, rules, period, now), now)
            if needs_notice(before, day):
                sentence = sentence_of(expected, day)[:500]
                gaps.append(GapInput(day=day, sentence=sentence, notices=order.notices))
            if has_arrived(before, day):
                arrived.append(day)
            if day != before:
                days.append(day)
            if len(days) == JUDGED:
                # The next check continues behind them.
                break
        return ExpectedResult(days=tuple(days), gaps=tuple(gaps), arrived=tuple(arrived))

    async def _rules(self, expected: Expectation) -> Sequence[RouteRule]:
        """Those that an event has to match, all of them."""
        names = ("account_id", "source", "type", "subject")
        own = RouteRule(
            queue=expected.queue, rule="own", **{name: getattr(expected, name) for name in names}
        )
        if expected.rule is None:
            return [own]
        for rule in await self._ports.routes.rules():
            if (rule.queue, rule.rule) == (expected.queue, expected.rule):
                return [own, rule]
        raise RuleViolation(
            f"{expected.name} expects files of the rule {expected.queue}/{expected.rule}, which is "
            "not there; see `docflow route list`"
        )

    async def _arrivals(
        self, expected: Expectation, rules: Sequence[RouteRule], period: Period, now: datetime
    ) -> Sequence[datetime]:
        begin, end = period.begins, now if period.ends is None else min(period.ends, now)
        counted: list[datetime] = []
        known, limit = set[str](), _EXPECTED_PAGE
        while True:
            found = await self._ports.store.arrivals(expected.queue, begin, end, limit)
            new = [each for each in found if each.transfer_id not in known]
            counted += [each.at for each in new if _counts(expected, rules, each)]
            if len(found) < limit:
                return counted
            # Those of one moment may stand on two pages, or fill one.
            limit = limit if new else limit * 2
            begin = found[-1].at
            known = {each.transfer_id for each in found if each.at == begin}

    @activity.defn(name="transfers.record_expected")
    @translate_failures
    async def record_expected(self, order: ExpectedDays) -> None:
        """Record what notices were sent about."""
        await self._ports.store.record(order.days)


def _counts(expected: Expectation, rules: Sequence[RouteRule], arrival: Arrival) -> bool:
    if not matches(expected.file, arrival.file or ""):
        return False
    key = arrival.key
    return key is not None and all(takes(rule, key) for rule in rules)


class KeyExpiry:
    """Looks at the keys of all partners.

    Args:
        partners: Their records.
        openpgp: Reads keys.
        now: The time.
    """

    def __init__(
        self, partners: PartnerStore, openpgp: GnuPg, now: Callable[[], datetime] = now_utc
    ) -> None:
        self._partners, self._openpgp, self._now = partners, openpgp, now

    @activity.defn(name="transfers.expiring_keys")
    @translate_failures
    async def expiring_keys(self, order: KeyWarningsInput) -> KeyWarnings:
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
