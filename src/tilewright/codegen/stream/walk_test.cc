// A made-up device that can only copy: what it is told does to memory what the interpreter does.
#include "tilewright/codegen/stream/walk.h"

#include <gtest/gtest.h>

#include <map>

#include "tilewright/codegen/stream/nest.h"
#include "tilewright/codegen/stream/transfer.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"

namespace tilewright::codegen::stream {
namespace {

constexpr int64_t kLanes = 4;

/// One memory of 64 elements of four bytes, and DRAM.
class Copying : public Walk {
 public:
  explicit Copying(const Func& func)
      : Walk(func, {"the copier", {{0, "toy.chip", 8, kLanes}}}), chip_(64 * kLanes), dram_(4096) {}

  Status run(const std::vector<uint64_t>& addresses, int copies) {
    TW_TRY_STATUS(prepare());
    TW_TRY_STATUS(measure_rings(copies));
    used_ = lay_out(on_chip_.rings)[0];
    return emit_all(addresses);
  }

  std::vector<int8_t>& dram() { return dram_; }
  int64_t used() const { return used_; }
  const std::vector<int64_t>& begun() const { return begun_; }
  size_t transfers() const { return transfers_; }

 private:
  Result<uint64_t> allocate(const std::string&, uint64_t) override { return 2048; }
  void begin(const Buffer&, const PlacedBox& place) override { begun_.push_back(place.first); }

  Result<Attempt> leaf(const Stmt& body, const Open& open) override {
    const auto* store = body.as<Store>();
    if (store == nullptr) return unsupported(open.name, "it calls something");
    Expr value = store->value;
    std::vector<Form> inside;
    if (const auto* select = value.as<Select>()) {
      const Env::Truth truth = env_.collect(select->condition, true, inside);
      if (truth == Env::Truth::Unknown) return unroll(open);
      if (truth == Env::Truth::Never) inside.push_back(Form{-1, {}});
      value = select->on_true;
    }
    const auto* load = value.as<Load>();
    if (load == nullptr) return unsupported(open.name, "it computes");
    const auto to = address(store->buffer, store->indices);
    const auto from = address(load->buffer, load->indices);
    if (!to || !from) return unroll(open);
    const bool in = place(store->buffer).memory.has_value();
    ConcreteNest nest{env_.extents(), {in ? *to : *from, in ? *from : *to}, 2};
    nest.forms.insert(nest.forms.end(), inside.begin(), inside.end());
    merge_loops(nest);
    for (size_t f = nest.addresses; f < nest.forms.size(); ++f)
      if (loops_in(nest.forms[f]) > 1) return unroll_for(inside[f - nest.addresses], open);
    TW_TRY_STATUS(take_lanes(nest, kLanes));
    TW_TRY_STATUS(emit_transfers(nest, {}, [&](const Transfer& t) { return move(t, in); }));
    return Attempt{};
  }

  Status move(const Transfer& t, bool in) {
    ++transfers_;
    int64_t at = t.sram * kLanes;
    for (int64_t y = -t.y_pad_top; y < t.y_size + t.y_pad_bottom; ++y)
      for (int64_t x = -t.x_pad_left; x < t.x_size + t.x_pad_right; ++x)
        for (int64_t lane = 0; lane < kLanes; ++lane, ++at) {
          const bool there = y >= 0 && y < t.y_size && x >= 0 && x < t.x_size;
          const auto d = static_cast<size_t>((t.dram + y * t.x_stride + x) * kLanes + lane);
          int8_t& chip = chip_.at(static_cast<size_t>(at));
          if (in)
            chip = there ? dram_.at(d) : int8_t{0};
          else
            dram_.at(d) = chip;
        }
    return {};
  }

  std::vector<int8_t> chip_, dram_;
  int64_t used_ = 0;
  std::vector<int64_t> begun_;
  size_t transfers_ = 0;
};

/// Copies 6 rows of 8, two at a time, one row further down; what comes from above is 0.
std::string shifted(const std::string& marks) {
  return "func f(X: i8[6,8], out Y: i8[6,8]) {\n  for h.o in 3 {\n    alloc T: i8[6,8] toy.chip" +
         marks + R"(
    for T.h in 2, T.w in 8 { block T(h: space 6 = h.o * 2 + T.h, w: space 8 = T.w) { T[h, w] = select(1 <= h, X[h - 1, w], 0i8) } }
    for Y.h in 2, Y.w in 8 { block Y(h: space 6 = h.o * 2 + Y.h, w: space 8 = Y.w) { Y[h, w] = T[h, w] } }
  }
}
)";
}

/// Runs the program on the device, and compares Y with the interpreter's.
void expect_right(const Func& func, Copying& device, int copies) {
  Array x(DType::I8, {6, 8});
  for (int64_t i = 0; i < x.size(); ++i) {
    x.set_int(i, i + 1);
    device.dram()[static_cast<size_t>(64 + i)] = static_cast<int8_t>(i + 1);
  }
  const Status done = device.run({64, 1024}, copies);
  ASSERT_TRUE(done) << to_string(done.error());
  interp::Arguments arguments;
  arguments.arrays["X"] = x;
  const auto outcome = interp::run(func, arguments);
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  const Array& y = outcome->outputs.at("Y");
  for (int64_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(device.dram()[static_cast<size_t>(1024 + i)], y.get_int(i)) << i;
}

TEST(Walk, TellsADeviceEveryAddress) {
  const auto func = parse_func(shifted(""));
  ASSERT_TRUE(func) << to_string(func.error());
  ASSERT_TRUE(verify(*func, Stage::Scheduled));
  Copying device(*func);
  expect_right(*func, device, 2);
  EXPECT_EQ(device.used(), 2 * 4) << "two instances of two rows of two elements";
  EXPECT_EQ(device.begun(), (std::vector<int64_t>{0, 4, 0}));
  EXPECT_EQ(device.transfers(), 6u) << "one in and one out, three times";
}

TEST(Walk, MarksSayHowManyCopies) {
  const auto func = parse_func(shifted(" @(copies=3)"));
  ASSERT_TRUE(func) << to_string(func.error());
  Copying device(*func);
  expect_right(*func, device, 1);
  EXPECT_EQ(device.begun(), (std::vector<int64_t>{0, 4, 8}));
}

TEST(Walk, ErrorsNameDeviceAndMemories) {
  const auto message = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    const auto func = parse_func(text);
    EXPECT_TRUE(func) << text;
    const Status done = Copying(*func).run({64, 1024}, 1);
    return done ? std::string() : to_string(done.error());
  };
  EXPECT_NE(message(shifted(""), "= T[h, w]", "= T[h, w] + 1i8")
                .find("block `Y` cannot run on the copier"),
            std::string::npos);
  const std::string elsewhere = message(shifted(""), "toy.chip", "toy.chop");
  EXPECT_NE(elsewhere.find("`T` is in no memory of the copier"), std::string::npos) << elsewhere;
  EXPECT_NE(elsewhere.find("use toy.chip"), std::string::npos) << elsewhere;
}

}  // namespace
}  // namespace tilewright::codegen::stream
