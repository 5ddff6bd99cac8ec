"""Refusals that only events know."""

from workers.services.errors import TooLarge, UnsupportedFile


class EventTooLarge(TooLarge):
    """More bytes than an event may have."""

    title = "The event is too large"


class UnsupportedEvent(UnsupportedFile):
    """A batch of events, or an event in another format than JSON."""

    kind = "unsupported-event"
    title = "Not an event in a supported format"
