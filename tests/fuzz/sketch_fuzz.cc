// Sketches of arbitrary text: what parses prints back alike, and instantiating it gives steps or an
// error with a text.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tilewright/ir/text.h"
#include "tilewright/schedule/sketch.h"

namespace {

using namespace tilewright;

constexpr std::string_view kCopy = R"(
func copy(A: f32[12], out B: f32[12]) {
  for C.k in 12 { block C(k: space 12 = C.k) { B[k] = A[k] } }
}
)";

[[noreturn]] void report(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto sketch = schedule::parse_sketch({reinterpret_cast<const char*>(data), size});
  if (!sketch) {
    if (sketch.error().what.empty()) report("an error without text");
    return 0;
  }
  const std::string text = schedule::print(*sketch);
  const auto again = schedule::parse_sketch(text);
  if (!again || schedule::print(*again) != text) report("the sketch does not print back:\n" + text);
  static const Func func = *parse_func(kCopy);
  const auto bound = schedule::bind(*sketch, func, {{"main", "C"}});
  if (!bound) return 0;
  std::vector<schedule::Words> point;
  for (const schedule::SketchDecision& d : bound->decisions)
    point.push_back(d.values.empty() ? schedule::Words(static_cast<size_t>(d.parts), int64_t{1})
                                     : d.values.back());
  const auto trace = schedule::instantiate(*bound, point);
  if (!trace && trace.error().what.empty()) report("an error without text:\n" + text);
  return 0;
}
