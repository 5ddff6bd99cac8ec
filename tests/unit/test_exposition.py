"""Metrics of several processes are one page that Prometheus reads."""

from workers.shared.metrics import merged

FIRST = """\
# HELP runs Open runs
# TYPE runs gauge
runs{pipeline="imports"} 3
# HELP latency Seconds
# TYPE latency histogram
latency_bucket{le="1"} 2
latency_bucket{le="+Inf"} 2
latency_sum 0.5
latency_count{} 2
"""
SECOND = """\
# HELP latency Seconds
# TYPE latency histogram
latency_sum{text="a } b"} 0.7
# HELP polls Polls
# TYPE polls counter
polls 9 1700000000000
alone 1
# EOF
"""


def test_every_metric_is_described_once_and_every_sample_names_its_process() -> None:
    assert merged({"1": FIRST, "2": SECOND}) == (
        "# HELP runs Open runs\n"
        "# TYPE runs gauge\n"
        'runs{process="1",pipeline="imports"} 3\n'
        "# HELP latency Seconds\n"
        "# TYPE latency histogram\n"
        'latency_bucket{process="1",le="1"} 2\n'
        'latency_bucket{process="1",le="+Inf"} 2\n'
        'latency_sum{process="1"} 0.5\n'
        'latency_count{process="1"} 2\n'
        'latency_sum{process="2",text="a } b"} 0.7\n'
        "# HELP polls Polls\n"
        "# TYPE polls counter\n"
        'polls{process="2"} 9 1700000000000\n'
        'alone{process="2"} 1\n'
    )


def test_without_processes_there_is_nothing() -> None:
    assert merged({}) == ""
