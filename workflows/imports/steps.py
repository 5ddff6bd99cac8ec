"""Steps of imports as workflows call them; `activities.imports` carries them out."""

from temporalio import activity

from workflows.imports.runs import Closing, HandlerOutcome, ImportInput, Preparation


class ImportLifecycle:
    """Opens and closes imports."""

    @activity.defn(name="imports.prepare")
    async def prepare(self, order: ImportInput) -> Preparation: ...

    @activity.defn(name="imports.finish")
    async def finish(self, closing: Closing) -> HandlerOutcome: ...
