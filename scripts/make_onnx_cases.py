"""Writes the backend test cases of the installed `onnx` package as folders of model and tensors.

usage: make_onnx_cases.py FOLDER    one sub-folder per case: model.onnx, test_data_set_0/{input,output}_N.pb
The nine light models and their expected outputs go to FOLDER/../light.
"""

import os
import shutil
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

warnings.filterwarnings("ignore")


def collect():
    from onnx.backend.test.case.node import collect_testcases

    for op_case in collect_testcases(None):
        if op_case.kind == "node":
            yield op_case


def to_proto(value, info):
    kind = info.type.WhichOneof("value")
    if kind == "tensor_type":
        if isinstance(value, onnx.TensorProto):
            return value
        return numpy_helper.from_array(np.asarray(value), info.name)
    return None


def write_case(folder, case):
    model = case.model
    for index, (inputs, outputs) in enumerate(case.data_sets[:1]):
        protos = []
        for kind, values, infos in (
            ("input", inputs, model.graph.input),
            ("output", outputs, model.graph.output),
        ):
            for i, (value, info) in enumerate(zip(values, infos)):
                proto = to_proto(value, info)
                if proto is None:
                    return "a sequence, map or optional"
                protos.append((f"{kind}_{i}.pb", proto))
        data = os.path.join(folder, case.name, f"test_data_set_{index}")
        os.makedirs(data, exist_ok=True)
        for name, proto in protos:
            with open(os.path.join(data, name), "wb") as file:
                file.write(proto.SerializeToString())
    with open(os.path.join(folder, case.name, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    return None


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    skipped, written = [], 0
    for case in collect():
        try:
            reason = write_case(folder, case)
        except Exception as error:  # a case that its own package cannot write is no case of ours
            reason = f"{type(error).__name__}: {error}"
        if reason:
            skipped.append((case.name, reason))
        else:
            written += 1
    light = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
    shutil.copytree(light, os.path.join(folder, "..", "light"), dirs_exist_ok=True)
    print(f"{written} cases written, {len(skipped)} have no plain tensors")


if __name__ == "__main__":
    main()
