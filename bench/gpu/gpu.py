#!/usr/bin/env python3
"""Kernels and networks on a GPU, beside PyTorch (cuBLAS, cuDNN) where it is installed.

gpu.py gemm|operators|networks PROGRAM [--device cuda|opencl] [--minutes 9] [--only TEXT] [--json]

Times are those of the device: the sum over all kernels of a run for Tilewright, CUDA events for
PyTorch (benchmark mode, the better of its two layouts, TF32 off). Random data, f32, medians of runs
that take turns. What does not fit into the time is left out, and said so.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

SIZES = [256, 512, 1024, 2048, 4096, 8192]
GEMMS = [(m, n, k) for m in SIZES for n in SIZES for k in SIZES if max(m, n, k) <= 4 * min(m, n, k)]
SUITES = ["flextensor/", "tvm/"]
NETWORKS = [
    "resnet18", "resnet50", "vgg16", "yolov1", "overfeat", "mobilenet_v2", "dqn", "dcgan", "lstm_lm"
]
WINDOW = ["kernel", "stride", "pad", "dilation", "output_pad"]

try:
    import torch
except ImportError:
    torch = None
if torch is not None and not torch.cuda.is_available():
    torch = None


def ours(program, device, *subject):
    """Microseconds of all kernels of one run, by the device's clock."""
    options = ["--device", device, "--profile", "--duration", "0.5"]
    done = subprocess.run(
        [program, "--json", "bench", *subject, *options], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "failed").splitlines()[0])
    return json.loads(done.stdout)["rows"][0]["gpu_profile"]["total"]["mean_us"]


def timed(run):
    """Median of CUDA events around `run`, in microseconds."""
    for _ in range(10):
        run()
    times = []
    for _ in range(50):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * start.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def window(params, name, axes, default):
    return tuple(params.get(f"{name}_{axis}", default) for axis in axes)


def torch_case(case):
    """The operator of a workload case in PyTorch, or nothing."""
    functional, params = torch.nn.functional, case["params"]
    data = [torch.randn(shape, device="cuda") for shape in case["input_shapes"]]
    kind = case["operator"]
    if kind in ("gemm", "gemv", "ttm"):
        return [lambda: torch.matmul(data[0], data[1])]
    if kind == "bilinear":
        return [lambda: functional.bilinear(data[0], data[2], data[1])]
    if "conv" not in kind or kind == "shift_conv2d":
        return []
    rank = len(case["input_shapes"][0]) - 2
    axes = ["l"] if rank == 1 else ["h", "w"] if rank == 2 else ["d", "h", "w"]
    options = {
        "stride": window(params, "stride", axes, 1),
        "padding": window(params, "pad", axes, 0),
        "dilation": window(params, "dilation", axes, 1),
        "groups": params.get("groups", 1),
    }
    if "transpose" in kind:
        options["output_padding"] = window(params, "output_pad", axes, 0)
    call = getattr(functional, f"conv_transpose{rank}d" if "transpose" in kind else f"conv{rank}d")
    runs = [lambda: call(data[0], data[1], **options)]
    if rank == 2:
        last = [x.to(memory_format=torch.channels_last) for x in data]
        runs.append(lambda: call(last[0], last[1], **options))
    return runs


def theirs(runs):
    return min(timed(run) for run in runs) if torch is not None and runs else None


def gemm_cases(_):
    for m, n, k in GEMMS:
        text = (
            f"tensor product(A: f32[{m}, {k}], B: f32[{k}, {n}]) {{\n"
            f"  C[i in {m}, j in {n}] = sum(l in {k}) A[i, l] * B[l, j]\n  return C\n}}\n"
        )
        case = {"operator": "gemm", "params": {}, "input_shapes": [[m, k], [k, n]]}
        yield f"{m}x{n}x{k}", "product.tw", text, [], case


def operator_cases(options):
    with open(options.workloads) as file:
        cases = json.load(file)["cases"]
    for case in cases:
        if case["dtype"] == "float32" and any(case["suite"].startswith(s) for s in SUITES):
            subject = ["--workload", options.workloads, "--id", case["id"]]
            yield case["id"], None, None, subject, case


def network_cases(options):
    for name in NETWORKS:
        model = os.path.join(options.folder, name + ".onnx")
        subprocess.run(
            [options.program, "-q", "zoo", name, "-o", model], check=True, capture_output=True
        )
        yield name, None, None, [model], None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["gemm", "operators", "networks"])
    parser.add_argument("program")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--only", default="")
    here = os.path.dirname(os.path.abspath(__file__))
    shared = os.path.join(here, "../../../shared/workloads/operators.json")
    parser.add_argument("--workloads", default=shared)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if torch is not None:
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    kinds = {"gemm": gemm_cases, "operators": operator_cases, "networks": network_cases}
    cases = kinds[options.what]
    end, rows, left_out = time.monotonic() + 60 * options.minutes, [], 0
    with tempfile.TemporaryDirectory() as options.folder:
        for name, file, text, subject, case in cases(options):
            if options.only not in name:
                continue
            if time.monotonic() > end:
                left_out += 1
                continue
            if file is not None:
                subject = [os.path.join(options.folder, file)]
                with open(subject[0], "w") as out:
                    out.write(text)
            row = {"case": name}
            try:
                row["us"] = ours(options.program, options.device, *subject)
                if torch is not None and case:
                    row["torch_us"] = theirs(torch_case(case))
            except RuntimeError as error:
                row["error"] = str(error)
            rows.append(row)
            if not options.json:
                peer = row.get("torch_us")
                ratio = f"{peer / row['us']:6.2f}x" if peer and "us" in row else ""
                us = row.get("us", float("nan"))
                print(f"{name:44} {us:12.1f} us {ratio} {row.get('error', '')}", flush=True)
    ratios = [row["torch_us"] / row["us"] for row in rows if row.get("torch_us") and "us" in row]
    summary = {
        "cases": len(rows),
        "failed": sum("error" in row for row in rows),
        "left_out": left_out,
        "geomean": math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None,
        "peer": f"PyTorch {torch.__version__}" if torch is not None else "PyTorch with CUDA is not here",
    }
    print(json.dumps({"rows": rows, **summary}, indent=2) if options.json else summary)
    return 1 if summary["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
