"""Programs of Gemmini for gemmini.sh, run by a simulator of its own from the bits of docs/gemmini.md.

gemmini_files.py replay DUMP   runs a dump with numpy; its DRAM must be what `final.bin` expects, byte by byte
"""

import json
import os
import struct
import sys

import numpy as np

NONE = 0xFFFFFFFF


def real(word):
    return np.float32(struct.unpack("<f", struct.pack("<I", word >> 32))[0])


def block(word):
    """Local address, columns, rows."""
    return word & 0xFFFFFFFF, word >> 32 & 0xFFFF, word >> 48


class Machine:
    def __init__(self, config, base, image):
        self.dim = config["dim"]
        self.spad = np.zeros((config["spad_kb"] * 1024 // self.dim, self.dim), np.int8)
        self.acc = np.zeros((config["acc_kb"] * 256 // self.dim, self.dim), np.int32)
        self.array = np.zeros((self.dim, self.dim), np.int64)
        self.base, self.dram = base, bytearray(image)
        self.loads = [None] * 3

    def execute(self, funct, rs1, rs2):
        if funct == 0:
            [self.config_ex, self.config_in, self.config_out][rs1 & 3](rs1, rs2)
        elif funct in (2, 1, 14):
            self.move_in(self.loads[[2, 1, 14].index(funct)], rs1, block(rs2))
        elif funct == 3:
            self.move_out(rs1, block(rs2))
        elif funct == 6:
            self.held, self.result = block(rs1), block(rs2)
        elif funct in (4, 5):
            if funct == 4:
                self.array[:] = self.matrix(self.held)
            self.multiply(block(rs1), block(rs2))
        else:
            raise ValueError(f"funct {funct}")

    def config_ex(self, rs1, rs2):
        self.stays = rs1 >> 2 & 1
        assert rs1 >> 3 & 0x7F == 0 and rs2 & 0xFFFFFFFF == 0, "activation, transposition or shift"
        self.a_stride, self.c_stride = rs1 >> 16 & 0xFFFF, rs2 >> 48

    def config_in(self, rs1, rs2):
        self.loads[rs1 >> 3 & 3] = (rs2, rs1 >> 16 & 0xFFFF, real(rs1), rs1 >> 2 & 1)

    def config_out(self, rs1, rs2):
        self.out = (rs2 & 0xFFFFFFFF, real(rs2), rs1 >> 2 & 3)

    def move_in(self, config, dram, to):
        stride, apart, scale, narrow = config
        at, cols, rows = to
        in_acc = at >> 31
        kind = np.dtype(np.int32 if in_acc and not narrow else np.int8)
        for r in range(rows):
            row = np.zeros(cols, kind)
            if dram:
                row = np.frombuffer(self.dram, kind, cols, dram - self.base + r * stride)
            if scale != 1:
                row = np.rint(row.astype(np.float32) * scale)
            for c in range(0, cols, self.dim):
                part = row[c:c + self.dim]
                place = (at & 0x1FFFFFFF) + r + c // self.dim * apart
                if not in_acc:
                    self.spad[place, :len(part)] = part
                elif at >> 30 & 1:
                    self.acc[place, :len(part)] += part.astype(np.int32)
                else:
                    self.acc[place, :len(part)] = part

    def move_out(self, dram, source):
        stride, scale, relu = self.out
        at, cols, rows = source
        for r in range(rows):
            place = (at & 0x1FFFFFFF) + r
            if not at >> 31:
                row = self.spad[place, :cols]
            elif at >> 29 & 1:
                row = self.acc[place, :cols]
            else:
                scaled = np.rint(self.acc[place, :cols].astype(np.float32) * scale)
                row = np.clip(scaled, 0 if relu else -128, 127).astype(np.int8)
            begin = dram - self.base + r * stride
            self.dram[begin:begin + row.nbytes] = row.tobytes()

    def matrix(self, source, stride=1):
        at, cols, rows = source
        result = np.zeros((self.dim, self.dim), np.int64)
        if at != NONE:
            result[:rows, :cols] = self.spad[at:at + rows * stride:stride][:rows, :cols]
        return result

    def multiply(self, a, other):
        a, other = self.matrix(a, self.a_stride), self.matrix(other)
        if self.stays:
            sums = a @ self.array + other
        else:
            sums = self.array = self.array + a @ other
        at, cols, rows = self.result
        if at == NONE:
            return
        assert at >> 31, "results go to the accumulator"
        place = at & 0x1FFFFFFF
        target = self.acc[place:place + rows * self.c_stride:self.c_stride][:, :cols]
        new = sums[:rows, :cols].astype(np.int32)
        target[:] = target + new if at >> 30 & 1 else new


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def replay(folder):
    manifest = json.loads(read(folder, "manifest.json"))
    machine = Machine(manifest["config"], manifest["image"]["address"], read(folder, manifest["image"]["file"]))
    commands = read(folder, "commands.bin")
    count = 0
    for run in manifest["runs"]:
        assert not run["patches"]
        begin = run["commands"]["offset"]
        for i in range(run["commands"]["count"]):
            machine.execute(*struct.unpack_from("<3Q", commands, begin + 24 * i))
            count += 1
    final = read(folder, manifest["final"])
    assert final != read(folder, manifest["image"]["file"]), "nothing was computed"
    wrong = sum(a != b for a, b in zip(machine.dram, final))
    assert len(final) == len(machine.dram) and wrong == 0, f"{wrong} bytes differ"
    print(f"{count} commands, {len(final)} bytes agree")


if __name__ == "__main__":
    {"replay": replay}[sys.argv[1]](*sys.argv[2:])
