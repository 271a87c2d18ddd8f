"""OpenVINO's CPU plugin: one stream, f32 throughout."""

import numpy as np
import openvino as ov

from adapters import aligned, load_inputs


class Peer:
    def __init__(self, setup):
        self.core, self.threads = ov.Core(), setup["threads"]

    def load(self, request):
        settings = {"INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1,
                    "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        compiled = self.core.compile_model(request["model"], "CPU", settings)
        self.request = compiled.create_infer_request()
        self.values = {n: aligned(a) for n, a in load_inputs(request["inputs"]).items()}
        for name, array in self.values.items():
            self.request.set_tensor(name, ov.Tensor(array, shared_memory=True))
        self.count = len(compiled.outputs)

    def run(self):
        self.request.infer()

    def outputs(self):
        return [np.array(self.request.get_output_tensor(i).data) for i in range(self.count)]

    def version(self):
        return ov.__version__.split("-")[0]

    def detail(self):
        return ""
