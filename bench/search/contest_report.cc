#include "contest_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "tilewright/base/statistics.h"

namespace tilewright::bench {
namespace {

constexpr double kShare = 0.95;  ///< of the oracle's speed

double geomean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

std::vector<const Run*> runs_of(const Contest& contest, const std::string& method) {
  std::vector<const Run*> out;
  for (const Run& run : contest.runs)
    if (run.method == method) out.push_back(&run);
  return out;
}

double best_of(const Run& run) { return *std::min_element(run.costs.begin(), run.costs.end()); }

/// What a method's runs come to.
struct Summary {
  double quality = 0, least = 0, most = 0;  ///< speed at the end, of the oracle's: geomean, ends
  double trials = 0, seconds = 0;           ///< to kShare: means, unreached ones as the budget
  double fewest = 0, longest = 0;           ///< trials of the best and the worst run
  int reached = 0, runs = 0;
  double valid = 0;     ///< share of the trials that had a cost
  double think_ms = 0;  ///< per trial
  double total = 0;     ///< seconds of a run, in the median
};

Summary summarise(const Contest& contest, const std::string& method) {
  Summary s;
  const double oracle = contest.oracle();
  std::vector<double> quality, trials, seconds, thinking, valid, total;
  for (const Run* run : runs_of(contest, method)) {
    if (run->costs.empty()) continue;
    ++s.runs;
    quality.push_back(std::max(oracle / best_of(*run), 1e-6));
    const size_t to = trials_to(*run, oracle, kShare);
    s.reached += to > 0 ? 1 : 0;
    // A run that ended early because its clock ran out would have needed at least the budget.
    trials.push_back(static_cast<double>(to > 0 ? static_cast<int>(to) : contest.trials));
    seconds.push_back(to > 0 ? seconds_to(*run, oracle, kShare) : run->seconds.back());
    thinking.push_back(1e3 * run->thinking / static_cast<double>(run->costs.size()));
    total.push_back(run->seconds.back());
    valid.push_back(static_cast<double>(std::count_if(run->costs.begin(), run->costs.end(),
                                                      [](double c) { return std::isfinite(c); })) /
                    static_cast<double>(run->costs.size()));
  }
  if (s.runs == 0) return s;
  s.quality = geomean(quality);
  s.least = *std::min_element(quality.begin(), quality.end());
  s.most = *std::max_element(quality.begin(), quality.end());
  s.trials = geomean(trials);
  s.fewest = *std::min_element(trials.begin(), trials.end());
  s.longest = *std::max_element(trials.begin(), trials.end());
  s.seconds = geomean(seconds);
  s.think_ms = median(thinking), s.valid = median(valid), s.total = median(total);
  return s;
}

/// Speed of the best so far after each trial, of the oracle's.
std::vector<double> climb(const Run& run, double oracle) {
  std::vector<double> out;
  double best = search::kInvalid;
  for (const double cost : run.costs) {
    best = std::min(best, cost);
    out.push_back(oracle / best);
  }
  return out;
}

constexpr const char* kColours[] = {"#c0392b", "#2471a3", "#1e8449", "#b9770e", "#7d3c98",
                                    "#117a65", "#566573", "#d35400", "#2c3e50"};

/// One picture: for each method the mean of its runs and the band between its worst and best.
class Picture {
 public:
  Picture(const Contest& contest, bool over_time) : contest_(contest), over_time_(over_time) {
    for (const Run& run : contest.runs)
      if (!run.seconds.empty())
        most_ =
            std::max(most_, over_time ? run.seconds.back() : static_cast<double>(run.costs.size()));
  }

  std::string svg() const {
    std::string out = fmt::format(
        R"(<svg viewBox="0 0 {} {}" width="{}" font-family="sans-serif" font-size="11">)",
        kWidth + 60, kHeight + 45, kWidth + 60);
    for (int i = 0; i <= 4; ++i) {
      const double y = i / 4.0;
      out += fmt::format(
          R"(<path d="M40 {0:.1f}H{1}" stroke="#ddd"/><text x="4" y="{0:.1f}">{2} %</text>)",
          y_of(y), 40 + kWidth, 25 * i);
      out += fmt::format(R"(<text x="{:.1f}" y="{}">{:.3g}</text>)", 40 + kWidth * y - 5,
                         kHeight + 22, most_ * y);
    }
    out += fmt::format(R"(<text x="{}" y="{}">{}</text>)", 40 + kWidth / 2 - 20, kHeight + 38,
                       over_time_ ? "seconds" : "trials");
    for (size_t m = 0; m < contest_.methods.size(); ++m) out += method(m);
    return out + "</svg>";
  }

 private:
  static constexpr int kWidth = 460, kHeight = 240, kPoints = 120;

  static double y_of(double share) { return 8 + kHeight * (1 - std::clamp(share, 0.0, 1.0)); }

  double share_at(const Run& run, const std::vector<double>& climbed, double x) const {
    size_t known = 0;
    if (over_time_)
      known = static_cast<size_t>(std::upper_bound(run.seconds.begin(), run.seconds.end(), x) -
                                  run.seconds.begin());
    else
      known = static_cast<size_t>(x);
    return known == 0 ? 0 : climbed[std::min(known, climbed.size()) - 1];
  }

  std::string method(size_t m) const {
    std::vector<std::vector<double>> climbed;
    const auto runs = runs_of(contest_, contest_.methods[m]);
    for (const Run* run : runs) climbed.push_back(climb(*run, contest_.oracle()));
    if (runs.empty()) return "";
    std::string line, up, down;
    for (int i = 0; i <= kPoints; ++i) {
      const double x = most_ * i / kPoints;
      double sum = 0, least = 1, most = 0;
      for (size_t r = 0; r < runs.size(); ++r) {
        const double share = share_at(*runs[r], climbed[r], x);
        sum += share, least = std::min(least, share), most = std::max(most, share);
      }
      const double px = 40.0 + static_cast<double>(kWidth) * i / kPoints;
      line += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", px,
                          y_of(sum / static_cast<double>(runs.size())));
      up += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", px, y_of(most));
      down = fmt::format("L{:.1f} {:.1f}", px, y_of(least)) + down;
    }
    const char* colour = kColours[m % std::size(kColours)];
    return fmt::format(
        R"(<path d="{}{}Z" fill="{}" fill-opacity="0.08"/><path d="{}" fill="none" stroke="{}" stroke-width="1.6"/>)",
        up, down, colour, line, colour);
  }

  const Contest& contest_;
  bool over_time_;
  double most_ = 1e-9;
};

std::string legend(const Contest& contest) {
  std::string out;
  for (size_t m = 0; m < contest.methods.size(); ++m)
    out += fmt::format(R"(<span style="color:{}">&#9632; {}</span> )",
                       kColours[m % std::size(kColours)], contest.methods[m]);
  return out;
}

}  // namespace

std::string table(const Contest& contest) {
  std::string out = fmt::format(
      "{}, space {} of {:.3g} points, {} trials (the first {} the same for all), oracle {:.3f} of "
      "the rule's {:.1f} us\n",
      contest.name, contest.space, contest.space_size, contest.trials, contest.warm_up,
      contest.oracle(), contest.rule_ns * 1e-3);
  out += fmt::format("{:14} {:>6} {:>15} {:>6}  {:>8} {:>11} {:>9} {:>8} {:>8} {:>7}\n", "method",
                     "end %", "worst..best", "valid", "to 95 %", "fewest-most", "reached",
                     "s to 95", "s in all", "ms/prop");
  for (const std::string& method : contest.methods) {
    const Summary s = summarise(contest, method);
    if (s.runs == 0) continue;
    out += fmt::format(
        "{:14} {:6.1f} {:>15} {:5.0f}%  {:>8} {:>11} {:>9} {:8.2f} {:8.2f} {:7.2f}\n", method,
        100 * s.quality, fmt::format("{:.1f}..{:.1f}", 100 * s.least, 100 * s.most), 100 * s.valid,
        fmt::format("{}{:.0f}", s.reached < s.runs ? ">" : "", s.trials),
        fmt::format("{:.0f}-{:.0f}", s.fewest, s.longest),
        fmt::format("{} of {}", s.reached, s.runs), s.seconds, s.total, s.think_ms);
  }
  return out;
}

std::string to_json(const std::vector<Contest>& contests) {
  nlohmann::json all = nlohmann::json::array();
  for (const Contest& contest : contests) {
    nlohmann::json item = {{"name", contest.name},         {"space", contest.space},
                           {"points", contest.space_size}, {"rule_ns", contest.rule_ns},
                           {"trials", contest.trials},     {"warm_up", contest.warm_up},
                           {"oracle", contest.oracle()}};
    for (const std::string& method : contest.methods) {
      const Summary s = summarise(contest, method);
      item["methods"][method] = {{"end", s.quality},
                                 {"worst", s.least},
                                 {"best", s.most},
                                 {"trials_to_95", s.trials},
                                 {"seconds_to_95", s.seconds},
                                 {"reached", s.reached},
                                 {"runs", s.runs},
                                 {"valid", s.valid},
                                 {"think_ms", s.think_ms},
                                 {"fewest_trials", s.fewest},
                                 {"most_trials", s.longest},
                                 {"seconds", s.total}};
    }
    for (const Run& run : contest.runs) {
      nlohmann::json costs = nlohmann::json::array();
      for (const double c : run.costs)
        costs.push_back(std::isfinite(c) ? nlohmann::json(c) : nullptr);
      item["runs"].push_back({{"method", run.method},
                              {"seed", run.seed},
                              {"thinking", run.thinking},
                              {"costs", costs},
                              {"trace", run.trace},
                              {"seconds", run.seconds}});
    }
    all.push_back(std::move(item));
  }
  return all.dump(1);
}

std::string to_html(const std::vector<Contest>& contests) {
  std::string out =
      "<!doctype html><meta charset=\"utf-8\"><title>Searchers against each other</title>"
      "<body style=\"font-family:sans-serif;max-width:1100px;margin:auto\">"
      "<h1>Searchers against each other</h1><p>Speed of the best schedule so far, of the best that "
      "any run found in the same space; mean over seeds, bands from the worst to the best "
      "seed.</p>";
  for (const Contest& contest : contests)
    out += fmt::format("<h2>{}</h2><p>{}</p>{}{}<pre>{}</pre>", contest.name, legend(contest),
                       Picture(contest, false).svg(), Picture(contest, true).svg(), table(contest));
  return out + "</body>\n";
}

}  // namespace tilewright::bench
