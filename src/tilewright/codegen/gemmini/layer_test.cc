#include "tilewright/codegen/gemmini/layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tilewright/accel/gemmini/check.h"
#include "tilewright/accel/gemmini/fsim.h"
#include "tilewright/base/rng.h"

namespace tilewright::gemmini {
namespace {

using ::testing::HasSubstr;

/// A layer with its numbers, and what is to come out.
struct LayerCase {
  Layer layer;
  std::vector<int8_t> x, weights, residual;  ///< [image, pixel, k]; [n, k, taps]; [pixel, n]
  std::vector<int32_t> bias;
};

size_t at(int64_t index) { return static_cast<size_t>(index); }

void fill(std::vector<int8_t>& values, int64_t count, Rng& rng) {
  values.resize(at(count));
  for (int8_t& value : values) value = static_cast<int8_t>(rng.next());
}

LayerAxis random_axis(Rng& rng, bool kernel) {
  LayerAxis axis;
  axis.in = rng.between(1, 12);
  if (!kernel) {
    axis.out = axis.in;
    return axis;
  }
  axis.kernel = rng.between(1, 4), axis.stride = rng.between(1, 3);
  axis.dilation = rng.between(1, 2), axis.before = rng.between(0, 3);
  const int64_t span = (axis.kernel - 1) * axis.dilation + 1;
  const int64_t padded = axis.in + axis.before + rng.between(0, 3);
  axis.out = std::max<int64_t>(0, padded - span) / axis.stride + 1;
  return axis;
}

LayerCase random_case(Rng& rng) {
  LayerCase c;
  Layer& layer = c.layer;
  if (rng.chance(0.4)) {
    layer = matrix_product(rng.between(1, 70), rng.between(1, 70), rng.between(1, 150));
  } else {
    layer.images = rng.between(1, 2);
    layer.h = random_axis(rng, rng.chance(0.8)), layer.w = random_axis(rng, rng.chance(0.8));
    layer.k = rng.between(1, 40), layer.n = rng.between(1, 40);
  }
  layer.bias = rng.chance(0.8), layer.residual = rng.chance(0.3);
  layer.shift = static_cast<int>(rng.between(0, 12));
  layer.residual_shift = static_cast<int>(rng.between(0, 8));
  layer.relu = rng.chance(0.5), layer.wide = rng.chance(0.2);
  if (layer.bias && !layer.wide && rng.chance(0.3))
    layer.high = static_cast<int>(layer.shift == 0 ? rng.between(0, 126) : 2 * rng.between(0, 63));
  const int64_t results = layer.images * layer.h.out * layer.w.out;
  fill(c.x, layer.images * layer.h.in * layer.w.in * layer.k, rng);
  fill(c.weights, layer.n * layer.k * layer.taps(), rng);
  fill(c.residual, results * layer.n, rng);
  for (int64_t n = 0; n < layer.n; ++n)
    c.bias.push_back(static_cast<int32_t>(rng.between(-5000, 5000)));
  return c;
}

/// The sum of one result: what layer.h says, by plain loops.
int64_t sum_of(const LayerCase& c, int64_t image, int64_t row, int64_t col, int64_t n) {
  const Layer& l = c.layer;
  int64_t sum = l.bias ? c.bias[at(n)] : 0;
  for (int64_t r = 0; r < l.h.kernel; ++r)
    for (int64_t s = 0; s < l.w.kernel; ++s) {
      const int64_t y = row * l.h.stride - l.h.before + r * l.h.dilation;
      const int64_t x = col * l.w.stride - l.w.before + s * l.w.dilation;
      if (y < 0 || y >= l.h.in || x < 0 || x >= l.w.in) continue;
      for (int64_t k = 0; k < l.k; ++k)
        sum += c.x[at(((image * l.h.in + y) * l.w.in + x) * l.k + k)] *
               c.weights[at(((n * l.k + k) * l.h.kernel + r) * l.w.kernel + s)];
    }
  if (l.residual)
    sum += int64_t{c.residual[at(((image * l.h.out + row) * l.w.out + col) * l.n + n)]} *
           (int64_t{1} << l.residual_shift);
  return sum;
}

/// To the nearest, ties to even, without floats.
int64_t half_even(int64_t sum, int shift) {
  const int64_t unit = int64_t{1} << shift, down = sum >> shift, rest = sum - down * unit;
  if (2 * rest != unit) return down + (2 * rest > unit ? 1 : 0);
  return down + (down & 1);
}

struct Compiled {
  Program program;
  LayerTile tile;
  uint64_t y = 0;
};

Compiled compiled(const LayerCase& c, const Config& config, const LayerTile& tile) {
  const Layer& layer = c.layer;
  const int64_t results = layer.images * layer.h.out * layer.w.out;
  accel::ImageBuilder image(accel::kPage, kDramBytes);
  const auto put = [&](const std::string& name, const void* data, size_t bytes) {
    const uint64_t address = *image.allocate(name, bytes);
    image.write(address, {static_cast<const char*>(data), bytes});
    return address;
  };
  LayerPlaces places;
  places.x = put("x", c.x.data(), c.x.size());
  const std::string weights = pack_weights(layer, c.weights);
  places.weights = put("weights", weights.data(), weights.size());
  const std::vector<int32_t> bias = loaded_bias(layer, c.bias);
  places.bias = put("bias", bias.data(), 4 * bias.size());
  const std::string offsets = clip_offsets(config, layer);
  places.offsets = put("offsets", offsets.data(), offsets.size());
  places.residual = put("residual", c.residual.data(), c.residual.size());
  places.x_pitch = static_cast<uint64_t>(layer.k);
  places.residual_pitch = static_cast<uint64_t>(layer.n);
  places.y_pitch = static_cast<uint64_t>(layer.n * (layer.wide ? 4 : 1));
  places.y = *image.allocate("y", static_cast<uint64_t>(results) * places.y_pitch);
  places.unclipped = *image.allocate("unclipped", static_cast<uint64_t>(results) * places.y_pitch);
  Compiled made;
  made.tile = tile, made.y = places.y;
  static_cast<accel::Image&>(made.program) = image.take();
  made.program.config = config;
  made.program.runs.emplace_back();
  emit(config, layer, places, tile, made.program.runs[0].insns);
  if (!clips(layer)) return made;
  EXPECT_TRUE(check_clip(layer));
  made.program.runs.emplace_back();
  emit_clip(config, layer, places, made.program.runs[1].insns);
  return made;
}

/// Runs the layer and compares everything it makes; counts as the model of its traffic says.
void expect_right(const LayerCase& c, const Config& config, const LayerTile& tile) {
  const Layer& layer = c.layer;
  const Compiled made = compiled(c, config, tile);
  const auto findings = check_program(made.program);
  ASSERT_TRUE(findings.empty()) << findings[0].text << "\n" << to_string(tile);
  const auto device = make_fsim(config, made.program.end());
  const auto report = execute(*device, made.program);
  ASSERT_TRUE(report) << to_string(report.error());
  const int64_t results = layer.images * layer.h.out * layer.w.out * layer.n;
  std::string y(at(results * (layer.wide ? 4 : 1)), '\0');
  ASSERT_TRUE(device->read(made.y, y.data(), y.size()));
  for (int64_t i = 0; i < results; ++i) {
    const int64_t n = i % layer.n, col = i / layer.n % layer.w.out;
    const int64_t row = i / layer.n / layer.w.out % layer.h.out;
    const int64_t sum = sum_of(c, i / layer.n / layer.w.out / layer.h.out, row, col, n);
    int64_t got = static_cast<int8_t>(y[at(i)]);
    int64_t want =
        std::clamp<int64_t>(half_even(sum, layer.shift), layer.relu ? 0 : -128, layer.high);
    if (layer.wide) {
      int32_t whole = 0;
      std::memcpy(&whole, y.data() + 4 * i, 4);
      got = whole, want = sum;
    }
    ASSERT_EQ(got, want) << "result " << i << ", " << to_string(tile);
  }
  const LayerTraffic bytes = traffic(config, layer, tile);
  EXPECT_EQ(report->counters.load_bytes, bytes.loads()) << to_string(tile);
  EXPECT_EQ(report->counters.store_bytes, bytes.y);
}

Config small_config(Rng& rng) {
  Config config;
  config.dim = 4 << rng.below(3);
  config.spad_kb = static_cast<int>(config.dim * rng.between(1, 4));
  config.acc_kb = static_cast<int>(rng.between(1, 8));
  return config;
}

TEST(GemminiLayer, ThreeHundredRandomOnesAreTheDirectSums) {
  Rng rng(7);
  int done = 0;
  for (int trial = 0; done < 300; ++trial) {
    const LayerCase c = random_case(rng);
    const Config config = rng.chance(0.3) ? Config{} : small_config(rng);
    const auto dataflow = rng.chance(0.5) ? Dataflow::WeightsStay : Dataflow::SumsStay;
    const auto tile = choose_tile(config, c.layer, dataflow);
    if (!tile) {
      EXPECT_EQ(tile.error().kind, ErrorKind::Capacity);
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(expect_right(c, config, *tile)) << "trial " << trial;
    ++done;
  }
}

// Tiles that the search would not take are as right.
TEST(GemminiLayer, EveryTileIsRight) {
  Rng rng(8);
  for (int done = 0; done < 150;) {
    const LayerCase c = random_case(rng);
    const Config config = small_config(rng);
    LayerTile tile;
    tile.dataflow = rng.chance(0.5) ? Dataflow::WeightsStay : Dataflow::SumsStay;
    tile.rows = rng.between(1, c.layer.h.out), tile.cols = rng.between(1, c.layer.w.out);
    tile.n_blocks = rng.between(1, 4), tile.k_blocks = rng.between(1, 4);
    tile.pixels_outer = rng.chance(0.5);
    if (!fits(config, c.layer, tile)) continue;
    ASSERT_NO_FATAL_FAILURE(expect_right(c, config, tile));
    ++done;
  }
}

TEST(GemminiLayer, NoTileMovesFewerBytesThanTheChosenOne) {
  Rng rng(9);
  for (int trial = 0; trial < 30; ++trial) {
    const LayerCase c = random_case(rng);
    const Config config = small_config(rng);
    const auto chosen = choose_tile(config, c.layer);
    if (!chosen) continue;
    EXPECT_TRUE(fits(config, c.layer, *chosen));
    const uint64_t best = traffic(config, c.layer, *chosen).loads();
    const int64_t ns = (c.layer.n - 1) / config.dim + 1, ks = (c.layer.k - 1) / config.dim + 1;
    const auto sizes = [](int64_t extent) {
      std::vector<int64_t> all = {extent};
      for (int64_t size = 1; size < extent; size *= 2) all.push_back(size);
      return all;
    };
    for (const int64_t rows : sizes(c.layer.h.out))
      for (const int64_t cols : sizes(c.layer.w.out))
        for (const int64_t n : sizes(ns))
          for (const int64_t k : sizes(ks))
            for (const bool outer : {true, false}) {
              const LayerTile tile = {Dataflow::WeightsStay, rows, cols, n, k, outer};
              if (!fits(config, c.layer, tile)) continue;
              EXPECT_GE(traffic(config, c.layer, tile).loads(), best) << to_string(tile);
            }
  }
}

TEST(GemminiLayer, ALayerThatIsOnChipAtOnceIsLoadedOnce) {
  const Layer layer = matrix_product(64, 64, 64);
  const auto tile = choose_tile({}, layer);
  ASSERT_TRUE(tile);
  const LayerTraffic bytes = traffic({}, layer, *tile);
  EXPECT_EQ(bytes.x, 64u * 64);
  EXPECT_EQ(bytes.weights, 64u * 64);
  EXPECT_EQ(to_string(*tile), "1x64 pixels, 4 blocks of n, 4 of k, pixels outer, weights stay");
}

TEST(GemminiLayer, RefusesBoundsThatWouldChangeTies) {
  Layer layer = matrix_product(1, 1, 1);
  layer.shift = 3, layer.high = 95;
  EXPECT_THAT(to_string(check_clip(layer).error()), HasSubstr("which is odd"));
  layer.high = 96;
  EXPECT_TRUE(check_clip(layer));
  layer.shift = 17;
  EXPECT_THAT(to_string(check_clip(layer).error()), HasSubstr("a shift by 17"));
}

TEST(GemminiLayer, RefusesKernelsThatDoNotFit) {
  Layer layer;
  layer.h = layer.w = {400, 1, 400, 1, 1, 0};
  const auto tile = choose_tile({}, layer);
  ASSERT_FALSE(tile);
  EXPECT_THAT(to_string(tile.error()), HasSubstr("of 16384 in the scratchpad"));
}

}  // namespace
}  // namespace tilewright::gemmini
