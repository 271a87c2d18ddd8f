#include "tilewright/driver/report/tune_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "tilewright/base/file.h"
#include "tilewright/base/rank_correlation.h"
#include "tilewright/compile/conv_record.h"
#include "tilewright/driver/report/html_page.h"
#include "tilewright/driver/report/roof.h"
#include "tilewright/driver/report/svg_chart.h"
#include "tilewright/ir/text.h"

namespace tilewright::driver {
namespace {

/// Spearman's coefficient of the model's times and the measured ones; NaN for fewer than three.
double rank_correlation_of(const std::vector<tune::TrialLog>& trials) {
  std::vector<double> prior, measured;
  for (const tune::TrialLog& trial : trials)
    if (trial.reading.kind == measure::OutcomeKind::Ok && std::isfinite(trial.prior))
      prior.push_back(trial.prior), measured.push_back(trial.reading.cost);
  return prior.size() < 3 ? std::nan("") : rank_correlation(prior, measured);
}

/// Best so far over trials, or over seconds.
std::string progress_plot(const tune::TaskState& state, const char* unit, bool over_time) {
  PlotSeries best{"best so far", {}, true, true}, all{"measured", {}, false, false};
  double least = state.rule.kind == measure::OutcomeKind::Ok ? state.rule.cost : search::kInvalid;
  if (std::isfinite(least)) best.points.emplace_back(0, least / 1e3);
  for (size_t i = 0; i < state.trials.size(); ++i) {
    const tune::TrialLog& trial = state.trials[i];
    const double x = over_time ? trial.seconds : static_cast<double>(i + 1);
    if (trial.reading.kind == measure::OutcomeKind::Ok) {
      least = std::min(least, trial.reading.cost);
      all.points.emplace_back(x, trial.reading.cost / 1e3);
    }
    if (std::isfinite(least)) best.points.emplace_back(x, least / 1e3);
  }
  return svg({over_time ? "Over time" : "Over trials",
              over_time ? "seconds" : "trials",
              unit,
              false,
              true,
              {best, all}});
}

std::string roofline_plot(const Roof& roof, double before, double after) {
  const double intensity = roof.operations / std::max(roof.bytes, 1.0);
  const double peak = roof.compute > 0 ? roof.operations / roof.compute : 0;
  const double bandwidth = roof.memory > 0 ? roof.bytes / roof.memory : 0;
  PlotSeries limit{"limit", {}, true, false};
  for (double x = intensity / 64; x < intensity * 64; x *= 1.1)
    limit.points.emplace_back(x, std::min(peak, x * bandwidth));
  const PlotSeries untuned{"untuned", {{intensity, roof.operations / before}}, false, false};
  const PlotSeries tuned{"tuned", {{intensity, roof.operations / after}}, false, false};
  return svg({"Roofline (operands from " + roof.level + ")",
              "operations per byte",
              "Gop/s",
              true,
              true,
              {tuned, untuned, limit}});
}

std::string failures(const tune::TaskState& state) {
  if (state.reasons.empty()) return "<p>Every candidate was valid.</p>\n";
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [reason, count] : state.reasons) sorted.emplace_back(-count, reason);
  std::sort(sorted.begin(), sorted.end());
  std::string text = "<table><tr><th>why candidates failed</th><th>how many</th></tr>";
  for (size_t i = 0; i < std::min<size_t>(8, sorted.size()); ++i)
    text += fmt::format("<tr><td class=\"text\">{}</td><td>{}</td></tr>",
                        html_text(sorted[i].second), -sorted[i].first);
  return text + "</table>\n";
}

std::string winner(const measure::Task& task, const Verdict& verdict) {
  const Result<schedule::Trace> trace = schedule::parse_trace(verdict.record.schedule);
  const Result<Func> func = trace ? schedule::replay(task.func, *trace) : Result<Func>(task.func);
  return fmt::format(
      "<p>{}</p><details><summary>trace</summary><pre>{}</pre></details>"
      "<details><summary>loops</summary><pre>{}</pre></details>\n",
      verdict.better ? html_text(verdict.record.point)
                     : "The rules' schedule stays: nothing won against it.",
      html_text(verdict.record.schedule), func ? html_text(print(*func)) : "");
}

std::string section(const tune::TunerTask& task, const tune::TaskState& state,
                    const Verdict& verdict, size_t number, const char* unit) {
  std::string text = fmt::format("<h2 id=\"t{}\">{}</h2>\n", number, html_text(label_of(task)));
  if (!verdict.known)
    return text + fmt::format("<p>Not measured. {}</p>\n", html_text(state.problem));
  text += fmt::format("<p>{:.1f} {} untuned, {:.1f} {} tuned", verdict.rule_cost / 1e3, unit,
                      verdict.record.cost / 1e3, unit);
  const std::optional<Roof> roof = roof_of(task.task);
  text += roof ? fmt::format("; the machine allows {:.1f} {}.", roof->limit() / 1e3, unit) : ".";
  const double correlation = rank_correlation_of(state.trials);
  if (std::isfinite(correlation))
    text += fmt::format(" Rank correlation of the model with the readings: {:.2f}.", correlation);
  text += "</p>\n" + progress_plot(state, unit, true) + progress_plot(state, unit, false);
  if (roof && verdict.record.cost > 0)
    text += roofline_plot(*roof, verdict.rule_cost, verdict.record.cost);
  return text + failures(state) + winner(task.task, verdict);
}

/// Convolutions whose algorithm was raced.
std::string forms(const TuneRun& run) {
  std::string rows;
  each_form(run.plan(), [&](const ConvForms& conv, bool won) {
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{:.1f}</td><td>{}</td><td>{:.1f}</td><td>{}</td></tr>\n",
        html_text(compile::conv_text(conv.conv)), compile::form_name(conv.rule), conv.before / 1e3,
        compile::form_name(conv.other), conv.after / 1e3, won ? "other" : "by rule");
  });
  return rows.empty() ? ""
                      : "<table><tr><th>convolution</th><th>by rule</th><th>us</th><th>other</th>"
                        "<th>us</th><th>taken</th></tr>\n" +
                            rows + "</table>\n";
}

std::string overview(const TuneRun& run) {
  std::string text;
  for (const ModelGain& gain : run.gains())
    text += fmt::format("<p><b>{}</b>: {:.4g} {} untuned, {:.4g} {} tuned ({:.3f}x{})</p>\n",
                        html_text(gain.name), gain.before / 1e6, run.large_unit(), gain.after / 1e6,
                        run.large_unit(), gain.after > 0 ? gain.before / gain.after : 1.0,
                        gain.raced ? ", runs in turn" : ", sum of its kernels");
  text += forms(run);
  text += fmt::format(
      "<table><tr><th>kernel</th><th>uses</th><th>points</th><th>tried</th><th>earlier</th>"
      "<th>untuned {0}</th><th>tuned {0}</th><th>gain</th><th>of limit</th></tr>\n",
      run.unit());
  for (size_t i = 0; i < run.tuner().tasks().size(); ++i) {
    const tune::TunerTask& task = run.tuner().tasks()[i];
    const Verdict& verdict = run.verdicts()[i];
    const double cost = verdict.record.cost;
    text += fmt::format(
        "<tr><td><a href=\"#t{}\">{}</a></td><td>{}</td><td>{:.4g}</td><td>{}</td><td>{}</td>", i,
        html_text(label_of(task)), task.task.uses, task.space->space().size(),
        run.tuner().states()[i].trials.size(), run.tuner().states()[i].resumed);
    const std::optional<Roof> roof = roof_of(task.task);
    text += verdict.known && cost > 0
                ? fmt::format("<td>{:.1f}</td><td>{:.1f}</td><td>{:.2f}x</td><td>{}</td></tr>\n",
                              verdict.rule_cost / 1e3, cost / 1e3, verdict.rule_cost / cost,
                              roof ? fmt::format("{:.0f} %", 100 * roof->limit() / cost) : "")
                : std::string("<td></td><td></td><td></td><td></td></tr>\n");
  }
  return text + "</table>\n";
}

}  // namespace

Status write_tune_report(const std::string& path, const TuneRun& run) {
  const TuneSettings& settings = run.settings();
  std::string page = html_head("tuning");
  page += fmt::format(
      "<h1>Tuning</h1>\n<p>method {}, spaces {}, measured by {}, seed {}, {} trials in "
      "{:.1f} s, target {}</p>\n",
      html_text(settings.method), html_text(fmt::format("{}", fmt::join(run.spaces(), ", "))),
      html_text(settings.measure), settings.subject.seed, run.tuner().trials(), run.elapsed(),
      html_text(run.tuner().tasks().at(0).task.target_key()));
  page += overview(run);
  for (size_t i = 0; i < run.tuner().tasks().size(); ++i)
    page +=
        section(run.tuner().tasks()[i], run.tuner().states()[i], run.verdicts()[i], i, run.unit());
  return write_file(path, page + "</body></html>\n");
}

}  // namespace tilewright::driver
