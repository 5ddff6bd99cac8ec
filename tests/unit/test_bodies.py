"""What corrects a run is read as strictly as a message."""

import pytest

from workers.shared.services.bodies import CORRECTION_BYTES, correction_of
from workers.shared.services.errors import InvalidRequest


def test_a_correction_is_a_json_object() -> None:
    assert correction_of(b'\xef\xbb\xbf{"tile_size": 512}', "parameters") == {"tile_size": 512}
    assert correction_of(None, "parameters") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[1]", "action: the body is not a JSON object"),
        (b"{", "action: the body is not JSON"),
        (b'{"path": "a", "path": "b"}', "action: the field 'path' appears twice"),
        (b'{"size": NaN}', "action: NaN is not a number of JSON"),
        (b'{"size": 1e999}', "action: the number '1e999' is too large"),
        (b"\xff", "action: the body is not UTF-8"),
        (b'{"a":' * 100_000, "action: the body is nested too deeply"),
        (b" " * (CORRECTION_BYTES + 1), "action: the body has 1048577 bytes"),
    ],
)
def test_what_readers_would_disagree_about_is_refused(text: bytes, said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        correction_of(text, "action")
    assert str(refused.value).startswith(said)
