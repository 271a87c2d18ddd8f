#include "tilewright/driver/conv_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "tilewright/driver/tuned.h"
#include "tilewright/tune/conv_algorithm.h"
#include "tilewright/tune/tuner.h"
#include "tilewright/tune/winograd_schedule.h"

namespace tilewright::driver {
namespace {

const std::string kPrefix = "algorithm: ", kDirect = "direct", kWinograd = "winograd ";
/// Times the rule's form, by the model: beyond, tuning cannot turn the order around. The model errs
/// more between algorithms than between tiles of one.
constexpr double kHopeless = 1.6, kHopelessTile = 1.3;

/// Steps around a node have names that begin with its own.
bool is_part(const std::string& step, const ConvForms& conv) {
  return std::any_of(conv.nodes.begin(), conv.nodes.end(), [&](const std::string& node) {
    return step == node || step.starts_with(node + "/");
  });
}

std::optional<graph::PlaneConv> winograd_conv(const Func& func, const hw::CpuTarget& target) {
  const std::optional<cost::WinogradShape> shape = tune::winograd_shape(func, target);
  if (!shape) return std::nullopt;
  return graph::PlaneConv{shape->batch, shape->channels, shape->filters, shape->height,
                          shape->width, shape->taps_h,   shape->taps_w};
}

}  // namespace

std::string conv_text(const graph::PlaneConv& conv) {
  std::string text = fmt::format("conv {}x{}->{} of {}x{}, window {}x{}", conv.batch, conv.channels,
                                 conv.filters, conv.height, conv.width, conv.taps_h, conv.taps_w);
  if (conv.dilation_h > 1 || conv.dilation_w > 1)
    text += fmt::format(", dilation {}x{}", conv.dilation_h, conv.dilation_w);
  return text;
}

std::string conv_key(const graph::PlaneConv& conv) { return tune::workload_key(conv_text(conv)); }

tune::Record form_record(const graph::PlaneConv& conv, int64_t m, const CompileOptions& options,
                         double cost) {
  tune::Record record;
  record.workload = conv_key(conv);
  record.name = conv_text(conv);
  record.target = cpu_key(options.target, options.threads);
  record.compiler = compiler_key();
  record.point = kPrefix + form_name(m);
  record.outcome = "ok";
  record.cost = record.least = cost;
  record.searcher = "race";
  record.when = tune::utc_now();
  return record;
}

std::optional<int64_t> form_in(const tune::Record& record) {
  std::string_view text = record.point;
  if (!record.schedule.empty() || !text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  if (text == kDirect) return 0;
  if (!text.starts_with(kWinograd)) return std::nullopt;
  text.remove_prefix(kWinograd.size());
  int64_t m = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), m);
  return error == std::errc() && end == text.data() + text.size() && m > 0 ? std::optional(m)
                                                                           : std::nullopt;
}

std::string form_name(int64_t m) { return m == 0 ? kDirect : kWinograd + std::to_string(m); }

std::vector<int64_t> other_tiles(const graph::PlaneConv& conv, int64_t rule,
                                 const CompileOptions& options) {
  const auto time = [&](int64_t m) {
    return tune::predict_conv(conv, m, options.target, options.threads).total();
  };
  const double usual = time(rule);
  std::vector<int64_t> tiles = tune::winograd_tiles(conv);
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

FindForm find_form(const std::vector<tune::Record>& records) {
  const auto by_key = std::make_shared<std::map<std::string, tune::Record>>();
  for (const tune::Record& record : records) (*by_key)[record.workload] = record;
  return [by_key](const graph::PlaneConv& conv) -> std::optional<tune::Record> {
    const auto found = by_key->find(conv_key(conv));
    return found == by_key->end() ? std::nullopt : std::optional(found->second);
  };
}

Result<std::optional<OtherForms>> compile_other_forms(const Subject& subject,
                                                      const CompiledModel& rule,
                                                      const std::vector<graph::PlaneConv>& asked,
                                                      size_t rank, const CompileOptions& options) {
  std::map<std::string, ConvForms> convs;
  std::vector<tune::Record> records;
  for (const graph::PlaneConv& conv : asked) {
    if (convs.contains(conv_text(conv))) continue;
    const int64_t m = tune::winograd_tile(conv, options.target, options.threads);
    const std::vector<int64_t> others = other_tiles(conv, m, options);
    if (rank >= others.size()) continue;
    convs[conv_text(conv)] = {conv, m, others[rank], {}, 0, 0};
    records.push_back(form_record(conv, others[rank], options, 0));
  }
  if (convs.empty()) return std::optional<OtherForms>();
  CompileOptions with = options;
  with.form = find_form(records);
  OtherForms found;
  found.compiled = TW_TRY(compile_subject(subject, with));
  // One of the forms at least is Winograd's, whose kernel says which convolution it computes.
  for (const CompiledModel* model : {&rule, &std::as_const(found.compiled)})
    for (const KernelReport& kernel : model->kernels)
      if (const auto planes = winograd_conv(kernel.func, options.target))
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
