#include "tilewright/cost/boosted_trees.h"

#if TILEWRIGHT_XGBOOST
#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/base/check.h"
#endif

namespace tilewright::cost {

#if !TILEWRIGHT_XGBOOST

Result<std::unique_ptr<search::Model>> boosted_trees(const BoostedTreesOptions&) {
  return fail(ErrorKind::Unsupported, "boosted trees are not available",
              "this build was configured without XGBoost",
              "install libxgboost-dev (scripts/setup) and configure again");
}

#else

namespace {

using Rows = std::vector<std::vector<double>>;

void check(int status) { TW_CHECK(status == 0, "XGBoost: {}", XGBGetLastError()); }

struct FreeBooster {
  void operator()(void* handle) const { XGBoosterFree(handle); }
};
struct FreeMatrix {
  void operator()(void* handle) const { XGDMatrixFree(handle); }
};

/// Features as XGBoost takes them: one dense block; it refuses infinities.
std::vector<float> flatten(const Rows& rows) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  std::vector<float> flat;
  flat.reserve(rows.size() * rows[0].size());
  for (const std::vector<double>& row : rows) {
    TW_CHECK(row.size() == rows[0].size(), "features of {} and {} numbers", rows[0].size(),
             row.size());
    for (const double v : row)
      flat.push_back(static_cast<float>(std::clamp(v, -kLargest, kLargest)));
  }
  return flat;
}

class BoostedTrees final : public search::Model {
 public:
  explicit BoostedTrees(const BoostedTreesOptions& options) : options_(options) {}

  void fit(const Rows& features, const std::vector<double>& costs) override {
    if (features.empty()) return;
    const std::vector<float> flat = flatten(features);
    void* matrix = nullptr;
    check(XGDMatrixCreateFromMat(flat.data(), features.size(), features[0].size(),
                                 std::numeric_limits<float>::quiet_NaN(), &matrix));
    const std::unique_ptr<void, FreeMatrix> owned(matrix);
    const std::vector<float> labels = labels_of(costs);
    check(XGDMatrixSetFloatInfo(matrix, "label", labels.data(), labels.size()));
    const auto all = static_cast<unsigned>(labels.size());  // one group: any pair may be compared
    if (options_.rank) check(XGDMatrixSetUIntInfo(matrix, "group", &all, 1));
    void* booster = nullptr;
    check(XGBoosterCreate(&matrix, 1, &booster));
    booster_.reset(booster);
    configure();
    for (int round = 0; round < options_.rounds; ++round)
      check(XGBoosterUpdateOneIter(booster, round, matrix));
  }

  std::vector<double> score(const Rows& features) const override {
    if (features.empty() || !booster_) return std::vector<double>(features.size(), 0.0);
    const std::vector<float> flat = flatten(features);
    const std::string array =
        fmt::format(R"({{"data": [{}, true], "shape": [{}, {}], "typestr": "<f4", "version": 3}})",
                    reinterpret_cast<uintptr_t>(flat.data()), features.size(), features[0].size());
    constexpr const char* kConfig =
        R"({"type": 1, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false,)"
        R"( "missing": NaN, "cache_id": 0})";
    const bst_ulong* shape = nullptr;
    bst_ulong rank = 0;
    const float* scores = nullptr;
    check(XGBoosterPredictFromDense(booster_.get(), array.c_str(), kConfig, nullptr, &shape, &rank,
                                    &scores));
    return {scores, scores + features.size()};
  }

 private:
  void configure() {
    const std::pair<const char*, std::string> settings[] = {
        {"objective", options_.rank ? "rank:pairwise" : "reg:squarederror"},
        {"max_depth", fmt::format("{}", options_.depth)},
        {"eta", fmt::format("{}", options_.learning_rate)},
        {"gamma", "0.0001"},
        {"min_child_weight", "1"},
        {"tree_method", "exact"},  // samples are few
        {"nthread", "1"},          // the other cores compile and measure
        {"seed", fmt::format("{}", options_.seed)},
        {"verbosity", "0"}};
    for (const auto& [name, value] : settings)
      check(XGBoosterSetParam(booster_.get(), name, value.c_str()));
  }

  /// Higher is better: performance as a share of the best, or how many times faster than the
  /// slowest as a logarithm.
  std::vector<float> labels_of(const std::vector<double>& costs) const {
    double least = search::kInvalid, most = 0;
    for (const double cost : costs)
      if (std::isfinite(cost)) least = std::min(least, cost), most = std::max(most, cost);
    std::vector<float> labels;
    for (const double cost : costs) {
      double label = options_.rank ? 0 : -1;
      if (std::isfinite(cost)) label = options_.rank ? least / cost : std::log2(most / cost);
      labels.push_back(static_cast<float>(label));
    }
    return labels;
  }

  BoostedTreesOptions options_;
  std::unique_ptr<void, FreeBooster> booster_;
};

}  // namespace

Result<std::unique_ptr<search::Model>> boosted_trees(const BoostedTreesOptions& options) {
  return std::make_unique<BoostedTrees>(options);
}

#endif

}  // namespace tilewright::cost
