"""Figures of a server in the form of Prometheus."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .boards import STATES, BoardSummary, board_summaries
from .models import ModelRepository, ServedModel
from .refusals import Refusal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (
    0.0005,
    0.001,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
)
_MODEL = ("model", "version")


class ServerMetrics:
    """Counts requests, and tells of queue and boards when it is asked.

    Parameters
    ----------
    repository : ModelRepository
    """

    def __init__(self, repository: ModelRepository) -> None:
        self._registry = CollectorRegistry()
        labels = (*_MODEL, "protocol")
        self._requests = Counter(
            "slipstick_requests",
            "Inference requests that were answered with results",
            labels,
            registry=self._registry,
        )
        self._images = Counter(
            "slipstick_images", "Images of these requests", labels, registry=self._registry
        )
        self._errors = Counter(
            "slipstick_request_errors",
            "Inference requests that were answered with an error",
            (*labels, "reason"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "slipstick_request_seconds",
            "Time from the request's last byte to its results",
            labels,
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._known: dict[tuple[ServedModel, str], tuple[Counter, Counter, Histogram]] = {}
        self._registry.register(_StateCollector(repository))

    def note(self, model: ServedModel, protocol: str, images: int, seconds: float) -> None:
        """A request has been answered."""
        known = self._known.get((model, protocol))
        if known is None:
            labels = (model.name, model.version, protocol)
            known = self._known[model, protocol] = (
                self._requests.labels(*labels),
                self._images.labels(*labels),
                self._seconds.labels(*labels),
            )
        requests, done, latency = known
        requests.inc()
        done.inc(images)
        latency.observe(seconds)
        model.statistics.note(images, seconds)

    def note_error(self, model: ServedModel | None, protocol: str, refusal: Refusal) -> None:
        """A request has been refused; None: it names no network."""
        # names of clients are no labels: their number has no bound
        name, version = ("", "") if model is None else (model.name, model.version)
        self._errors.labels(name, version, protocol, refusal.name.lower()).inc()
        if model is not None:
            model.statistics.refused += 1

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)


class _StateCollector(Collector):
    """Reads figures from the sessions when Prometheus asks."""

    def __init__(self, repository: ModelRepository) -> None:
        self._repository = repository

    def collect(self) -> Iterable[Metric]:
        """The queue of each network, and the boards."""
        queue = GaugeMetricFamily(
            "slipstick_queue_images", "Images that wait or are computed", labels=_MODEL
        )
        retried = CounterMetricFamily(
            "slipstick_retried_images",
            "Images that were computed again since a board failed",
            labels=_MODEL,
        )
        for model in self._repository.models:
            queue.add_metric((model.name, model.version), model.pending)
            retried.add_metric((model.name, model.version), model.session.retried)
        yield from (queue, retried)
        yield from _board_metrics(board_summaries(self._repository.models))


def _board_metrics(boards: list[BoardSummary]) -> Iterator[Metric]:
    labels = ("board", "device")
    state = GaugeMetricFamily(
        "slipstick_board_state", "1 for the state that the board has", labels=(*labels, "state")
    )
    images = CounterMetricFamily(
        "slipstick_board_images", "Images that the board has computed", labels=labels
    )
    failures = CounterMetricFamily(
        "slipstick_board_failures", "Times that the board failed", labels=labels
    )
    busy = CounterMetricFamily(
        "slipstick_board_busy_seconds", "Time in which the board had images", labels=labels
    )
    flying = GaugeMetricFamily(
        "slipstick_board_in_flight_images", "Images that the board has now", labels=labels
    )
    rate = GaugeMetricFamily(
        "slipstick_board_images_per_second",
        "Measured rate of the board while it works",
        labels=(*labels, *_MODEL),
    )
    for board in boards:
        own = (str(board.number), board.name)
        for each in STATES:
            state.add_metric((*own, each), float(each == board.state))
        images.add_metric(own, board.images)
        failures.add_metric(own, board.failures)
        busy.add_metric(own, board.busy_seconds)
        flying.add_metric(own, board.in_flight)
        for model, value in board.rates:
            rate.add_metric((*own, model.name, model.version), value)
    yield from (state, images, failures, busy, flying, rate)
