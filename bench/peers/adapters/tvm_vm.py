"""TVM: Relax with its default CPU pipeline, or tuned by MetaSchedule for a number of trials."""

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from adapters import aligned, load_inputs


class Peer:
    def __init__(self, setup):
        self.trials, self.threads = setup["trials"], setup["threads"]

    def load(self, request):
        target = tvm.target.Target({"kind": "llvm", "mcpu": request["mcpu"],
                                    "num-cores": self.threads})
        module = from_onnx(onnx.load(request["model"]), keep_params_in_input=False)
        with target:
            if self.trials > 0:
                pipeline = relax.get_pipeline("static_shape_tuning", target=target,
                                              total_trials=self.trials, work_dir=request["work"])
            else:
                pipeline = relax.get_pipeline("zero")
            module = pipeline(module)
        executable = tvm.compile(module, target)
        self.vm = relax.VirtualMachine(executable, tvm.cpu())
        self.values = [tvm.runtime.tensor(aligned(a))
                       for a in load_inputs(request["inputs"]).values()]
        self.vm.set_input("main", *self.values)

    def run(self):
        self.vm.invoke_stateful("main")

    def outputs(self):
        result = self.vm.get_outputs("main")
        single = not isinstance(result, (list, tuple)) and hasattr(result, "numpy")
        return [v.numpy() for v in ([result] if single else result)]

    def version(self):
        return tvm.__version__

    def detail(self):
        return f"{self.trials} trials" if self.trials else "no tuning"
