#!/usr/bin/env python3
"""Writes inputs to begin fuzzing from: make_seeds.py FOLDER [PROGRAM].

FOLDER/onnx gets small random models, FOLDER/spatial_* a small program of a spatial accelerator; with a built
tilewright, FOLDER/package gets packages of some of the models, FOLDER/{vta,dpu,gemmini,spatial,gpu}_program the code of
their launches, FOLDER/dpu_asm and FOLDER/dpu_dump DPU programs as text and as dumps.
"""
import json
import os
import struct
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
    spatial(folder)
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
                          ("dpu_program", ["--target", "dpu", *quantized]),
                          ("gemmini_program", ["--target", "gemmini", *quantized]),
                          ("spatial_program", ["--target", "spatial", *quantized])):
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


# Four rows of 16 bytes times 16 x 16 weights, after their bias (docs/spatial.md).
TILE = """# layer tile
LOAD dram=4096 run_axes=2 axis3=4,0,0,16,16 axis4=16,0,0,1,1
LOAD gives=C spad=64 dram=4224 run_axes=5 bias_words=16 axis4=256,0,0,1,1
COMPUTE takes=L gives=S spad=0,64 begins=1 row_step=16 j=16,-1 k=16,-1 loop5=4,0,16,0,1
STORE takes=C dram=4480 run_axes=2 bias_axis=4 shift=3 axis3=4,16,1,0,1 axis4=16,1,16,1,0
END
"""


def spatial_insns():
    """The instructions of TILE as bytes."""
    def insn(head, axes):
        return head.ljust(32, b"\0") + axes.ljust(96, b"\0")

    none = struct.pack("<IHHiI", 1, 0, 0, 0, 0)
    load = "<BBBBIQBbHIHH"
    rows = none * 3 + struct.pack("<IHHiIIHHiI", 4, 0, 0, 16, 16, 16, 0, 0, 1, 1)
    weights = none * 4 + struct.pack("<IHHiI", 256, 0, 0, 1, 1)
    loops = struct.pack("<HHIII", 1, 0, 0, 0, 0) * 5 + struct.pack("<HHIII", 4, 0, 16, 0, 1)
    once = struct.pack("<IiHHI", 1, 0, 1, 0, 0)
    sums = once * 3 + struct.pack("<IiHHIIiHHI", 4, 16, 1, 0, 1, 16, 1, 16, 1, 0)
    return [insn(struct.pack(load, 0, 0, 0, 0, 0, 4096, 2, -1, 1, 0, 0, 0), rows),
            insn(struct.pack(load, 0, 0, 2, 0, 64, 4224, 5, -1, 1, 0, 0, 16), weights),
            insn(struct.pack("<BBBBIIIBBBbIHHHbb", 1, 1, 4, 0, 0, 0, 64, 0, 0, 1, -1, 16, 1, 16, 16, -1, -1), loops),
            insn(struct.pack("<BBBBIQBbHBBbb", 2, 2, 0, 0, 0, 4480, 2, 4, 0, 0, 3, -128, 127), sums)]


def spatial(folder):
    """TILE as text, as the bytes of a package and as a dump, in the way dump_common.h reads it."""
    insns, image = b"".join(spatial_insns()), bytes(range(256)) + bytes(256)
    write(os.path.join(folder, "spatial_asm"), "tile.asm", TILE.encode())

    def number(value):
        return struct.pack("<Q", value)

    def text(data):
        return number(len(data)) + data

    program = (b"TWSPAPR1" + text(b'kind = "spatial"\n') + number(4096) + text(image) + number(1) + number(0)
               + text(insns) + number(1) + text(b"tile") + number(0) + number(4) + number(0)
               + number(1) + text(b"y") + number(4480) + number(64) + text(b"") + text(b""))
    write(os.path.join(folder, "spatial_program"), "tile", program)
    manifest = {"format": "spatial-program-dump", "version": 1, "design": {"kind": "spatial", "timing": {}, "host": {}},
                "image": {"address": 4096, "bytes": 512, "file": "image.bin"},
                "runs": [{"insns": {"file": "insns.bin", "offset": 0, "count": 4}, "patches": [],
                          "spans": [{"name": "tile", "begin": 0, "end": 4}]}],
                "inputs": [], "outputs": [{"name": "y", "address": 4480, "bytes": 64}]}
    files = b"".join(b"\n%% " + name + b"\n" + data for name, data in ((b"image.bin", image), (b"insns.bin", insns)))
    write(os.path.join(folder, "spatial_dump"), "tile", json.dumps(manifest).encode() + files)


if __name__ == "__main__":
    main()
