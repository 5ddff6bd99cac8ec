"""The chart, rendered once for each set of values."""

from collections.abc import Iterator

import helm_python
import pytest

from tests.support.chart import FOLDER, Charts, Rendered, full_values, sample_values


@pytest.fixture(scope="session")
def charts() -> Iterator[Charts]:
    """The chart, loaded once."""
    with helm_python.Chart.load(FOLDER) as chart:
        yield Charts(chart)


@pytest.fixture(scope="session")
def plain(charts: Charts) -> Rendered:
    """With no value set."""
    return charts.render({})


@pytest.fixture(scope="session")
def sample(charts: Charts) -> Rendered:
    """With every pipeline."""
    return charts.render(sample_values())


@pytest.fixture(scope="session")
def full(charts: Charts) -> Rendered:
    """With everything on."""
    return charts.render(full_values())
