"""Links of pages: to the last one where it is known, to the next one where it is not."""

import pytest
from fastapi import Request, Response

from workers.spreadsheets.api import describe_page, describe_uncounted_page


def _request() -> Request:
    return Request(
        {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "server": ("docflow", 80),
            "path": "/api/imports",
            "query_string": b"sort=OLDEST",
            "headers": [],
        }
    )


def test_a_counted_list_has_a_total_and_a_last_page() -> None:
    response = Response()
    describe_page(_request(), response, total=5, page=1, size=2)
    assert response.headers["x-total-count"] == "5"
    assert response.headers["link"] == (
        '</api/imports?sort=OLDEST&page=0&size=2>; rel="first", '
        '</api/imports?sort=OLDEST&page=2&size=2>; rel="last", '
        '</api/imports?sort=OLDEST&page=0&size=2>; rel="prev", '
        '</api/imports?sort=OLDEST&page=2&size=2>; rel="next"'
    )


@pytest.mark.parametrize(
    ("items", "page", "links"),
    [
        (2, 0, {"first": 0, "next": 1}),
        (2, 7_000, {"first": 0, "prev": 6_999, "next": 7_001}),
        (1, 7_001, {"first": 0, "prev": 7_000}),
    ],
)
def test_a_list_too_long_to_count_has_neither(items: int, page: int, links: dict[str, int]) -> None:
    response = Response()
    describe_uncounted_page(_request(), response, items, page, size=2)
    assert "x-total-count" not in response.headers
    assert response.headers["link"] == ", ".join(
        f'</api/imports?sort=OLDEST&page={number}&size=2>; rel="{name}"'
        for name, number in links.items()
    )
