"""Steps of `parcels` as its workflows call them."""

from temporalio import activity

from tests.sixth.contracts import ParcelInput, ParcelWeight


class ParcelWeighing:
    """Weighs parcels."""

    @activity.defn(name="parcels.weigh")
    async def weigh(self, order: ParcelInput) -> ParcelWeight: ...
