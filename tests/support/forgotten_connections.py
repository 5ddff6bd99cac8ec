"""Connections that the Azure SDK forgets."""

import gc
import warnings


def collect_forgotten_connections() -> None:
    """Collect them now, so that their warning does not fail a later test.

    The AMQP client of the SDK closes nothing where its opening was cancelled before there was a
    session: the socket stays open until it is garbage.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
