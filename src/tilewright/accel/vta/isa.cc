#include "tilewright/accel/vta/isa.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

constexpr int kWordBits = 64, kUopBits = 32;
constexpr int kReplaceFirstBit = 63;

enum Opcode : uint64_t { kLoad = 0, kStore = 1, kGemm = 2, kFinish = 3, kAlu = 4 };

/// One field of an instruction: its name, its width, and how to get at its value. The tables of
/// slots below are the encoding: layout, encode, decode and range checks are read from them.
struct Slot {
  std::string_view name;
  int (*width)(const Config&);
  uint64_t (*get)(const Insn&);
  void (*set)(Insn&, uint64_t);
};

template <int Bits>
int fixed(const Config&) {
  return Bits;
}
template <Mem M>
int index_of(const Config& config) {
  return std::max(config.log_depth(M), 0);
}
int uop_end_width(const Config& config) { return index_of<Mem::Uop>(config) + 1; }
int replace_first_width(const Config& config) { return config.extensions.fused_reset ? 1 : 0; }

template <bool Deps::* M>
constexpr Slot flag(std::string_view name) {
  return {name, fixed<1>, [](const Insn& insn) -> uint64_t { return insn.deps.*M; },
          [](Insn& insn, uint64_t value) { insn.deps.*M = value != 0; }};
}

template <uint32_t Transfer::* M>
constexpr Slot transfer(std::string_view name, int (*width)(const Config&)) {
  return {name, width, [](const Insn& insn) -> uint64_t { return std::get<Transfer>(insn.op).*M; },
          [](Insn& insn, uint64_t value) {
            std::get<Transfer>(insn.op).*M = static_cast<uint32_t>(value);
          }};
}

const Loops& loops(const Insn& insn) {
  const Gemm* gemm = std::get_if<Gemm>(&insn.op);
  return gemm != nullptr ? gemm->loops : std::get<Alu>(insn.op).loops;
}
Loops& loops(Insn& insn) { return const_cast<Loops&>(loops(std::as_const(insn))); }

template <uint32_t Loops::* M>
constexpr Slot loop(std::string_view name, int (*width)(const Config&)) {
  return {name, width, [](const Insn& insn) -> uint64_t { return loops(insn).*M; },
          [](Insn& insn, uint64_t value) { loops(insn).*M = static_cast<uint32_t>(value); }};
}

uint64_t opcode_of(const Insn& insn) {
  if (const auto* move = std::get_if<Transfer>(&insn.op)) return move->store ? kStore : kLoad;
  if (std::holds_alternative<Gemm>(insn.op)) return kGemm;
  return std::holds_alternative<Alu>(insn.op) ? kAlu : kFinish;
}

// The opcode decides which table a decoder reads, so decoding does not set it.
constexpr Slot kOpcode = {"opcode", fixed<3>, opcode_of, [](Insn&, uint64_t) {}};

constexpr Slot kHeader[] = {kOpcode, flag<&Deps::pop_prev>("pop_prev"),
                            flag<&Deps::pop_next>("pop_next"), flag<&Deps::push_prev>("push_prev"),
                            flag<&Deps::push_next>("push_next")};

constexpr Slot kTransfer[] = {
    {"mem", fixed<3>,
     [](const Insn& insn) { return static_cast<uint64_t>(std::get<Transfer>(insn.op).mem); },
     [](Insn& insn, uint64_t value) { std::get<Transfer>(insn.op).mem = static_cast<Mem>(value); }},
    transfer<&Transfer::sram>("sram", fixed<16>),
    transfer<&Transfer::dram>("dram", fixed<32>),
    transfer<&Transfer::y_size>("y_size", fixed<16>),
    transfer<&Transfer::x_size>("x_size", fixed<16>),
    transfer<&Transfer::x_stride>("x_stride", fixed<16>),
    transfer<&Transfer::y_pad_top>("y_pad_top", fixed<4>),
    transfer<&Transfer::y_pad_bottom>("y_pad_bottom", fixed<4>),
    transfer<&Transfer::x_pad_left>("x_pad_left", fixed<4>),
    transfer<&Transfer::x_pad_right>("x_pad_right", fixed<4>),
};

constexpr Slot kReset = {
    "reset", fixed<1>,
    [](const Insn& insn) -> uint64_t {
      const Gemm* gemm = std::get_if<Gemm>(&insn.op);  // ALU instructions have the bit, unread
      return gemm != nullptr && gemm->reset;
    },
    [](Insn& insn, uint64_t value) {
      if (Gemm* gemm = std::get_if<Gemm>(&insn.op)) gemm->reset = value != 0;
    }};
constexpr Slot kUopBegin = loop<&Loops::uop_begin>("uop_begin", index_of<Mem::Uop>);
constexpr Slot kUopEnd = loop<&Loops::uop_end>("uop_end", uop_end_width);
constexpr Slot kOuter = loop<&Loops::outer>("outer", fixed<14>);
constexpr Slot kInner = loop<&Loops::inner>("inner", fixed<14>);
constexpr Slot kDstOuter = loop<&Loops::dst_outer>("dst_outer", index_of<Mem::Acc>);
constexpr Slot kDstInner = loop<&Loops::dst_inner>("dst_inner", index_of<Mem::Acc>);

constexpr Slot kGemmSlots[] = {
    kReset,
    kUopBegin,
    kUopEnd,
    kOuter,
    kInner,
    {"replace_first", replace_first_width,
     [](const Insn& insn) -> uint64_t { return std::get<Gemm>(insn.op).replace_first; },
     [](Insn& insn, uint64_t value) { std::get<Gemm>(insn.op).replace_first = value != 0; }},
    kDstOuter,
    kDstInner,
    loop<&Loops::src_outer>("src_outer", index_of<Mem::Inp>),
    loop<&Loops::src_inner>("src_inner", index_of<Mem::Inp>),
    loop<&Loops::wgt_outer>("wgt_outer", index_of<Mem::Wgt>),
    loop<&Loops::wgt_inner>("wgt_inner", index_of<Mem::Wgt>),
};

constexpr Slot kAluSlots[] = {
    kReset,
    kUopBegin,
    kUopEnd,
    kOuter,
    kInner,
    kDstOuter,
    kDstInner,
    loop<&Loops::src_outer>("src_outer", index_of<Mem::Acc>),
    loop<&Loops::src_inner>("src_inner", index_of<Mem::Acc>),
    {"op", fixed<3>,
     [](const Insn& insn) { return static_cast<uint64_t>(std::get<Alu>(insn.op).op); },
     [](Insn& insn, uint64_t value) { std::get<Alu>(insn.op).op = static_cast<AluOp>(value); }},
    {"use_imm", fixed<1>,
     [](const Insn& insn) -> uint64_t { return std::get<Alu>(insn.op).use_imm; },
     [](Insn& insn, uint64_t value) { std::get<Alu>(insn.op).use_imm = value != 0; }},
    {"imm", fixed<16>,
     [](const Insn& insn) -> uint64_t { return static_cast<uint16_t>(std::get<Alu>(insn.op).imm); },
     [](Insn& insn, uint64_t value) {
       std::get<Alu>(insn.op).imm = static_cast<int16_t>(static_cast<uint16_t>(value));
     }},
};

std::span<const Slot> body_of(const Insn& insn) {
  if (std::holds_alternative<Transfer>(insn.op)) return kTransfer;
  if (std::holds_alternative<Gemm>(insn.op)) return kGemmSlots;
  if (std::holds_alternative<Alu>(insn.op)) return kAluSlots;
  return {};
}

/// Gives fields their bits, from 0 up; one that would cross a unit begins the next.
class Packer {
 public:
  explicit Packer(int unit) : unit_(unit) {}

  int place(int width) {
    const int left = unit_ - cursor_ % unit_;
    if (width > left) cursor_ += left;
    const int begin = cursor_;
    cursor_ += width;
    return begin;
  }
  int place(const Slot& slot, int width) {
    if (slot.name != "replace_first") return place(width);
    if (width == 0) return cursor_;
    // The loop counts end at bit 63 or are already in the upper word: the bit is free, and what
    // follows starts behind it.
    cursor_ = std::max(cursor_, kWordBits);
    return kReplaceFirstBit;
  }

 private:
  int unit_;
  int cursor_ = 0;
};

/// Calls f(slot, first bit, width) for each field of an instruction, in order.
template <class F>
void for_each_slot(const Config& config, std::span<const Slot> body, F&& f) {
  Packer packer(kWordBits);
  for (const std::span<const Slot> part : {std::span<const Slot>(kHeader), body})
    for (const Slot& slot : part) {
      const int width = slot.width(config);
      f(slot, packer.place(slot, width), width);
    }
}

uint64_t mask(int width) { return width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1; }

struct UopLayout {
  int dst = 0, src = 0, wgt = 0;           ///< widths
  int dst_at = 0, src_at = 0, wgt_at = 0;  ///< first bits
};
UopLayout uop_layout(const Config& config) {
  UopLayout layout;
  layout.dst = index_of<Mem::Acc>(config);
  layout.src = std::max(index_of<Mem::Acc>(config), index_of<Mem::Inp>(config));
  layout.wgt = index_of<Mem::Wgt>(config);
  Packer packer(kUopBits);
  layout.dst_at = packer.place(layout.dst);
  layout.src_at = packer.place(layout.src);
  layout.wgt_at = packer.place(layout.wgt);
  return layout;
}

Result<Insn> empty_insn(uint64_t opcode) {
  Insn insn;
  switch (opcode) {
    case kLoad:
      insn.op = Transfer{};
      break;
    case kStore:
      insn.op = Transfer{.store = true};
      break;
    case kGemm:
      insn.op = Gemm{};
      break;
    case kFinish:
      insn.op = Finish{};
      break;
    case kAlu:
      insn.op = Alu{};
      break;
    default:
      return fail(ErrorKind::Invalid, fmt::format("undefined opcode {}", opcode),
                  "opcodes are 0 LOAD, 1 STORE, 2 GEMM, 3 FINISH, 4 ALU");
  }
  return insn;
}

Status check_codes(const Insn& insn) {
  if (const auto* move = std::get_if<Transfer>(&insn.op); move != nullptr && move->mem > Mem::Acc8)
    return fail(ErrorKind::Invalid,
                fmt::format("undefined memory id {}", static_cast<int>(move->mem)),
                "memory ids are 0 uop, 1 wgt, 2 inp, 3 acc, 4 out, 5 acc8");
  if (const auto* alu = std::get_if<Alu>(&insn.op); alu != nullptr && alu->op > AluOp::Mul)
    return fail(ErrorKind::Invalid,
                fmt::format("undefined ALU opcode {}", static_cast<int>(alu->op)),
                "ALU opcodes are 0 MIN, 1 MAX, 2 ADD, 3 SHR, 4 MUL");
  return {};
}

}  // namespace

Module module_of(const Config& config, const Insn& insn) {
  const Module arithmetic = config.extensions.pipeline4 ? Module::Alu : Module::Compute;
  if (std::holds_alternative<Gemm>(insn.op)) return Module::Compute;
  const auto* move = std::get_if<Transfer>(&insn.op);
  if (move == nullptr) return arithmetic;
  if (move->store) return Module::Store;
  if (move->mem == Mem::Inp || move->mem == Mem::Wgt) return Module::Load;
  return move->mem == Mem::Uop ? Module::Compute : arithmetic;
}

std::vector<Module> modules(const Config& config) {
  if (config.extensions.pipeline4)
    return {Module::Load, Module::Compute, Module::Alu, Module::Store};
  return {Module::Load, Module::Compute, Module::Store};
}

Word encode(const Config& config, const Insn& insn) {
  Word word{};
  for_each_slot(config, body_of(insn), [&](const Slot& slot, int begin, int width) {
    if (width == 0) return;
    const auto at = static_cast<size_t>(begin / kWordBits);
    word.at(at) |= (slot.get(insn) & mask(width)) << (begin % kWordBits);
  });
  return word;
}

Result<Insn> decode(const Config& config, const Word& word) {
  Insn insn = TW_TRY(empty_insn(word[0] & mask(3)));
  for_each_slot(config, body_of(insn), [&](const Slot& slot, int begin, int width) {
    const auto at = static_cast<size_t>(begin / kWordBits);
    slot.set(insn, width == 0 ? 0 : (word.at(at) >> (begin % kWordBits)) & mask(width));
  });
  TW_TRY_STATUS(check_codes(insn));
  return insn;
}

uint32_t encode(const Config& config, const Uop& uop) {
  const UopLayout at = uop_layout(config);
  const uint64_t word = (uop.dst & mask(at.dst)) << at.dst_at |
                        (uop.src & mask(at.src)) << at.src_at |
                        (uop.wgt & mask(at.wgt)) << at.wgt_at;
  return static_cast<uint32_t>(word);
}

Uop decode_uop(const Config& config, uint32_t word) {
  const UopLayout at = uop_layout(config);
  const uint64_t bits = word;
  return {static_cast<uint32_t>(bits >> at.dst_at & mask(at.dst)),
          static_cast<uint32_t>(bits >> at.src_at & mask(at.src)),
          static_cast<uint32_t>(bits >> at.wgt_at & mask(at.wgt))};
}

Status fits(const Config& config, const Insn& insn) {
  TW_TRY_STATUS(check_codes(insn));
  std::string bad;
  for_each_slot(config, body_of(insn), [&](const Slot& slot, int, int width) {
    const uint64_t value = slot.get(insn);
    if (value <= mask(width)) return;
    if (!bad.empty()) bad += "; ";
    bad += width == 0 ? fmt::format("`{}` = {} has no bits in this design", slot.name, value)
                      : fmt::format("`{}` = {} needs more than its {} bits (at most {})", slot.name,
                                    value, width, mask(width));
  });
  if (bad.empty()) return {};
  return fail(ErrorKind::Capacity, "an instruction does not fit its encoding: " + bad,
              disassemble(config, insn));
}

std::vector<FieldInfo> field_layout(const Config& config, std::string_view form) {
  std::vector<FieldInfo> fields;
  const auto add = [&fields](const Slot& slot, int begin, int width) {
    if (width > 0 || slot.name != "replace_first") fields.push_back({slot.name, begin, width});
  };
  if (form == "transfer") {
    for_each_slot(config, kTransfer, add);
  } else if (form == "gemm") {
    for_each_slot(config, kGemmSlots, add);
  } else if (form == "alu") {
    for_each_slot(config, kAluSlots, add);
  } else {
    TW_CHECK(form == "uop", "form {}", form);
    const UopLayout at = uop_layout(config);
    fields = {{"dst", at.dst_at, at.dst}, {"src", at.src_at, at.src}, {"wgt", at.wgt_at, at.wgt}};
  }
  return fields;
}

}  // namespace tilewright::vta
