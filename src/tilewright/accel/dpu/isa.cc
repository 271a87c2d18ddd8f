#include "tilewright/accel/dpu/isa.h"

#include <fmt/format.h>

#include <type_traits>

#include "tilewright/accel/common/image.h"
#include "tilewright/base/check.h"

namespace tilewright::dpu {
namespace {

constexpr int kWordBits = 32, kOpcodeBits = 4, kMaskBits = kUnits;
constexpr int kHeadBits = kOpcodeBits + 2 * kMaskBits;

template <class T>
constexpr int words_of() {
  int word = 0, bit = kHeadBits;
  for (const auto& field : T::fields()) {
    if (bit + field.bits > kWordBits) ++word, bit = 0;
    bit += field.bits;
  }
  return word + 1;
}
static_assert(words_of<Load>() == 4 && words_of<Save>() == 4 && words_of<ConvInit>() == 4);
static_assert(words_of<Conv>() == 5 && words_of<PoolInit>() == 4 && words_of<Pool>() == 4);
static_assert(words_of<ElewInit>() == 5 && words_of<Elew>() == 4);
static_assert(words_of<Nop>() == 1 && words_of<End>() == 1);

template <class Field>
constexpr int64_t lowest(const Field& field) {
  return field.is_signed ? -(int64_t{1} << (field.bits - 1)) : 0;
}
template <class Field>
constexpr int64_t highest(const Field& field) {
  return (int64_t{1} << (field.is_signed ? field.bits - 1 : field.bits)) - 1;
}

/// What is wrong with a value among `values`, or nothing.
template <class Field>
std::string problem(const Field& field, int value, const Values& values) {
  const int64_t low = std::max<int64_t>(lowest(field), values.low);
  const int64_t high = std::min<int64_t>(highest(field), values.high);
  if (value < low || value > high)
    return fmt::format("`{}` is {}, but must be in {}..{}", field.name, value, low, high);
  if (value == values.hole) return fmt::format("`{}` {} is undefined", field.name, value);
  return {};
}

Error at_fault(const Insn& insn, const std::string& place, const std::string& what) {
  return Error{
      ErrorKind::Invalid, fmt::format("{}: {}", op_name(insn.op), what), place, {}, {}, {}};
}

/// All values that are wrong; `meaning`: those that fit but mean nothing, too.
void check_values(const Insn& insn, const std::string& place, bool meaning,
                  accel::Problems& problems) {
  std::visit(
      [&](const auto& op) {
        for (const auto& field : op.fields()) {
          const Values all;
          const std::string what = problem(field, op.*field.member, meaning ? field.values : all);
          if (!what.empty()) problems.add(at_fault(insn, place, what));
        }
      },
      insn.op);
}

/// Puts values into words from the lowest bit on.
class Packer {
 public:
  void put(uint32_t value, int bits) {
    if (bit_ + bits > kWordBits) flush();
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    word_ |= static_cast<uint32_t>((value & mask) << bit_);
    bit_ += bits;
  }
  std::string finish() && {
    flush();
    return std::move(bytes_);
  }

 private:
  void flush() {
    for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(word_ >> (8 * i) & 0xff);
    word_ = 0;
    bit_ = 0;
  }
  std::string bytes_;
  uint32_t word_ = 0;
  int bit_ = 0;
};

/// Takes values out of words; remembers whether a bit between them was set.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) { next(); }
  uint32_t take(int bits) {
    if (bit_ + bits > kWordBits) next();
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    const auto value = static_cast<uint32_t>(word_ >> bit_ & mask);
    bit_ += bits;
    return value;
  }
  bool finish() {
    check_rest();
    return clean_;
  }

 private:
  void check_rest() { clean_ = clean_ && (bit_ == kWordBits || word_ >> bit_ == 0); }
  void next() {
    check_rest();
    word_ = 0;
    for (int i = 3; i >= 0; --i) word_ = word_ << 8 | static_cast<uint8_t>(bytes_[at_ + i]);
    at_ += 4;
    bit_ = 0;
  }
  std::string_view bytes_;
  size_t at_ = 0;
  uint64_t word_ = 0;
  int bit_ = 0;
  bool clean_ = true;
};

template <class Field>
int sign_extended(const Field& field, uint32_t value) {
  const int64_t wide = value;
  return static_cast<int>(
      field.is_signed && wide > highest(field) ? wide - (int64_t{1} << field.bits) : wide);
}

/// The operation of an opcode with nothing in it. requires: defined.
template <size_t I = 0>
Op empty_op(int opcode) {
  if constexpr (I == std::variant_size_v<Op>) {
    TW_CHECK(false, "opcode {}", opcode);
    return Op{};
  } else {
    using T = std::variant_alternative_t<I, Op>;
    return T::opcode == opcode ? Op{T{}} : empty_op<I + 1>(opcode);
  }
}

}  // namespace

char letter(Unit unit) { return "LSCP"[static_cast<size_t>(unit)]; }

std::string_view op_name(const Op& op) {
  return std::visit([](const auto& one) { return std::decay_t<decltype(one)>::name; }, op);
}

Unit unit_of(const Insn& insn) {
  return std::visit(
      [](const auto& op) {
        using T = std::decay_t<decltype(op)>;
        TW_CHECK((!std::is_same_v<T, End>), "END runs nowhere");
        if constexpr (std::is_same_v<T, Nop>) return static_cast<Unit>(op.queue & 3);
        if constexpr (std::is_same_v<T, Load>) return Unit::Load;
        if constexpr (std::is_same_v<T, Save>) return Unit::Save;
        if constexpr (std::is_same_v<T, ConvInit> || std::is_same_v<T, Conv>) return Unit::Conv;
        return Unit::Misc;
      },
      insn.op);
}

int encoded_words(const Op& op) {
  return std::visit([](const auto& one) { return words_of<std::decay_t<decltype(one)>>(); }, op);
}

Status check_widths(const Insn& insn, const std::string& place) {
  accel::Problems problems;
  check_values(insn, place, /*meaning=*/false, problems);
  return std::move(problems).status();
}

Status check_fields(const Insn& insn, const std::string& place) {
  accel::Problems problems;
  const bool is_end = std::holds_alternative<End>(insn.op);
  const unsigned own = is_end ? 0xff : 1u << static_cast<int>(unit_of(insn)) | 0xf0;
  const auto check_mask = [&](unsigned mask, std::string_view name) {
    if ((mask & own) == 0) return;
    const std::string what = fmt::format("`{}` names its own unit, or one that is not there", name);
    problems.add(at_fault(insn, place, what));
  };
  check_mask(insn.dpon, "dpon");
  check_mask(insn.dpby, "dpby");
  check_values(insn, place, /*meaning=*/true, problems);
  return std::move(problems).status();
}

void encode(const Insn& insn, std::string& out) {
  Packer packer;
  std::visit(
      [&](const auto& op) {
        packer.put(static_cast<uint32_t>(op.opcode), kOpcodeBits);
        packer.put(insn.dpon, kMaskBits);
        packer.put(insn.dpby, kMaskBits);
        for (const auto& field : op.fields())
          packer.put(static_cast<uint32_t>(op.*field.member), field.bits);
      },
      insn.op);
  out += std::move(packer).finish();
}

std::string encode(const std::vector<Insn>& insns) {
  std::string out;
  for (const Insn& insn : insns) encode(insn, out);
  return out;
}

/// The instruction at byte `at`, which it moves behind it.
static Result<Insn> decode_one(std::string_view bytes, size_t& at) {
  const int opcode = static_cast<uint8_t>(bytes[at]) & 0xf;
  if (opcode >= static_cast<int>(std::variant_size_v<Op>))
    return fail(ErrorKind::Parse, fmt::format("undefined opcode {} at byte {}", opcode, at));
  Insn insn{0, 0, empty_op(opcode)};
  const auto size = static_cast<size_t>(encoded_words(insn.op)) * 4;
  if (size > bytes.size() - at)
    return fail(ErrorKind::Parse, fmt::format("{} at byte {} is cut off", op_name(insn.op), at),
                fmt::format("{} of {} bytes are there", bytes.size() - at, size));
  Unpacker unpacker(bytes.substr(at, size));
  unpacker.take(kOpcodeBits);
  insn.dpon = static_cast<uint8_t>(unpacker.take(kMaskBits));
  insn.dpby = static_cast<uint8_t>(unpacker.take(kMaskBits));
  std::visit(
      [&](auto& op) {
        for (const auto& field : op.fields())
          op.*field.member = sign_extended(field, unpacker.take(field.bits));
      },
      insn.op);
  if (!unpacker.finish())
    return fail(ErrorKind::Parse,
                fmt::format("unused bits are set in {} at byte {}", op_name(insn.op), at));
  at += size;
  return insn;
}

Result<std::vector<Insn>> decode(std::string_view bytes) {
  std::vector<Insn> insns;
  for (size_t at = 0; at < bytes.size();) insns.push_back(TW_TRY(decode_one(bytes, at)));
  return insns;
}

Result<std::vector<Insn>> decode(std::string_view bytes, size_t count) {
  std::vector<Insn> insns;
  for (size_t at = 0; insns.size() < count;) {
    if (at >= bytes.size())
      return fail(ErrorKind::Parse,
                  fmt::format("{} instructions are there, but not {}", insns.size(), count));
    insns.push_back(TW_TRY(decode_one(bytes, at)));
  }
  return insns;
}

}  // namespace tilewright::dpu
