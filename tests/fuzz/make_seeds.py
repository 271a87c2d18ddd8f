#!/usr/bin/env python3
"""Writes inputs to begin fuzzing from: make_seeds.py FOLDER [PROGRAM].

FOLDER/onnx gets small random models; with a built tilewright, FOLDER/package gets packages of some of them,
FOLDER/vta_program, FOLDER/dpu_program and FOLDER/gpu_program the code of their launches, FOLDER/dpu_asm and
FOLDER/dpu_dump DPU programs as text and as dumps.
"""
import os
import subprocess
import sys
import tarfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "models"))
import generate  # noqa: E402


def write(folder, name, data):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def arrays(folder):
    from io import BytesIO

    np.random.seed(1)
    for name, array in (("f32", np.random.rand(2, 3).astype(np.float32)), ("i8", np.arange(4, dtype=np.int8))):
        text = BytesIO()
        np.save(text, array)
        write(folder, name + ".npy", text.getvalue())
        text = BytesIO()
        np.savez_compressed(text, x=array)
        write(folder, name + ".npz", text.getvalue())


def launches(folder, package, kind):
    """The members of a package that are code of launches."""
    with tarfile.open(package) as archive:
        for member in archive.getmembers():
            if member.name.startswith("code/") and not member.name.endswith(".so"):
                name = f"{os.path.basename(package)}_{os.path.basename(member.name)}"
                write(os.path.join(folder, kind), name, archive.extractfile(member).read())


def main():
    folder, program = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    for seed in range(60):
        model, _ = generate.generate(seed)
        if model.ByteSize() < 20000:
            write(os.path.join(folder, "onnx"), f"{seed}.onnx", model.SerializeToString())
    arrays(os.path.join(folder, "inputs"))
    if not os.path.exists(program):
        return
    models = sorted(os.listdir(os.path.join(folder, "onnx")))
    compiled = os.path.join(folder, "package")
    os.makedirs(compiled, exist_ok=True)
    for name in models[:10]:
        package = f"{compiled}/{name}.twm"
        done = subprocess.run([program, "compile", os.path.join(folder, "onnx", name), "-o", package],
                              capture_output=True, check=False)
        if done.returncode == 0:
            with tarfile.open(package) as archive:
                write(compiled, name + ".json", archive.extractfile("manifest.json").read())
    lenet = os.path.join(folder, "lenet.onnx")
    subprocess.run([program, "zoo", "lenet5", "-o", lenet], capture_output=True, check=True)
    quantized = ["--quantize", "random:1", "--fallback", "cpu"]
    for kind, options in (("gpu_program", ["--target", "opencl"]), ("vta_program", ["--target", "vta", *quantized]),
                          ("dpu_program", ["--target", "dpu", *quantized])):
        package = os.path.join(folder, kind + ".twm")
        subprocess.run([program, "compile", lenet, *options, "-o", package], capture_output=True, check=True)
        launches(folder, package, kind)
    dpu_texts(folder, program)


SMALL = """# layer conv
LOAD mode=1 jump_read=16 jump_write=1 length=2 channel=16 reg_id=3
LOAD dpby=CP jump_read=16 jump_write=1 length=4 channel=16
CONVINIT kernel_w=1 kernel_h=1 stride_w=1 stride_h=1 dilation_w=1 dilation_h=1 shift_cut=6 in_groups=1 jump_read=1 jump_write=1
CONV dpon=L dpby=P bank_id_out=8 bank_addr_bias=4 length=4 out_groups=1 valid_rows=1
# layer add
ELEWINIT num=2 act_type=1 jump_read_a=1 jump_read_b=1 jump_write=1
ELEW dpon=LC dpby=S bank_id_b=8 bank_id_out=16 length=4 channel_group=1 valid_rows=1
SAVE dpon=P bank_id=16 jump_read=1 jump_write=16 length=4 channel=16 reg_id=1
END
"""


def dpu_texts(folder, program):
    """A DPU program as text, and its dump: the files one after the other, as dpu_dump_fuzz.cc reads them."""
    write(os.path.join(folder, "dpu_asm"), "small.asm", SMALL.encode())
    text = os.path.join(folder, "dpu_asm", "small.asm")
    dump = os.path.join(folder, "small_dump")
    subprocess.run([program, "sim", text, "--target", "dpu", "--dump-program", dump], capture_output=True, check=True)
    dump = os.path.join(dump, "small")
    joined = b""
    for name in sorted(os.listdir(dump), key=lambda name: name != "manifest.json"):
        if name.endswith((".json", ".bin")) and not name.startswith("final"):
            with open(os.path.join(dump, name), "rb") as file:
                joined += (b"\n%% " + name.encode() + b"\n" if joined else b"") + file.read()
    write(os.path.join(folder, "dpu_dump"), "small", joined)


if __name__ == "__main__":
    main()
