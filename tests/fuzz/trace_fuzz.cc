// Traces of arbitrary text: what parses prints back alike, and steps refuse with a text or make a
// valid program of a small convolution.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/schedule/step.h"

namespace {

using namespace tilewright;

/// Cuts double what is inside them: longer programs only make the fuzzer slow.
constexpr size_t kLongestProgram = 1 << 16;

constexpr std::string_view kConv = R"(
func conv(X: f32[2, 5, 7], const W: f32[4, 2, 3, 3], out Y: f32[4, 5, 7]) {
  alloc P: f32[2, 7, 9]
  for P.c in 2, P.h in 7, P.w in 9 {
    block P(c: space 2 = P.c, h: space 7 = P.h, w: space 9 = P.w) {
      P[c, h, w] = select(1 <= h && h < 6 && 1 <= w && w < 8, X[c, h - 1, w - 1], 0.0)
    }
  }
  alloc C: f32[4, 5, 7]
  for C.init.k in 4, C.init.h in 5, C.init.w in 7 {
    block C.init(k: space 4 = C.init.k, h: space 5 = C.init.h, w: space 7 = C.init.w) {
      C[k, h, w] = 0.0
    }
  }
  for C.k in 4, C.h in 5, C.w in 7, C.c in 2, C.r in 3, C.s in 3 {
    block C(k: space 4 = C.k, h: space 5 = C.h, w: space 7 = C.w, c: reduce 2 = C.c, r: reduce 3 = C.r, s: reduce 3 = C.s) {
      C[k, h, w] += P[c, h + r, w + s] * W[k, c, r, s]
    }
  }
  for Y.k in 4, Y.h in 5, Y.w in 7 {
    block Y(k: space 4 = Y.k, h: space 5 = Y.h, w: space 7 = Y.w) {
      Y[k, h, w] = max(C[k, h, w], 0.0)
    }
  }
}
)";

const Func& conv() {
  static const Func func = *parse_func(kConv);
  return func;
}

[[noreturn]] void report(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace = schedule::parse_trace({reinterpret_cast<const char*>(data), size});
  if (!trace) return 0;
  const std::string text = schedule::print(*trace);
  const auto again = schedule::parse_trace(text);
  if (!again || schedule::print(*again) != text) report("the trace does not print back:\n" + text);
  Func now = conv();
  for (const schedule::Step& step : *trace) {
    auto next = schedule::apply(step, now);
    if (!next) {
      if (next.error().what.empty()) report("an error without text: " + schedule::print(step));
      continue;
    }
    now = *std::move(next);
    if (const Status valid = verify(now, Stage::Scheduled); !valid)
      report(schedule::print(step) + ": " + to_string(valid.error()));
    if (tilewright::print(now).size() > kLongestProgram) break;
  }
  return 0;
}
