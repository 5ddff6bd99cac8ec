"""An action of transfers: add a file that lists the others, and refuse too many."""

from collections.abc import Sequence

from docflow.extend import ActionContext, Contract, FileAction, InvalidDocument, StagedFile


class ListSettings(Contract):
    """What a job may set."""

    name: str = "files.txt"
    at_most: int = 1_000


class ListFiles(FileAction[ListSettings]):
    """The files as they are, and one more with their names and sizes."""

    settings = ListSettings

    async def run(self, context: ActionContext[ListSettings]) -> Sequence[StagedFile]:
        if len(context.files) > context.settings.at_most:
            raise InvalidDocument(
                f"{len(context.files):,} files came; {context.settings.at_most:,} may"
            )
        listed = context.folder / "list"
        listed.write_text("".join(f"{file.name} {file.blob.size}\n" for file in context.files))
        context.remarks.append(f"{len(context.files):,} files are listed")
        return [*context.files, await context.add(context.settings.name, listed)]
