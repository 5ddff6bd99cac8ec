"""`python -m tests.sixth`: the docflow program with one pipeline more."""

from tests.sixth.register import PARCELS
from workers import catalogue

catalogue.PIPELINES = (*catalogue.PIPELINES, PARCELS)

if __name__ == "__main__":
    from workers.shared.cli import main

    main()
