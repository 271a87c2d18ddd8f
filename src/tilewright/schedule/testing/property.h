// For tests: random program x random trace keeps its meaning; failures shrink and print as text.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "tilewright/base/check.h"
#include "tilewright/ir/testing/random_func.h"
#include "tilewright/schedule/testing/oracle.h"
#include "tilewright/schedule/testing/random_program.h"
#include "tilewright/schedule/testing/random_step.h"

namespace tilewright::schedule::testing {

/// How many steps of each kind (by position in Step) were accepted and refused.
struct Tally {
  std::array<int64_t, std::variant_size_v<Step>> accepted{}, refused{};
  int64_t programs = 0, traces = 0;
};

/// Whether elements may be written by a second block or again.
inline bool in_place(const Trace& trace) {
  return std::any_of(trace.begin(), trace.end(), [](const Step& s) {
    return std::holds_alternative<Inplace>(s) || std::holds_alternative<Pipeline>(s);
  });
}

/// Empty if replaying `trace` (steps that do not apply are skipped) keeps the meaning of `func` and
/// every program on the way is valid and round-trips, else what is wrong.
inline std::string violation(const Func& func, const Trace& trace, uint64_t seed) {
  Func now = func;
  try {
    for (const Step& step : trace) {
      const auto next = schedule::apply(step, now);
      if (!next) continue;
      now = *next;
      if (const Status ok = verify(now, Stage::Scheduled); !ok)
        return print(step) + " made an invalid program: " + to_string(ok.error());
    }
    const std::string text = tilewright::print(now);
    const auto parsed = parse_func(text);
    if (!parsed) return "does not parse: " + to_string(parsed.error()) + "\n" + text;
    if (!equal(*parsed, now)) return "does not round-trip";
    return difference(func, now, seed, in_place(trace));
  } catch (const InternalError& e) {
    return "internal error: " + std::string(e.what()).substr(0, 400);
  }
}

/// A program made from a seed and, where it has any, sizes.
struct Source {
  std::function<Func(uint64_t seed, const std::vector<int64_t>& sizes)> make;
  std::function<std::vector<int64_t>(uint64_t seed)> sizes;
  Stage stage;
};

/// Chains and graphs of operators as the tensor layer makes them.
inline Source operator_graphs() {
  return {[](uint64_t seed, const std::vector<int64_t>& sizes) {
            return RandomProgram(seed, sizes).make_func();
          },
          [](uint64_t seed) {
            RandomProgram p(seed);
            p.make_func();
            return p.sizes();
          },
          Stage::Tensor};
}

/// Anything the verifier accepts: calls, branches, concurrent loops, odd names. Its data are not
/// integers, so the math is exact.
inline Source odd_programs() {
  return {[](uint64_t seed, const std::vector<int64_t>&) {
            Rng rng(seed);
            Func f = tilewright::testing::random_func(rng);
            f.math = MathMode::Exact;
            return f;
          },
          [](uint64_t) { return std::vector<int64_t>(); }, Stage::Scheduled};
}

/// Drops steps, then makes sizes smaller, as long as something stays wrong.
inline std::string shrink(const Source& source, uint64_t seed, Trace trace) {
  std::vector<int64_t> sizes = source.sizes(seed);
  Func func = source.make(seed, sizes);
  auto drop_steps = [&] {
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t i = trace.size(); i-- > 0;) {
        Trace fewer = trace;
        fewer.erase(fewer.begin() + static_cast<long>(i));
        if (violation(func, fewer, seed).empty()) continue;
        trace = fewer;
        progress = true;
      }
    }
  };
  drop_steps();
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t i = 0; i < sizes.size(); ++i)
      for (int64_t n = 1; n < sizes[i]; ++n) {
        std::vector<int64_t> smaller = sizes;
        smaller[i] = n;
        const Func candidate = source.make(seed, smaller);
        if (violation(candidate, trace, seed).empty()) continue;
        sizes = smaller, func = candidate, progress = true;
        break;
      }
  }
  drop_steps();
  Func now = func;
  Trace applied;
  for (const Step& step : trace) try {
      if (auto next = schedule::apply(step, now)) now = *next, applied.push_back(step);
    } catch (const InternalError&) {
      applied.push_back(step);
    }
  return fmt::format("seed {}\n{}\n{}\n{}\nafter:\n{}", seed, violation(func, trace, seed),
                     tilewright::print(func), print(applied), tilewright::print(now));
}

/// One random program under `traces` random traces of up to `steps` attempts; empty if all is well.
inline std::string check_program(const Source& source, uint64_t seed, int traces, int steps,
                                 Tally& tally) {
  const Func func = source.make(seed, source.sizes(seed));
  ++tally.programs;
  if (const Status ok = verify(func, source.stage); !ok)
    return fmt::format("seed {}: the generator made an invalid program: {}\n{}", seed,
                       to_string(ok.error()), tilewright::print(func));
  const interp::Arguments arguments = make_arguments(func, seed);
  const auto expected = interp::run(func, arguments);
  if (!expected)
    return fmt::format("seed {}: {}\n{}", seed, to_string(expected.error()),
                       tilewright::print(func));
  Rng rng(seed * 7919 + 13);
  for (int t = 0; t < traces; ++t) {
    ++tally.traces;
    Func now = func;
    Trace trace;
    try {
      for (int i = 0; i < steps; ++i) {
        const Step step = RandomStep(rng, now, t * steps + i).draw();
        // Only every other trace may write in place: the others check that nothing is written
        // twice.
        if (t % 2 == 0 && in_place({step})) continue;
        trace.push_back(step);
        const auto next = schedule::apply(step, now);
        (next ? tally.accepted : tally.refused)[step.index()]++;
        if (!next) {
          trace.pop_back();
          if (next.error().what.empty()) return "an error without text: " + print(step);
          continue;
        }
        now = *next;
        if (!verify(now, Stage::Scheduled)) return shrink(source, seed, trace);
      }
      if (!difference(*expected, now, arguments, seed, in_place(trace)).empty())
        return shrink(source, seed, trace);
      if (rng.chance(0.1)) {
        const auto parsed = parse_func(tilewright::print(now));
        if (!parsed || !equal(*parsed, now)) return shrink(source, seed, trace);
        const auto again = parse_trace(print(trace));
        if (!again || print(*again) != print(trace)) return "trace text: " + print(trace);
        const auto replayed = replay(func, *again);
        if (!replayed || !equal(*replayed, now)) return "replay differs: " + print(trace);
      }
    } catch (const InternalError&) {
      return shrink(source, seed, trace);
    }
  }
  return "";
}

inline std::string_view kind_name(size_t index) {
  static const std::array<std::string_view, std::variant_size_v<Step>> names =
      []<size_t... I>(std::index_sequence<I...>) {
        return std::array<std::string_view, sizeof...(I)>{
            std::variant_alternative_t<I, Step>::name...};
      }(std::make_index_sequence<std::variant_size_v<Step>>{});
  return names[index];
}

inline std::string report(const Tally& tally) {
  std::string out = fmt::format("{} programs, {} traces\n", tally.programs, tally.traces);
  for (size_t i = 0; i < tally.accepted.size(); ++i)
    out += fmt::format("{:20} accepted {:7} refused {:7}\n", kind_name(i), tally.accepted[i],
                       tally.refused[i]);
  return out;
}

}  // namespace tilewright::schedule::testing
