// Random numbers that are the same on every platform (std distributions are not).
#pragma once

#include <cmath>
#include <cstdint>

namespace tilewright {

/// SplitMix64: one 64-bit state, full period. source: Steele, Lea, Flood, OOPSLA 2014.
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, n). requires: n > 0.
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  /// Uniform in [lo, hi], both included.
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// Standard normal (Box-Muller).
  double normal() {
    const double u = 1.0 - uniform(), v = uniform();
    return std::sqrt(-2.0 * std::log(u)) * std::cos(6.283185307179586 * v);
  }
  bool chance(double p) { return uniform() < p; }

 private:
  uint64_t state_;
};

}  // namespace tilewright
