"""What Temporal's client raises is a refusal or an outage, by its status."""

import pytest
from temporalio.service import RPCError, RPCStatusCode

from workers.shared.services.errors import ServiceError, TemporalRefused, TemporalUnavailable
from workers.shared.services.runs import temporal_errors

MISSING = "Namespace default has no mapping defined for search attribute Pipeline"


@pytest.mark.parametrize(
    ("status", "message", "kind", "sentence"),
    [
        (
            RPCStatusCode.INVALID_ARGUMENT,
            "Bad id.",
            TemporalRefused,
            "does not take the request: Bad",
        ),
        (RPCStatusCode.INVALID_ARGUMENT, MISSING, TemporalUnavailable, "run `docflow setup`"),
        (RPCStatusCode.UNAVAILABLE, "gone", TemporalUnavailable, "does not answer at the moment"),
    ],
)
def test_what_temporal_never_takes_is_refused_with_its_reason(
    status: RPCStatusCode, message: str, kind: type[ServiceError], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence), temporal_errors():
        raise RPCError(message, status, b"")
