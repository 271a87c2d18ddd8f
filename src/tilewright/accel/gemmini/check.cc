#include "tilewright/accel/gemmini/check.h"

#include <fmt/format.h>

#include "tilewright/accel/gemmini/work.h"

namespace tilewright::gemmini {
namespace {

/// Which elements of the two memories were written.
class Written {
 public:
  explicit Written(const Config& config)
      : dim_(config.dim),
        spad_(static_cast<size_t>(config.spad_rows() * dim_), false),
        acc_(static_cast<size_t>(config.acc_rows() * dim_), false) {}

  void write(const LocalRows& rows) {
    std::vector<bool>& memory = rows.acc ? acc_ : spad_;
    for (int64_t r = 0; r < rows.rows; ++r)
      for (int64_t c = 0; c < rows.cols; ++c) memory[index(rows, r, c)] = true;
  }
  /// The first element that nothing wrote; empty if there is none.
  std::string missing(const LocalRows& rows, std::string_view what) const {
    const std::vector<bool>& memory = rows.acc ? acc_ : spad_;
    for (int64_t r = 0; r < rows.rows; ++r)
      for (int64_t c = 0; c < rows.cols; ++c)
        if (const size_t at = index(rows, r, c); !memory[at])
          return fmt::format("{} reads column {} of row {} of the {}, which nothing wrote", what,
                             at % static_cast<size_t>(dim_), at / static_cast<size_t>(dim_),
                             rows.acc ? "accumulator" : "scratchpad");
    return {};
  }

 private:
  size_t index(const LocalRows& rows, int64_t r, int64_t c) const {
    return static_cast<size_t>((rows.row + r * rows.stride + c / dim_ * rows.block_stride) * dim_ +
                               c % dim_);
  }

  int64_t dim_;
  std::vector<bool> spad_, acc_;
};

/// Bytes of the image that a run touches.
class Touched {
 public:
  explicit Touched(uint64_t bytes) : touched_(bytes, false) {}

  void add(uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end; ++at) touched_[at] = true;
  }
  bool any(uint64_t begin, uint64_t end) const {
    for (uint64_t at = begin; at < end; ++at)
      if (touched_[at]) return true;
    return false;
  }

 private:
  std::vector<bool> touched_;
};

/// One run.
class Checker {
 public:
  Checker(const Program& program, size_t run, size_t most, std::vector<Finding>& findings)
      : program_(program),
        run_(run),
        most_(most),
        findings_(findings),
        written_(program.config),
        loaded_(program.image.size()),
        stored_(program.image.size()) {}

  void check() {
    Context context(program_.config);
    const std::vector<Insn>& insns = program_.runs[run_].insns;
    for (insn_ = 0; insn_ < insns.size() && findings_.size() < most_; ++insn_) {
      const Result<Work> work = context.next(insns[insn_]);
      if (!work)
        find(Rule::Command, work.error().why.empty()
                                ? work.error().what
                                : fmt::format("{} ({})", work.error().what, work.error().why));
      else
        std::visit([&](const auto& w) { look(w); }, *work);
    }
  }

 private:
  void find(Rule rule, std::string text) {
    if (text.empty()) return;
    findings_.push_back({rule, run_, insn_,
                         fmt::format("{}: {}", to_string(program_.runs[run_].insns[insn_]), text)});
  }
  void look_dram(uint64_t dram, uint64_t stride, int64_t rows, int64_t row_bytes, bool writes) {
    const DramSpan span = dram_span(dram, stride, rows, row_bytes);
    if (span.begin < program_.base || span.end > program_.end()) {
      find(Rule::Range, fmt::format("[{:#x}, {:#x}) is outside of the image [{:#x}, {:#x})",
                                    span.begin, span.end, program_.base, program_.end()));
      return;
    }
    for (uint64_t r = 0; r < static_cast<uint64_t>(rows); ++r) {
      const uint64_t begin = dram - program_.base + r * stride;
      const uint64_t end = begin + static_cast<uint64_t>(row_bytes);
      if ((writes ? loaded_ : stored_).any(begin, end)) {
        find(Rule::Fence, fmt::format("row {} is {} in the same run, without a fence between", r,
                                      writes ? "loaded" : "stored"));
        break;
      }
    }
    for (uint64_t r = 0; r < static_cast<uint64_t>(rows); ++r) {
      const uint64_t begin = dram - program_.base + r * stride;
      (writes ? stored_ : loaded_).add(begin, begin + static_cast<uint64_t>(row_bytes));
    }
  }
  void look_rows(const LocalRows& rows, std::string_view what) {
    find(Rule::Undefined, written_.missing(rows, what));
  }

  void look(const Nothing&) {}
  void look(const MoveIn& move) {
    if (move.dram != 0)
      look_dram(move.dram, move.stride, move.to.rows, move.to.cols * move.element_bytes, false);
    if (move.adds) look_rows(move.to, "mvin that adds");
    written_.write(move.to);
  }
  void look(const MoveOut& move) {
    look_dram(move.dram, move.stride, move.from.rows, move.from.cols * move.element_bytes, true);
    look_rows(move.from, "mvout");
  }
  void look(const Multiply& m) {
    if (m.loads && m.held) look_rows(*m.held, m.weights_stay ? "B" : "D");
    look_rows(m.a, "A");
    if (m.other) look_rows(*m.other, m.weights_stay ? "D" : "B");
    if (!m.result) return;
    if (m.adds) look_rows(*m.result, "C that adds");
    written_.write(*m.result);
  }

  const Program& program_;
  size_t run_, most_;
  std::vector<Finding>& findings_;
  Written written_;
  Touched loaded_, stored_;
  size_t insn_ = 0;
};

}  // namespace

std::string_view name(Rule rule) {
  switch (rule) {
    case Rule::Command:
      return "command";
    case Rule::Range:
      return "range";
    case Rule::Undefined:
      return "undefined";
    case Rule::Fence:
      return "fence";
  }
  return "";
}

std::vector<Finding> check_program(const Program& program, size_t most) {
  std::vector<Finding> findings;
  for (size_t r = 0; r < program.runs.size() && findings.size() < most; ++r)
    Checker(program, r, most, findings).check();
  return findings;
}

}  // namespace tilewright::gemmini
