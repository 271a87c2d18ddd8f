#include "tilewright/driver/tuning/conv_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "tilewright/compile/conv_record.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/rules/cpu/conv_algorithm.h"
#include "tilewright/rules/cpu/winograd.h"
#include "tilewright/tune/tuner.h"

namespace tilewright::driver {
namespace {

/// Times the rule's form, by the model: beyond, tuning cannot turn the order around. The model errs
/// more between algorithms than between tiles of one.
constexpr double kHopeless = 1.6, kHopelessTile = 1.3;

/// Steps around a node have names that begin with its own.
bool is_part(const std::string& step, const ConvForms& conv) {
  return std::any_of(conv.nodes.begin(), conv.nodes.end(), [&](const std::string& node) {
    return step == node || step.starts_with(node + "/");
  });
}

std::optional<tensor::Conv2dShape> winograd_conv(const Func& func, const hw::CpuTarget& target) {
  const std::optional<cost::WinogradShape> shape = rules::winograd_shape(func, target);
  if (!shape) return std::nullopt;
  return tensor::Conv2dShape{shape->batch, shape->channels, shape->filters, shape->height,
                             shape->width, shape->taps_h,   shape->taps_w};
}

}  // namespace

records::Record form_record(const tensor::Conv2dShape& conv, int64_t m,
                            const compile::CompileOptions& options, double cost) {
  records::Record record;
  record.workload = compile::conv_key(conv);
  record.name = compile::conv_text(conv);
  record.kind = records::kAlgorithmKind;
  record.target = cpu_key(options.cpu(), options.threads);
  record.machine = options.cpu().machine;
  record.unit = "ns";
  record.compiler = compiler_key();
  record.point = compile::form_point(m);
  record.outcome = "ok";
  record.cost = record.least = cost;
  record.searcher = "race";
  record.when = tune::utc_now();
  return record;
}

std::vector<int64_t> other_tiles(const tensor::Conv2dShape& conv, int64_t rule,
                                 const compile::CompileOptions& options) {
  const auto time = [&](int64_t m) {
    return rules::predict_conv(conv, m, options.cpu(), options.threads).total();
  };
  const double usual = time(rule);
  std::vector<int64_t> tiles = rules::winograd_tiles(conv);
  tiles.push_back(0);
  std::vector<std::pair<double, int64_t>> ranked;
  for (const int64_t m : tiles)
    if (m != rule) ranked.emplace_back(time(m), m);
  std::sort(ranked.begin(), ranked.end());
  std::vector<int64_t> chosen;
  bool other_algorithm = false;
  for (const auto& [t, m] : ranked) {
    const bool first_of_other = (m == 0) != (rule == 0) && !other_algorithm;
    other_algorithm |= first_of_other;
    if (t < (first_of_other ? kHopeless : kHopelessTile) * usual) chosen.push_back(m);
  }
  return chosen;
}

compile::FindForm find_form(const std::vector<records::Record>& records) {
  const auto by_key = std::make_shared<std::map<std::string, records::Record>>();
  for (const records::Record& record : records) (*by_key)[record.workload] = record;
  return [by_key](const tensor::Conv2dShape& conv) -> std::optional<records::Record> {
    const auto found = by_key->find(compile::conv_key(conv));
    return found == by_key->end() ? std::nullopt : std::optional(found->second);
  };
}

Result<std::optional<OtherForms>> compile_other_forms(const Subject& subject,
                                                      const compile::CompiledModel& rule,
                                                      const std::vector<tensor::Conv2dShape>& asked,
                                                      size_t rank,
                                                      const compile::CompileOptions& options) {
  std::map<std::string, ConvForms> convs;
  std::vector<records::Record> records;
  for (const tensor::Conv2dShape& conv : asked) {
    if (convs.contains(compile::conv_text(conv))) continue;
    const int64_t m = rules::winograd_tile(conv, options.cpu(), options.threads);
    const std::vector<int64_t> others = other_tiles(conv, m, options);
    if (rank >= others.size()) continue;
    convs[compile::conv_text(conv)] = {conv, m, others[rank], {}, 0, 0};
    records.push_back(form_record(conv, others[rank], options, 0));
  }
  if (convs.empty()) return std::optional<OtherForms>();
  compile::CompileOptions with = options;
  with.form = find_form(records);
  OtherForms found;
  found.compiled = TW_TRY(compile_subject(subject, with));
  // One of the forms at least is Winograd's, whose kernel says which convolution it computes.
  for (const compile::CompiledModel* model : {&rule, &std::as_const(found.compiled)})
    for (const compile::KernelReport& kernel : model->kernels)
      if (const auto planes = winograd_conv(kernel.func, options.cpu()))
        for (auto& [text, known] : convs)
          if (known.conv.phases() == *planes)
            known.nodes.insert(kernel.steps.begin(), kernel.steps.end());
  for (auto& [text, conv] : convs)
    if (!conv.nodes.empty()) found.convs.push_back(std::move(conv));
  if (found.convs.empty()) return std::optional<OtherForms>();
  return std::optional(std::move(found));
}

bool computes(const OtherForms& forms, const std::string& step) {
  return std::any_of(forms.convs.begin(), forms.convs.end(),
                     [&](const ConvForms& conv) { return is_part(step, conv); });
}

double time_of(const ConvForms& conv, const std::map<std::string, double>& steps) {
  double sum = 0;
  for (const auto& [step, time] : steps)
    if (is_part(step, conv)) sum += time;
  return sum;
}

}  // namespace tilewright::driver
