"""Fields of a message that docflow does not know, named in what is recorded of its import."""

from contracts.imports import NOTE_CHARACTERS, HandlerOutcome, ImportMessage


def naming_unused_fields(message: ImportMessage, outcome: HandlerOutcome) -> HandlerOutcome:
    """The same outcome, its note naming the fields of the message that are not used."""
    names = message.unknown_fields
    if not names:
        return outcome
    sentence = f"Fields of the message that are not used: {', '.join(names)}."
    note = f"{outcome.note.rstrip('.')}. {sentence}" if outcome.note else sentence
    shortened = note if len(note) <= NOTE_CHARACTERS else f"{note[: NOTE_CHARACTERS - 1]}\u2026"
    return outcome.model_copy(update={"note": shortened})
