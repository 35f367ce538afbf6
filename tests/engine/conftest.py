"""What is counted and measured, as an SDK that collects it sees it."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader


class Collected:
    """What has been collected since it was last asked: by name and the attributes' values."""

    def __init__(self) -> None:
        delta = AggregationTemporality.DELTA
        self._reader = InMemoryMetricReader(preferred_temporality={Counter: delta, Histogram: delta})
        set_meter_provider(MeterProvider([self._reader]))

    def __call__(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else []:
            for metric in [m for scope in resource.scope_metrics for m in scope.metrics]:
                for point in metric.data.data_points:
                    name = ".".join(
                        [metric.name.removeprefix("timerjobs."), *map(str, (point.attributes or {}).values())]
                    )
                    found[name] = point.sum if hasattr(point, "sum") else point.value
        return found


@pytest.fixture(scope="session")
def reader() -> Collected:
    """The one SDK of the session: a process can have one."""
    return Collected()


@pytest.fixture
def collected(reader: Collected) -> Iterator[Collected]:
    """What the test adds."""
    reader()
    yield reader
    reader()
