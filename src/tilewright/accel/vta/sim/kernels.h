// The arithmetic of one step, on scalars unpacked to the widths a processor likes: inputs and
// weights int16, accumulators int32. All results wrap at 32 bits.
#pragma once

#include <cstdint>

#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta {

/// `bits`: 1, 2, 4, 8 or 16; two's complement, lowest index in the lowest bits.
void unpack(const uint8_t* bytes, int bits, int64_t count, int16_t* into);
/// `bits`: 1 to 32, a power of two; keeps the low bits of each value.
void pack(const int32_t* values, int bits, int64_t count, uint8_t* into);
/// 32-bit little-endian scalars.
void copy_words(const uint8_t* bytes, int64_t count, int32_t* into);

/// acc[lane] (+)= sum over pairs of inp[2p] wgt[p][lane][0] + inp[2p + 1] wgt[p][lane][1].
/// `acc` and `wgt` at multiples of 16 bytes if `lanes` is a multiple of 4.
void accumulate(int32_t* acc, const int16_t* inp, const int16_t* wgt, int pairs, int lanes,
                bool replace);

/// dst[lane] = op(dst[lane], src[lane]). requires: shift amounts in -31..31; dst and src the same
/// or apart.
void alu(AluOp op, int32_t* dst, const int32_t* src, int lanes);
void alu_imm(AluOp op, int32_t* dst, int32_t imm, int lanes);
/// The first lane whose shift amount is out of range, or -1.
int bad_shift(const int32_t* amounts, int lanes);

}  // namespace tilewright::vta
