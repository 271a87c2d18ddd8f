#include "tilewright/accel/gemmini/isa.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

namespace tilewright::gemmini {
namespace {

enum Funct : uint32_t {
  kConfig = 0,
  kMvin2 = 1,
  kMvin = 2,
  kMvout = 3,
  kComputeNew = 4,
  kComputeHeld = 5,
  kPreload = 6,
  kFlush = 7,
  kMvin3 = 14,
};
constexpr uint32_t kMvinOf[] = {kMvin, kMvin2, kMvin3};

/// Bits [low, low + count) of a register.
uint64_t cut(uint64_t word, int low, int count) {
  return word >> low & ((uint64_t{1} << count) - 1);
}

uint64_t put_float(float value) { return uint64_t{std::bit_cast<uint32_t>(value)} << 32; }
float get_float(uint64_t word) { return std::bit_cast<float>(static_cast<uint32_t>(word >> 32)); }

uint64_t put_block(const Block& block) {
  return uint64_t{block.rows} << 48 | uint64_t{block.cols} << 32 | block.at.bits;
}
Block get_block(uint64_t word) {
  return {{static_cast<uint32_t>(word)},
          static_cast<uint16_t>(cut(word, 32, 16)),
          static_cast<uint16_t>(cut(word, 48, 16))};
}

uint64_t number_of(Activation activation) { return static_cast<uint64_t>(activation); }

tl::unexpected<Error> unknown(const RawCommand& raw, const std::string& why) {
  return fail(ErrorKind::Parse,
              fmt::format("no command that is known: funct {}, rs1 {:#x}, rs2 {:#x}", raw.funct,
                          raw.rs1, raw.rs2),
              why);
}

Result<Activation> get_activation(const RawCommand& raw, uint64_t bits) {
  if (bits <= 1) return static_cast<Activation>(bits);
  return unknown(raw, fmt::format("there is no activation {}", bits));
}

struct Encoder {
  RawCommand operator()(const ConfigEx& c) const {
    return {kConfig,
            (c.weights_stay ? 4u : 0u) | number_of(c.activation) << 3 |
                (c.only_strides ? 1u << 7 : 0u) | (c.a_transposed ? 1u << 8 : 0u) |
                (c.b_transposed ? 1u << 9 : 0u) | uint64_t{c.a_stride} << 16 | put_float(c.scale),
            c.shift | uint64_t{c.c_stride} << 48};
  }
  RawCommand operator()(const ConfigMvin& c) const {
    return {kConfig,
            1u | (c.narrow ? 4u : 0u) | static_cast<uint64_t>(c.which) << 3 |
                uint64_t{c.pixels} << 8 | uint64_t{c.block_stride} << 16 | put_float(c.scale),
            c.stride};
  }
  RawCommand operator()(const ConfigMvout& c) const {
    return {kConfig, 2u | number_of(c.activation) << 2, c.stride | put_float(c.scale)};
  }
  RawCommand operator()(const Mvin& c) const { return {kMvinOf[c.which], c.dram, put_block(c.to)}; }
  RawCommand operator()(const Mvout& c) const { return {kMvout, c.dram, put_block(c.from)}; }
  RawCommand operator()(const Preload& c) const {
    return {kPreload, put_block(c.held), put_block(c.result)};
  }
  RawCommand operator()(const Compute& c) const {
    return {c.preloaded ? kComputeNew : kComputeHeld, put_block(c.a), put_block(c.other)};
  }
  RawCommand operator()(const Flush& c) const { return {kFlush, c.skip ? 1u : 0u, 0}; }
};

Result<Insn> decode_config_ex(const RawCommand& raw) {
  if (cut(raw.rs1, 5, 2) != 0 || cut(raw.rs1, 10, 6) != 0 || cut(raw.rs2, 32, 16) != 0)
    return unknown(raw, "bits 5, 6, 10 to 15 of rs1 and 32 to 47 of rs2 must be zero");
  ConfigEx c;
  c.weights_stay = cut(raw.rs1, 2, 1) != 0;
  c.activation = TW_TRY(get_activation(raw, cut(raw.rs1, 3, 2)));
  c.only_strides = cut(raw.rs1, 7, 1) != 0;
  c.a_transposed = cut(raw.rs1, 8, 1) != 0;
  c.b_transposed = cut(raw.rs1, 9, 1) != 0;
  c.a_stride = static_cast<uint16_t>(cut(raw.rs1, 16, 16));
  c.scale = get_float(raw.rs1);
  c.shift = static_cast<uint32_t>(raw.rs2);
  c.c_stride = static_cast<uint16_t>(cut(raw.rs2, 48, 16));
  return Insn{c};
}

Result<Insn> decode_config_mvin(const RawCommand& raw) {
  const uint64_t which = cut(raw.rs1, 3, 2);
  if (which > 2) return unknown(raw, "there are three mvin");
  if (cut(raw.rs1, 5, 3) != 0) return unknown(raw, "bits 5 to 7 of rs1 must be zero");
  ConfigMvin c;
  c.which = static_cast<int>(which);
  c.narrow = cut(raw.rs1, 2, 1) != 0;
  c.pixels = static_cast<uint8_t>(cut(raw.rs1, 8, 8));
  c.block_stride = static_cast<uint16_t>(cut(raw.rs1, 16, 16));
  c.scale = get_float(raw.rs1);
  c.stride = raw.rs2;
  return Insn{c};
}

Result<Insn> decode_config_mvout(const RawCommand& raw) {
  // Without pooling the other bits of rs1 are ignored.
  if (cut(raw.rs1, 4, 2) != 0) return unknown(raw, "pooling is not supported");
  ConfigMvout c;
  c.activation = TW_TRY(get_activation(raw, cut(raw.rs1, 2, 2)));
  c.stride = static_cast<uint32_t>(raw.rs2);
  c.scale = get_float(raw.rs2);
  return Insn{c};
}

Result<Insn> decode_config(const RawCommand& raw) {
  switch (cut(raw.rs1, 0, 2)) {
    case 0:
      return decode_config_ex(raw);
    case 1:
      return decode_config_mvin(raw);
    case 2:
      return decode_config_mvout(raw);
    default:
      return unknown(raw, "there is no configuration 3");
  }
}

std::string text_of(Local at) {
  if (at.none()) return "none";
  if (!at.in_acc()) return fmt::format("spad[{}]", at.bits);
  return fmt::format("acc{}{}[{}]", at.adds() ? "+" : "", at.whole() ? "32" : "", at.row());
}
std::string text_of(const Block& block) {
  return fmt::format("{} {}x{}", text_of(block.at), block.rows, block.cols);
}

struct Printer {
  static const char* act(Activation a) { return a == Activation::Relu ? " relu" : ""; }
  std::string operator()(const ConfigEx& c) const {
    return fmt::format("config_ex {}{}{}{}{} a_stride={} c_stride={} shift={} scale={}",
                       c.weights_stay ? "ws" : "os", act(c.activation),
                       c.only_strides ? " only_strides" : "", c.a_transposed ? " a_transposed" : "",
                       c.b_transposed ? " b_transposed" : "", c.a_stride, c.c_stride, c.shift,
                       c.scale);
  }
  std::string operator()(const ConfigMvin& c) const {
    return fmt::format("config_mvin {} stride={} block_stride={} scale={}{}{}", c.which, c.stride,
                       c.block_stride, c.scale, c.narrow ? " narrow" : "",
                       c.pixels > 1 ? fmt::format(" pixels={}", c.pixels) : "");
  }
  std::string operator()(const ConfigMvout& c) const {
    return fmt::format("config_mvout stride={} scale={}{}", c.stride, c.scale, act(c.activation));
  }
  std::string operator()(const Mvin& c) const {
    const char* const names[] = {"mvin", "mvin2", "mvin3"};
    return fmt::format("{} dram={:#x} to {}", names[c.which], c.dram, text_of(c.to));
  }
  std::string operator()(const Mvout& c) const {
    return fmt::format("mvout dram={:#x} from {}", c.dram, text_of(c.from));
  }
  std::string operator()(const Preload& c) const {
    return fmt::format("preload {} result {}", text_of(c.held), text_of(c.result));
  }
  std::string operator()(const Compute& c) const {
    return fmt::format("compute_{} a {} other {}", c.preloaded ? "new" : "held", text_of(c.a),
                       text_of(c.other));
  }
  std::string operator()(const Flush& c) const { return c.skip ? "flush skip" : "flush"; }
};

/// The next word of a line, as a number.
Result<uint64_t> next_number(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, std::min(line.find_first_of(" \t"), line.size()));
  line.remove_prefix(word.size());
  const bool hex = word.starts_with("0x");
  const std::string_view digits = hex ? word.substr(2) : word;
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error == std::errc() && end == digits.data() + digits.size() && !digits.empty()) return value;
  return fail(ErrorKind::Parse, fmt::format("'{}' is no number", word), {},
              "a line is FUNCT RS1 RS2");
}

Result<Insn> parse_line(std::string_view line) {
  RawCommand raw;
  const uint64_t funct = TW_TRY(next_number(line));
  raw.rs1 = TW_TRY(next_number(line));
  raw.rs2 = TW_TRY(next_number(line));
  if (line.find_first_not_of(" \t\r") != line.npos)
    return fail(ErrorKind::Parse, "there is more than three numbers", {},
                "a line is FUNCT RS1 RS2");
  if (funct > 127) return fail(ErrorKind::Parse, fmt::format("funct {} has 7 bits", funct));
  raw.funct = static_cast<uint32_t>(funct);
  return decode(raw);
}

}  // namespace

RawCommand encode(const Insn& insn) { return std::visit(Encoder{}, insn.op); }

Result<Insn> decode(const RawCommand& raw) {
  switch (raw.funct) {
    case kConfig:
      return decode_config(raw);
    case kMvin:
      return Insn{Mvin{0, raw.rs1, get_block(raw.rs2)}};
    case kMvin2:
      return Insn{Mvin{1, raw.rs1, get_block(raw.rs2)}};
    case kMvin3:
      return Insn{Mvin{2, raw.rs1, get_block(raw.rs2)}};
    case kMvout:
      return Insn{Mvout{raw.rs1, get_block(raw.rs2)}};
    case kPreload:
      return Insn{Preload{get_block(raw.rs1), get_block(raw.rs2)}};
    case kComputeNew:
    case kComputeHeld:
      return Insn{Compute{raw.funct == kComputeNew, get_block(raw.rs1), get_block(raw.rs2)}};
    case kFlush:
      if (raw.rs1 > 1 || raw.rs2 != 0) return unknown(raw, "flush has one bit");
      return Insn{Flush{raw.rs1 == 1}};
    default:
      return unknown(raw, raw.funct >= 8 && raw.funct <= 21 ? "loop commands are not supported"
                                                            : std::string());
  }
}

std::string to_string(const Insn& insn) { return std::visit(Printer{}, insn.op); }

std::string line_of(const Insn& insn) {
  const RawCommand raw = encode(insn);
  return fmt::format("{} {:#018x} {:#018x}  # {}", raw.funct, raw.rs1, raw.rs2, to_string(insn));
}

Result<std::vector<std::vector<Insn>>> parse_lines(std::string_view text,
                                                   const std::string& place) {
  std::vector<std::vector<Insn>> runs(1);
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view whole = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    const std::string_view line = whole.substr(0, std::min(whole.find('#'), whole.size()));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == line.npos) continue;
    if (line.substr(first, line.find_last_not_of(" \t\r") + 1 - first) == "fence") {
      runs.emplace_back();
      continue;
    }
    Result<Insn> insn = parse_line(line);
    if (!insn)
      return tl::unexpected<Error>(std::move(insn.error()).at(fmt::format("{}:{}", place, number)));
    runs.back().push_back(*std::move(insn));
  }
  return runs;
}

}  // namespace tilewright::gemmini
