// Random instructions whose fields hold any value that has a meaning, for tests.
#pragma once

#include <algorithm>
#include <utility>

#include "tilewright/accel/dpu/isa.h"
#include "tilewright/base/rng.h"

namespace tilewright::dpu::testing {

/// The least and the largest value of a field.
template <class Field>
std::pair<int, int> legal_range(const Field& field) {
  const int64_t half = int64_t{1} << (field.bits - 1);
  const int64_t low = field.is_signed ? -half : 0;
  const int64_t high = field.is_signed ? half - 1 : 2 * half - 1;
  return {static_cast<int>(std::max<int64_t>(low, field.values.low)),
          static_cast<int>(std::min<int64_t>(high, field.values.high))};
}

/// One value of a field, the extremes as often as any other.
template <class Field>
int random_value(const Field& field, Rng& rng) {
  const auto [low, high] = legal_range(field);
  int value = field.values.hole;
  while (value == field.values.hole)
    value = rng.chance(0.25)   ? low
            : rng.chance(0.33) ? high
                               : static_cast<int>(rng.between(low, high));
  return value;
}

template <size_t I = 0>
Op random_op(int64_t opcode, Rng& rng) {
  if constexpr (I + 1 < std::variant_size_v<Op>)
    if (opcode != static_cast<int64_t>(I)) return random_op<I + 1>(opcode, rng);
  std::variant_alternative_t<I, Op> op;
  for (const auto& field : op.fields()) op.*field.member = random_value(field, rng);
  return op;
}

inline Insn random_insn(Rng& rng) {
  Insn insn;
  insn.op = random_op(rng.below(std::variant_size_v<Op>), rng);
  if (std::holds_alternative<End>(insn.op)) return insn;
  const unsigned others = 0xf & ~(1u << static_cast<int>(unit_of(insn)));
  insn.dpon = static_cast<uint8_t>(rng.below(16) & others);
  insn.dpby = static_cast<uint8_t>(rng.below(16) & others);
  return insn;
}

}  // namespace tilewright::dpu::testing
