// How well one row of numbers orders another.
#pragma once

#include <vector>

namespace tilewright {

/// Spearman's coefficient: the correlation of the ranks, where equal values share their mean rank.
/// NaN for fewer than two values, or where all of one row are equal. requires: equal lengths.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tilewright
