"""ONNX Runtime on the CPU provider, inputs and outputs bound once."""

import numpy as np
import onnxruntime as ort

from adapters import aligned, load_inputs


class Peer:
    def __init__(self, setup):
        self.threads = setup["threads"]

    def load(self, request):
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self.session = ort.InferenceSession(request["model"], options, ["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.values = {n: aligned(a) for n, a in load_inputs(request["inputs"]).items()}
        for name, array in self.values.items():
            self.binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        feeds = self.session.run(None, self.values)
        self.results = [aligned(np.asarray(a)) for a in feeds]
        for value, array in zip(self.session.get_outputs(), self.results):
            self.binding.bind_output(value.name, "cpu", 0, array.dtype, array.shape,
                                     array.ctypes.data)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return self.results

    def version(self):
        return ort.__version__

    def detail(self):
        return ""
