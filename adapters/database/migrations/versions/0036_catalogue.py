"""The catalogue of spatial data: items with their times, box and JSON."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from adapters.database.models.base import Box

revision = "0036"
down_revision = "0035"

MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "stac_collections",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("content", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stac_collections"),
    )
    op.create_table(
        "stac_items",
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("starts", MOMENT, nullable=False),
        sa.Column("ends", MOMENT, nullable=False),
        sa.Column("area", Box().with_variant(sa.Text(), "sqlite"), nullable=False),
        sa.Column("content", JSON, nullable=False),
        sa.PrimaryKeyConstraint("collection", "id", name="pk_stac_items"),
        sa.ForeignKeyConstraint(
            ["collection"], ["stac_collections.id"], name="fk_stac_items_collection"
        ),
    )
    op.create_index(
        "ix_stac_items_starts_collection_id", "stac_items", ["starts", "collection", "id"]
    )
    op.create_index("ix_stac_items_area", "stac_items", ["area"], postgresql_using="gist")
