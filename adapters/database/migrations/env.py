"""Alembic's entry: migrates on the connection that `adapters.database.schema` passes."""

from alembic import context

from adapters.database.models.every import metadata

if context.is_offline_mode():
    raise RuntimeError("migrations run on a connection: use `docflow db upgrade`")

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
