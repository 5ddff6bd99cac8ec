"""The register of `parcels`, a pipeline that exists only in tests."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.sixth.contracts import ParcelAnswer, ParcelCount, ParcelStatus
from workers.shared.declared_schedules import Declared, every
from workers.shared.errors import SettingsError
from workers.shared.register import Bridge, Context, Pipeline, RunKind, scheduled
from workers.shared.resources import Resources

NAME = "parcels"


def _workflows() -> Sequence[type]:
    from tests.sixth.workflows import ParcelCounting, ParcelDelivery

    return (ParcelDelivery, ParcelCounting)


def _grams(environment: Mapping[str, str]) -> int:
    if not (grams := environment.get("PARCELS_GRAMS")):
        raise SettingsError("missing setting: PARCELS_GRAMS; the weight of a letter in grams")
    return int(grams)


def _folder(environment: Mapping[str, str]) -> Path:
    if not (folder := environment.get("PARCELS_FOLDER")):
        raise SettingsError("missing setting: PARCELS_FOLDER; the folder that parcels come into")
    return Path(folder)


@asynccontextmanager
async def _open(context: Context, settings: int) -> AsyncGenerator[int]:
    yield settings


def _activities(common: Resources, own: int) -> Sequence[object]:
    from tests.sixth.activities.weighing import ParcelWeighing

    return (ParcelWeighing(own),)


def _schedules() -> Mapping[str, Declared]:
    return {"parcel-count": Declared(NAME, "ParcelCounting", NAME, ParcelCount(), every(30))}


def _parcel(found: re.Match[str]) -> str:
    return found["parcel"]


def _title(parcel: str) -> str:
    return f"Parcel {parcel}"


PARCELS = Pipeline(
    name=NAME,
    title="Parcel",
    task_queue=NAME,
    contracts="tests.sixth.contracts",
    activities_package="tests.sixth.activities",
    runs=(
        RunKind(
            workflow="ParcelDelivery",
            pattern=re.compile(r"parcel/(?P<parcel>\w+)"),
            parse=_parcel,
            title=_title,
            status=ParcelStatus,
            answers={"retry": ParcelAnswer},
            states=("parked", "completed"),
        ),
        scheduled("parcel-count", "ParcelCounting"),
    ),
    workflows=_workflows,
    settings=_grams,
    open=_open,
    activities=_activities,
    worker_help="Work on parcels.",
    enabled_by="PARCELS_GRAMS",
    bridges=(
        Bridge(
            name="parcel-post",
            help="Receive parcels.",
            settings=_folder,
            run="tests.sixth.bridge:receive",
        ),
    ),
    schedules=_schedules,
    commands={NAME: "tests.sixth.commands:app"},
    replay_cases="tests.sixth.cases",
)
