"""One step of a parcel."""

from dataclasses import dataclass

from temporalio import activity

from tests.sixth.contracts import ParcelInput, ParcelWeight


@dataclass(frozen=True)
class ParcelWeighing:
    """Weighs parcels on one scale."""

    grams_per_letter: int

    @activity.defn(name="parcels.weigh")
    async def weigh(self, order: ParcelInput) -> ParcelWeight:
        """Weigh one parcel."""
        return ParcelWeight(grams=len(order.parcel) * self.grams_per_letter)
