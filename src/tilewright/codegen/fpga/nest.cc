#include "tilewright/codegen/fpga/nest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "tilewright/base/integers.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::fpga_design {
namespace {

/// Loops, and what is inside of them.
struct Form {
  Loops loops;
  Stmt body;
};

/// `counter = outer * factor + inner`; past its end nothing is stored.
Form split_of(const Form& form, const CounterSplit& split) {
  Form out = form;
  auto& counters = out.loops.counters;
  const auto at = std::find_if(counters.begin(), counters.end(),
                               [&](const Counter& c) { return c.var == split.counter; });
  const int64_t extent = at->extent;
  const Var outer(split.counter.name() + ".o"), inner(split.counter.name() + ".i");
  const Expr value = ref(outer) * split.factor + ref(inner);
  out.body = substitute(out.body, {{split.counter, value}});
  if (extent % split.factor != 0) out.body = make(If{value < extent, out.body, {}});
  *at = {outer, ceil_div(extent, split.factor)};
  counters.insert(at + 1, {inner, split.factor});
  return out;
}

/// The innermost loop in groups of `lanes`, which are copies side by side.
Form grouped(const Form& form, int lanes) {
  if (lanes == 1) return form;
  Form out = form;
  Counter& last = out.loops.counters.back();
  const Var group(last.var.name() + ".group"), lane(last.var.name() + ".lane");
  For copies{lane, int_imm(lanes), ForKind::Unroll, {}, {}, {}};
  copies.body = substitute(out.body, {{last.var, ref(group) * lanes + ref(lane)}});
  out.body = make(std::move(copies));
  last = {group, last.extent / lanes};
  return out;
}

Result<BuiltNest> attempt(Form form, int lanes, const Surroundings& around) {
  for (;;) {
    GraphBuilder builder(around, form.loops, lanes);
    auto nest = builder.run(form.body);
    if (nest) {
      for (const Counter& counter : form.loops.counters) nest->extents.push_back(counter.extent);
      return BuiltNest{std::move(*nest), builder.argument(), builder.writes()};
    }
    if (!builder.split()) return tl::unexpected<Error>(nest.error());
    form = split_of(form, *builder.split());
  }
}

/// Rows without gaps: groups lie side by side, at most one range cuts them, at their ends.
bool has_rows(fpga::Nest& nest) {
  fpga::Stream& stream = nest.stream;
  const size_t counters = nest.extents.size();
  const auto along = [counters](const fpga::Affine& a) {
    return a.counters.size() < counters ? 0 : a.counters.back();
  };
  if (nest.extents.back() > 1 && along(stream.address) != stream.group_bytes()) return false;
  const auto cuts = [&](const fpga::Range& range) { return along(range.value) != 0; };
  if (std::count_if(stream.ranges.begin(), stream.ranges.end(), cuts) > 1) return false;
  const auto cut = std::find_if(stream.ranges.begin(), stream.ranges.end(), cuts);
  if (cut != stream.ranges.end()) std::rotate(stream.ranges.begin(), cut, cut + 1);
  stream.clipped = !stream.ranges.empty() && cuts(stream.ranges[0]);
  return !stream.clipped || along(stream.ranges[0].value) == 1;
}

/// Iterations between two that touch one element of `place`, at least; absent if there are none.
std::optional<int64_t> distance(const fpga::Place& place, int64_t banks,
                                const std::vector<int64_t>& extents) {
  const fpga::Affine element = plus(place.bank, place.word, banks);
  struct Digit {
    int64_t weight, extent;
  };
  std::vector<Digit> digits;
  int64_t inside = 1;
  std::optional<int64_t> again;
  for (size_t i = extents.size(); i-- > 0;) {
    const int64_t c = i < element.counters.size() ? element.counters[i] : 0;
    if (c == 0 && extents[i] > 1 && !again) again = inside;
    if (c != 0) digits.push_back({std::abs(c), extents[i]});
    inside *= extents[i];
  }
  // Counters that choose the element must do so as the digits of a number do.
  std::sort(digits.begin(), digits.end(),
            [](const Digit& a, const Digit& b) { return a.weight < b.weight; });
  int64_t below = 0;
  for (const Digit& digit : digits) {
    if (digit.weight <= below) return 1;
    below += digit.weight * (digit.extent - 1);
  }
  return again;
}

/// Whether no iteration uses a bank of `a` that any iteration uses of `b`.
bool apart_in_all(const fpga::Affine& a, const fpga::Affine& b) {
  int64_t step = 0;
  for (const fpga::Affine* bank : {&a, &b})
    for (const auto* coefficients : {&bank->loops, &bank->counters})
      for (const int64_t c : *coefficients) step = std::gcd(step, c);
  const int64_t gap = a.constant - b.constant;
  return step == 0 ? gap != 0 : gap % step != 0;
}

/// The interval at which sums are back in time. errors: Unsupported: an element is read that an
/// earlier iteration may have stored, other than a sum.
Status pace(fpga::Nest& nest, const fpga::Design& design) {
  const fpga::NestTimes times = times_of(design, nest);
  for (const fpga::Store& store : nest.stores)
    for (const fpga::Node& node : nest.nodes) {
      if (node.op != fpga::Op::Read || node.place.memory != store.place.memory ||
          apart_in_all(node.place.bank, store.place.bank))
        continue;
      const fpga::Memory& memory = design.memories[static_cast<size_t>(store.place.memory)];
      if (!(node.place == store.place))
        return fail(
            ErrorKind::Unsupported,
            fmt::format("{} is read where an earlier iteration may have stored it", memory.name),
            "the C++ has it: device fpga:csim");
      const auto again = distance(store.place, memory.banks, nest.extents);
      if (!again) continue;
      const int64_t cycles = recurrence(nest, times, store.place.memory);
      nest.ii = std::max(nest.ii, static_cast<int>(ceil_div(cycles, *again)));
    }
  return {};
}

}  // namespace

Result<BuiltNest> build_nest(const Loops& loops, const Stmt& body, int64_t wanted,
                             const fpga::Design& design, const Surroundings& around) {
  const Form form{loops, body};
  std::set<DType> outside;
  walk(
      body,
      [&](const Stmt& s) {
        const auto* store = s.as<Store>();
        if (store != nullptr && around.arguments.contains(store->buffer))
          outside.insert(store->buffer.dtype());
      },
      [&](const Expr& e) {
        const auto* load = e.as<Load>();
        if (load != nullptr && around.arguments.contains(load->buffer))
          outside.insert(load->buffer.dtype());
      });
  for (const DType dtype : outside)
    if (fpga::number_of(dtype).bytes() > design.bus.beat_bytes)
      return fail(ErrorKind::Unsupported,
                  fmt::format("elements of {} do not fit the device's ports", name(dtype)),
                  fmt::format("its ports move {} bytes at a time", design.bus.beat_bytes),
                  "smaller elements in the program, or [port] bytes in the file of the device");
  int64_t lanes = 1;
  if (outside.size() == 1)
    lanes = design.bus.beat_bytes / fpga::number_of(*outside.begin()).bytes();
  while (lanes > 1 && loops.counters.back().extent % lanes != 0) lanes /= 2;
  for (;; lanes /= 2) {
    auto made = attempt(grouped(form, static_cast<int>(lanes)), static_cast<int>(lanes), around);
    if (made) made->nest.ii = static_cast<int>(wanted);
    if (made && (made->argument < 0 || has_rows(made->nest))) {
      TW_TRY_STATUS(pace(made->nest, design));
      return std::move(*made);
    }
    if (lanes > 1) continue;
    if (!made) return tl::unexpected<Error>(made.error());
    // Each element is a row of its own.
    fpga::Nest& nest = made->nest;
    nest.extents.push_back(1);
    nest.stream.clipped = false;
    TW_TRY_STATUS(pace(nest, design));
    return std::move(*made);
  }
}

}  // namespace tilewright::codegen::fpga_design
