"""ONNX Runtime in a process of its own: the reference for `verify` and the peer for `bench`.

Speaks JSON lines: one request on stdin, one reply on stdout. Arrays travel as .npy files.
A reply is {"ok": true, ...} or {"ok": false, "error": text}.
"""

import json
import os
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402

# Orders copies only; never counts as the operator's own time.
LAYOUT_NODES = {"ReorderInput", "ReorderOutput", "Transpose", "Cast", "Reshape", "MemcpyToHost"}


class Peer:
    def __init__(self):
        self.session = None
        self.binding = None
        self.path = None

    def hello(self, request):
        return {"version": ort.__version__}

    def load(self, request):
        """Opens a model. threads, profile, optimise (bools), intermediates (bool: every value becomes an output)."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = request.get("threads", 1)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        for name, size in request.get("dims", {}).items():
            options.add_free_dimension_override_by_name(name, size)
        model = request["model"]
        if not request.get("optimise", True):
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if request.get("intermediates"):
            model = self._with_intermediates(model)
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if request.get("profile"):
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(tempfile.mkdtemp(), "ort")
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = None
        describe = lambda x: {"name": x.name, "type": x.type, "shape": [str(d) for d in x.shape]}
        return {
            "version": ort.__version__,
            "inputs": [describe(x) for x in self.session.get_inputs()],
            "outputs": [describe(x) for x in self.session.get_outputs()],
        }

    @staticmethod
    def _with_intermediates(path):
        import onnx

        model = onnx.load(path)
        known = {o.name for o in model.graph.output}
        for node in model.graph.node:
            for name in node.output:
                if name and name not in known:
                    known.add(name)
                    model.graph.output.add().name = name
        target = os.path.join(tempfile.mkdtemp(), "intermediates.onnx")
        onnx.save(model, target, save_as_external_data=True, all_tensors_to_one_file=True)
        return target

    def set_inputs(self, request):
        feeds = {name: np.load(path) for name, path in request["inputs"].items()}
        self.feeds = {
            name: ort.OrtValue.ortvalue_from_numpy(np.asarray(value, order="C"))
            for name, value in feeds.items()
        }
        self.binding = self.session.io_binding()
        for name, value in self.feeds.items():
            self.binding.bind_ortvalue_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name, "cpu")
        return {}

    def run(self, request):
        """Runs once; writes every output to out_dir/<index>.npy."""
        self.session.run_with_iobinding(self.binding)
        names, paths = [], []
        for index, (output, value) in enumerate(
            zip(self.session.get_outputs(), self.binding.copy_outputs_to_cpu())
        ):
            path = os.path.join(request["out_dir"], f"{index}.npy")
            np.save(path, np.asarray(value, order="C"))
            names.append(output.name)
            paths.append(path)
        return {"names": names, "paths": paths}

    def bench(self, request):
        """Runs for about `seconds` (at least `min_runs` times); wall times in nanoseconds."""
        times, deadline = [], time.perf_counter_ns() + int(request["seconds"] * 1e9)
        run, binding, clock = self.session.run_with_iobinding, self.binding, time.perf_counter_ns
        while len(times) < request.get("min_runs", 3) or clock() < deadline:
            start = clock()
            run(binding)
            times.append(clock() - start)
        return {"times_ns": times}

    def profile_end(self, request):
        """Ends profiling; nanoseconds per run of every node that computes (layout copies apart)."""
        path = self.session.end_profiling()
        with open(path) as file:
            events = json.load(file)
        os.remove(path)
        runs, current = [], None
        for event in sorted(events, key=lambda e: e.get("ts", 0)):
            if event.get("name") == "model_run":
                continue
            args = event.get("args", {})
            if event.get("cat") != "Node" or not event.get("name", "").endswith("_kernel_time"):
                continue
            op = args.get("op_name", "")
            node = event["name"][: -len("_kernel_time")]
            if current is None or node in current:
                current = {}
                runs.append(current)
            current[node] = (op, event["dur"] * 1000)
        own = [
            sum(t for op, t in r.values() if op not in LAYOUT_NODES or len(r) == 1) for r in runs
        ]
        return {"own_ns": own}


def main():
    peer = Peer()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # anything a library prints must not mix with replies
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(peer, request["cmd"])(request)
            reply["ok"] = True
        except Exception as error:  # the parent decides what a failure means
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(reply) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
