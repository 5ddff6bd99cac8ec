"""How far an activity is, by the three ways in which Primavera measures it."""

from decimal import Decimal

from adapters.files.schedules.records import ActivityRecord
from adapters.files.schedules.values import Values, parse_number

_HUNDRED = Decimal(100)
_SCALE = Decimal("0.000001")


def total(*parts: Decimal | None) -> Decimal | None:
    """Sum of the parts that are there; None when there is none."""
    present = [part for part in parts if part is not None]
    return sum(present, Decimal(0)) if present else None


def percent_complete(record: ActivityRecord, values: Values) -> Decimal | None:
    """Percent from 0 to 100, by the activity's own percent complete type.

    Physical percent is what a person entered. Duration percent is the part of the original
    duration that no longer remains, units percent the actual part of all units at completion.
    None where the file lacks what the type needs.
    """
    if record.fraction_complete:
        fraction = values.number(record.line, "percent_complete", record.fraction_complete)
        return None if fraction is None else _bounded(fraction * _HUNDRED)
    if record.status == "TK_Complete":
        return _HUNDRED
    match record.percent_type:
        case "CP_Drtn":
            return _duration_percent(record)
        case "CP_Units":
            done = total(_quiet(record.actual_labor), _quiet(record.actual_nonlabor))
            left = total(_quiet(record.remaining_labor), _quiet(record.remaining_nonlabor))
            return _share(done, total(done, left))
        case _:
            return values.number(record.line, "percent_complete", record.physical_percent)


def _duration_percent(record: ActivityRecord) -> Decimal | None:
    original = _quiet(record.original_duration)
    remaining = _quiet(record.remaining_duration)
    if original is None or remaining is None:
        return None
    if record.status == "TK_NotStart":
        return Decimal(0)
    return _share(original - remaining, original)


def _share(part: Decimal | None, whole: Decimal | None) -> Decimal | None:
    if part is None or whole is None:
        return None
    return _bounded(part * _HUNDRED / whole) if whole > 0 else Decimal(0)


def _bounded(percent: Decimal) -> Decimal:
    return min(max(percent, Decimal(0)), _HUNDRED).quantize(_SCALE)


def _quiet(raw: str) -> Decimal | None:
    """A number; None where there is none, or where it is reported elsewhere or fits no column."""
    try:
        return parse_number(raw.strip()) if raw.strip() else None
    except ValueError:
        return None
