#include "tilewright/rules/cpu/kernel_rules.h"

#include "tilewright/rules/cpu/attention.h"
#include "tilewright/rules/cpu/blocking.h"
#include "tilewright/rules/cpu/channels.h"
#include "tilewright/rules/cpu/dot.h"
#include "tilewright/rules/cpu/matrix.h"
#include "tilewright/rules/cpu/rows.h"
#include "tilewright/rules/cpu/scan.h"
#include "tilewright/rules/cpu/strips.h"
#include "tilewright/rules/cpu/tile.h"
#include "tilewright/rules/cpu/winograd.h"

namespace tilewright::rules {
namespace {

Answer<WholeSchedule> winograd(CpuKernel& kernel) {
  cost::RuleDecision why;
  Answer<schedule::Trace> trace = winograd_trace(kernel.func, kernel.target, kernel.threads, &why);
  if (!trace) return decline("{}", trace.error());
  return WholeSchedule{*std::move(trace), std::move(why)};
}

Answer<WholeSchedule> dot_products(CpuKernel& kernel) {
  Answer<schedule::Trace> trace = dot_trace(kernel.func, kernel.target, kernel.threads);
  if (!trace) return decline("{}", trace.error());
  return WholeSchedule{*std::move(trace), {}};
}

constexpr Rule<CpuKernel, WholeSchedule> kWholeRules[] = {
    {"winograd", "convolutions by Winograd: transforms and products of a strip of tiles in cache",
     winograd},
    {"dot-products", "sums of products of bytes or bf16, groups of them by one instruction",
     dot_products},
};

/// A rule of a kernel's draft from its function.
template <Answer<Done> (*schedule)(Draft&, const hw::CpuTarget&, int)>
Answer<Done> on_draft(CpuDraft& kernel) {
  return schedule(kernel.draft, kernel.target, kernel.threads);
}

constexpr Rule<CpuDraft, Done> kJoinedRules[] = {
    {"attention", "two products with a softmax between them, a strip of queries at a time",
     on_draft<schedule_attention>},
    {"matrix-tiles", "products by instructions that multiply small matrices of bytes or bf16",
     on_draft<schedule_matrices>},
    {"convolution-chain", "two or three convolutions in a row, one of them depthwise, by strips",
     on_draft<schedule_strips>},
    {"channel-blocks", "depthwise windows on plain rows, copied into channel blocks by strips",
     on_draft<schedule_blocking>},
    {"channel-window", "sums over neighbouring channels, whose operand is made by strips of rows",
     on_draft<schedule_channel_windows>},
    {"recurrence", "loops that hand values on from step to step: vectors and threads inside a step",
     [](CpuDraft& kernel) { return find_scans(kernel.draft.func()); }},
};

Answer<SumNest> register_tile(CpuSum& sum) {
  if (!sum.tile) return decline("{}", sum.tile.error());
  const auto applies = [&sum](const RegisterTile& tile) {
    const Draft::Mark before = sum.draft.mark();
    if (tile_reduction(sum.draft, sum.name, tile, sum.target, sum.threads)) return true;
    sum.draft.revert(before);
    return false;
  };
  if (applies(*sum.tile)) return SumNest::Own;
  for (size_t i = 0; i < sum.others.size(); ++i)
    if (applies(sum.others[i])) {
      sum.tile = sum.others[i];
      sum.taken = i + 1;
      return SumNest::Own;
    }
  return decline("a step that places the tile of `{}` does not apply to its loops", sum.name);
}

/// Sums that have a tile are not for rules of rows, even where it does not apply.
std::string has_tile(const CpuSum& sum) {
  return sum.tile ? fmt::format("the results of `{}` run along vector lanes", sum.name) : "";
}

Answer<SumNest> fused_rows(CpuSum& sum) {
  if (sum.tile) return decline("{}", has_tile(sum));
  if (Answer<Done> made = fuse_rows(sum.draft, sum.name, sum.target); !made)
    return decline("{}", made.error());
  return SumNest::OfRows;
}

Answer<SumNest> single_results(CpuSum& sum) {
  if (sum.tile) return decline("{}", has_tile(sum));
  if (Answer<Done> made = reduce_rows(sum.draft, sum.name); !made)
    return decline("{}", made.error());
  return SumNest::Own;
}

constexpr Rule<CpuSum, SumNest> kSumRules[] = {
    {"register-tile", "sums whose results run along vector lanes: a tile of them in registers",
     register_tile},
    {"fused-rows",
     "sums along rows and all that is computed from them, row by row (softmax, norms)", fused_rows},
    {"single-results", "other sums, one result after the other with what is computed from it",
     single_results},
    {"loops", "sums that no other rule takes: loops as they stand",
     [](CpuSum&) -> Answer<SumNest> { return SumNest::AsItStands; }},
};

/// Takes any kernel, without steps of its own: it is scheduled block by block.
constexpr Rule<RuleChoice, Done> kLastRules[] = {
    {"element-wise", "everything else: vectors along the last axis, rows shared out to threads",
     [](RuleChoice&) -> Answer<Done> { return Done{}; }},
};

}  // namespace

std::optional<WholeSchedule> ask_whole(CpuKernel& kernel, RuleChoice& choice) {
  return ask(kWholeRules, kernel, choice);
}

void ask_joined(CpuDraft& kernel, RuleChoice& choice) { ask(kJoinedRules, kernel, choice); }

SumNest ask_sum(CpuSum& sum, RuleChoice& choice) { return *ask(kSumRules, sum, choice); }

void leave_sum(const std::string& reason, RuleChoice& choice) {
  decline_all(kSumRules, reason, choice);
  choice.declined.pop_back();
  choice.rule = std::end(kSumRules)[-1].name, choice.what = std::end(kSumRules)[-1].what;
}

void leave_kernel(RuleChoice& choice) {
  decline_all(kSumRules, kNoSum, choice);
  ask(kLastRules, choice, choice);
}

std::vector<RuleInfo> cpu_rules() {
  std::vector<RuleInfo> all;
  list_rules(kWholeRules, all);
  list_rules(kJoinedRules, all);
  list_rules(kSumRules, all);
  list_rules(kLastRules, all);
  return all;
}

}  // namespace tilewright::rules
