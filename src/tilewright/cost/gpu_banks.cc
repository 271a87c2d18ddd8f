#include "tilewright/cost/gpu_banks.h"

#include <algorithm>
#include <map>
#include <set>

namespace tilewright::cost {
namespace {

constexpr int64_t kWarp = 32;

}  // namespace

int64_t bank_passes(const std::vector<int64_t>& offsets, int64_t width) {
  const auto together = static_cast<size_t>(kBanks * kBankBytes / std::max(width, kBankBytes));
  int64_t passes = 0;
  for (size_t first = 0; first < offsets.size(); first += together) {
    std::map<int64_t, std::set<int64_t>> words;  // by bank
    for (size_t lane = first; lane < std::min(first + together, offsets.size()); ++lane)
      for (int64_t word = offsets[lane] / kBankBytes;
           word <= (offsets[lane] + width - 1) / kBankBytes; ++word)
        words[word % kBanks].insert(word);
    size_t most = 0;
    for (const auto& [bank, used] : words) most = std::max(most, used.size());
    passes += static_cast<int64_t>(most);
  }
  return passes;
}

RowAccess lane_box(int64_t columns, int64_t column_step, int64_t row_step, int64_t elements) {
  RowAccess access;
  access.elements = elements;
  for (int64_t lane = 0; lane < kWarp; ++lane)
    access.lanes.emplace_back(lane / columns * row_step, lane % columns * column_step);
  return access;
}

int64_t row_passes(const std::vector<RowAccess>& accesses, int64_t pitch, int64_t element_bytes) {
  int64_t passes = 0;
  for (const RowAccess& access : accesses) {
    std::vector<int64_t> offsets;
    for (const auto& [row, column] : access.lanes)
      offsets.push_back((row * pitch + column) * element_bytes);
    passes += access.weight * bank_passes(offsets, access.elements * element_bytes);
  }
  return passes;
}

int64_t best_row_pad(const std::vector<RowAccess>& accesses, int64_t row, int64_t element_bytes,
                     int64_t unit) {
  int64_t best = 0, fewest = row_passes(accesses, row, element_bytes);
  for (int64_t pad = unit; pad * element_bytes < kBanks * kBankBytes; pad += unit) {
    const int64_t passes = row_passes(accesses, row + pad, element_bytes);
    if (passes < fewest) best = pad, fewest = passes;
  }
  return best;
}

}  // namespace tilewright::cost
