#!/usr/bin/env python3
"""Kernels and networks on a GPU, beside PyTorch (cuBLAS, cuDNN) where it is installed.

gpu.py gemm|operators|networks PROGRAM [--device cuda|opencl] [--minutes 9] [--only TEXT] [--json]

`operators` are the f32 cases of --workload FILE whose suite begins with flextensor/ or tvm/.

Both sides by the device's clock, one after the other for each case, on random data: the time of a
run out of ten captured in a CUDA graph (ours of 100 us and more: a graph each; on OpenCL the sum
over the kernels of a run; PyTorch's networks eager too). PyTorch runs in benchmark mode, the better
of its two layouts, TF32 off; on CUDA a second column has it on for both sides (--tf32 for ours).
First all packages are compiled, by half as many processes as there are processors; what does not
fit into the time is left out, and said so. The table of the end sums up by group.
"""

import argparse
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile
import time

# (m, n, k): squares, layers of language models, few rows, long and short sums.
SQUARES = [(n, n, n) for n in (8192, 4096, 2048, 1024, 512, 256)]
LAYERS = [
    shape
    for m in (128, 512, 2048)
    for shape in ((m, 4096, 4096), (m, 14336, 4096), (m, 4096, 14336))
]
OTHERS = [
    (64, 4096, 4096), (64, 12288, 4096), (256, 256, 16384), (512, 512, 8192), (1024, 1024, 8192),
    (2048, 2048, 256), (4096, 4096, 512), (8192, 8192, 1024), (8192, 1024, 1024),
    (1024, 8192, 1024), (16384, 1024, 1024), (4096, 2048, 1024), (2048, 8192, 2048),
    (768, 3072, 768), (3072, 768, 3072),
]  # yapf: disable
GEMMS = SQUARES + LAYERS + OTHERS
SUITES = ["flextensor/", "tvm/"]
NETWORKS = [
    "resnet18", "resnet50", "vgg16", "mobilenet_v2", "yolov1", "overfeat", "dqn", "dcgan", "lstm_lm"
]  # yapf: disable
CAPTURED = 10  # runs in a CUDA graph

try:
    import torch
except ImportError:
    torch = None
if torch is not None and not torch.cuda.is_available():
    torch = None


# --- Our side.


def call(arguments, seconds):
    """What the program prints as JSON. errors: RuntimeError with the first line of its message."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"not done in {seconds} s") from None
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "failed").splitlines()[0])
    return json.loads(done.stdout)


def has_tf32(case, options):
    """Whether products of the case are of f32, which both sides may round."""
    return options.target == "cuda" and case.get("case", {}).get("dtype", "float32") == "float32"


def compile_all(cases, options):
    """Packages of all cases; those that do not compile say why."""

    def one(case, key, flags):
        package = os.path.join(options.folder, f"{case['number']}{key}.twm")
        target = [] if case["subject"][0].endswith(".twm") else ["--target", options.target]
        try:
            call([options.program, "-q", "--json", "compile", *case["subject"], *target, *flags,
                  "-o", package], 240)  # yapf: disable
            case[key] = package
        except RuntimeError as error:
            case["error"] = str(error)

    workers = max(1, (os.cpu_count() or 2) // 2)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for case in cases:
            pool.submit(one, case, "package", [])
            if has_tf32(case, options):
                pool.submit(one, case, "tf32_package", ["--tf32"])


def ours(package, options):
    """Microseconds of a run among others, by the device's clock."""
    arguments = [options.program, "-q", "--json", "bench", package, "--profile"]
    arguments += ["--device", options.device, "--duration", str(options.seconds)]
    return call(arguments, 120)["rows"][0]["gpu_profile"]["run_us"]


# --- PyTorch's side.


def event_us(run, repeats, inner):
    """Median time between two CUDA events around `run`, which runs something `inner` times."""
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * start.elapsed_time(end) / inner)
    return sorted(times)[len(times) // 2]


def captured_us(run):
    """Time of one run, as part of a CUDA graph: without what launches cost the processor."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # benchmark mode decides before anything is captured
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CAPTURED):
            run()
    graph.replay()
    torch.cuda.synchronize()
    return event_us(graph.replay, 7, CAPTURED)


def eager_us(run):
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    return event_us(run, 15, 1)


def best_us(runs):
    """The fastest of several forms; nothing where none works."""
    times = []
    for run in runs:
        try:
            times.append(captured_us(run))
        except RuntimeError:
            torch.cuda.synchronize()
            times.append(eager_us(run))
    return min(times) if times else None


def allow_tf32(on):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = on


def window(params, name, axes, default):
    return tuple(params.get(f"{name}_{axis}", default) for axis in axes)


def torch_operator(case):
    """Forms of a workload case in PyTorch; none where it has no such operator."""
    functional, params = torch.nn.functional, case["params"]
    dtype = getattr(torch, case["dtype"])
    data = [torch.randn(shape, device="cuda").to(dtype) for shape in case["input_shapes"]]
    kind = case["operator"]
    if kind in ("gemm", "gemv"):
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
    conv = getattr(functional, f"conv_transpose{rank}d" if "transpose" in kind else f"conv{rank}d")
    runs = [lambda: conv(data[0], data[1], **options)]
    formats = {2: torch.channels_last, 3: torch.channels_last_3d}
    if rank in formats:
        last = [x.to(memory_format=formats[rank]) for x in data]
        runs.append(lambda: conv(last[0], last[1], **options))
    return runs


def theirs(case, options):
    """PyTorch's columns of a row."""
    if torch is None:
        return {}
    with torch.inference_mode():
        if options.what == "networks":
            import onnx_torch

            run = onnx_torch.load(case["subject"][0])
            allow_tf32(False)
            row = {"eager_us": eager_us(run), "torch_us": best_us([run])}
        else:
            runs = torch_operator(case["case"])
            allow_tf32(False)
            row = {"torch_us": best_us(runs)}
            if case["case"]["dtype"] != "float32" or not runs:
                return row
        allow_tf32(True)
        row["tf32_us"] = best_us([run] if options.what == "networks" else runs)
        return row


# --- Cases: a subject for the program, and what PyTorch needs to know.


def gemm_cases(options):
    cases = []
    for dtype, shapes in (("bfloat16", GEMMS), ("float32", GEMMS), ("float16", SQUARES)):
        for m, n, k in shapes:
            cases.append(
                {
                    "id": f"{dtype}/{m}x{n}x{k}",
                    "suite": dtype,
                    "operator": "gemm",
                    "params": {"m": m, "n": n, "k": k},
                    "dtype": dtype,
                    "input_shapes": [[m, k], [k, n]],
                    "output_shape": [m, n],
                    "macs": m * n * k,
                }
            )
    options.workload = os.path.join(options.folder, "gemm.json")
    with open(options.workload, "w") as file:
        json.dump({"cases": cases}, file)
    return operator_cases(options)


def operator_cases(options):
    with open(options.workload) as file:
        cases = json.load(file)["cases"]
    wanted = SUITES if options.what == "operators" else [""]
    for case in cases:
        chosen = any(case["suite"].startswith(suite) for suite in wanted)
        if chosen and (options.what == "gemm" or case["dtype"] == "float32"):
            subject = ["--workload", options.workload, "--id", case["id"]]
            yield {"name": case["id"], "group": case["suite"], "subject": subject, "case": case}


def network_cases(options):
    for name in NETWORKS:
        model = os.path.join(options.folder, name + ".onnx")
        if options.only in name:
            subprocess.run([options.program, "-q", "zoo", name, "-o", model], check=True)
        yield {"name": name, "group": "networks", "subject": [model]}


# --- What is printed.


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def ratio(row, peer):
    """Their time over ours; none where one is missing."""
    us = row.get("our_tf32_us" if peer == "tf32_us" else "us")
    return row[peer] / us if row.get(peer) and us else None


def ratios_of(rows, peer):
    return [ratio(row, peer) for row in rows if ratio(row, peer)]


def print_row(row):
    peers = [
        f"{name[:-3]} {row[name]:10.1f} us {ratio(row, name):6.2f}x"
        for name in ("torch_us", "eager_us", "tf32_us")
        if ratio(row, name)
    ]
    us = row.get("us", float("nan"))
    print(f"{row['case']:44} {us:10.1f} us  {'  '.join(peers)}{row.get('error', '')}", flush=True)


def print_summary(rows, left_out):
    peer = f"PyTorch {torch.__version__}" if torch is not None else "PyTorch with CUDA is not here"
    print(f"\n{peer}; geometric means of PyTorch's time over ours (TF32 off; eager; on for both)")
    print(f"{'group':34} {'cases':>5} {'failed':>6} {'off':>7} {'worst':>7} {'eager':>7} {'on':>7}")
    groups = list(dict.fromkeys(row["group"] for row in rows))
    for group in groups + (["all"] if len(groups) > 1 else []):
        some = [row for row in rows if group in ("all", row["group"])]
        off = ratios_of(some, "torch_us")
        cells = [geomean(off), min(off, default=None), geomean(ratios_of(some, "eager_us")),
                 geomean(ratios_of(some, "tf32_us"))]  # yapf: disable
        text = " ".join(f"{'-' if cell is None else f'{cell:.2f}x':>7}" for cell in cells)
        failed = sum("error" in row for row in some)
        print(f"{group:34} {len(some):5} {failed:6} {text}")
    if left_out:
        print(f"{left_out} cases did not fit into the time")


def measure(case, options):
    """A row; PyTorch's time is taken right after ours."""
    row = {"case": case["name"], "group": case["group"]}
    try:
        if "error" in case:
            raise RuntimeError(case["error"])
        row["us"] = ours(case["package"], options)
        if "tf32_package" in case:
            row["our_tf32_us"] = ours(case["tf32_package"], options)
        row.update(theirs(case, options))
    except (RuntimeError, ImportError, KeyError) as error:
        row["error"] = (str(error).splitlines() or [type(error).__name__])[0]
    if torch is not None:
        torch.cuda.empty_cache()
    return row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["gemm", "operators", "networks"])
    parser.add_argument("program")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--seconds", type=float, default=0.3, help="of measuring a case of ours")
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--workload", help="file of the cases of operators")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.what == "operators" and not options.workload:
        parser.error("operators: their file is missing; add --workload FILE")
    options.target = options.device.split(":")[0]
    end = time.monotonic() + 60 * options.minutes
    if torch is not None:
        torch.backends.cudnn.benchmark = True
    kinds = {"gemm": gemm_cases, "operators": operator_cases, "networks": network_cases}
    rows, left_out = [], 0
    with tempfile.TemporaryDirectory() as options.folder:
        cases = [case for case in kinds[options.what](options) if options.only in case["name"]]
        for number, case in enumerate(cases):
            case["number"] = number
        compile_all(cases, options)
        print(f"{len(cases)} cases compiled", file=sys.stderr, flush=True)
        for case in cases:
            if time.monotonic() > end:
                left_out += 1
                continue
            rows.append(measure(case, options))
            if not options.json:
                print_row(rows[-1])
            for key in ("package", "tf32_package"):
                if key in case:
                    os.remove(case[key])
    if options.json:
        print(json.dumps({"rows": rows, "left_out": left_out}, indent=2))
    else:
        print_summary(rows, left_out)
    return 1 if any("error" in row for row in rows) or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
