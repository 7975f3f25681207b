"""Metrics of its own: counters, gauges and histograms."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        make = pb_utils.MetricFamily
        self.counters = make(name="py_requests", description="requests of the model", kind=make.COUNTER)
        self.gauges = make(name="py_level", description="a level", kind=make.GAUGE)
        self.histograms = make(name="py_sizes", description="sizes", kind=make.HISTOGRAM)
        self.counter = self.counters.Metric(labels={"model": "metrics", "kind": "a"})
        self.other = self.counters.Metric(labels={"model": "metrics", "kind": "b"})
        self.gauge = self.gauges.Metric(labels={"model": "metrics"})
        self.histogram = self.histograms.Metric(labels={"model": "metrics"}, buckets=[1.0, 2.5, 5.0])

    def execute(self, requests):
        told = {}
        self.counter.increment(2)
        told["counter"] = self.counter.value()
        self.other.increment(0.5)
        told["other"] = self.other.value()
        self.gauge.set(10)
        self.gauge.increment(-2.5)
        told["gauge"] = self.gauge.value()
        for size in (0.5, 1, 2, 4, 8):
            self.histogram.observe(size)
        text = json.dumps(told, sort_keys=True)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TOLD", np.array([text], dtype=object))]) for _ in requests]
