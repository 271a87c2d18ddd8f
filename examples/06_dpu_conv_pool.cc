// A layer on the DPU by hand: a convolution of 3x3 and a pool of 2x2, in tiles of eight rows, from
// DDR and back. Three programs of the same instructions, with tokens by addresses, by barriers
// between groups, and one step after the other, and the time of each.
//
//   LOAD  rows of x into memory 0      CONV  eight rows of memory 0 into memory 1
//   MISC  two rows of the pool into 2  SAVE  a row of memory 2
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/accel/dpu/builder.h"
#include "tilewright/accel/dpu/check.h"
#include "tilewright/accel/dpu/sim/fsim.h"
#include "tilewright/accel/dpu/sim/tsim.h"

namespace dpu = tilewright::dpu;
using tilewright::ErrorKind;
using tilewright::Result;
using tilewright::Status;

constexpr int kTiles = 28, kHeight = 8 * kTiles, kWidth = 224;
constexpr int kChannels = 64, kGroups = kChannels / 16;  // words hold 16 channels of a pixel
constexpr int kRow = kWidth * kGroups;                   // words of a row; the pool's have half
constexpr int kWeightWords = 9 * kGroups * kGroups;      // the biases are in the word behind them
constexpr int kShift = 11;                               // results are sums / 2^11

// Where row r of a map is: rows take turns in the eight banks of a memory, which begins anew at its
// end. `words`: of a row.
int bank_of(int memory, int r) { return 8 * memory + r % 8; }
int address_of(const dpu::Config& config, int memory, int r, int words) {
  return r / 8 * words % config.fm_depth[static_cast<size_t>(memory)];
}

// Everything that holds for the whole layer.
std::vector<dpu::Op> inits() {
  dpu::ConvInit conv;
  conv.kernel_w = conv.kernel_h = 3;
  conv.shift_cut = kShift;
  conv.act_type = dpu::kRelu;
  conv.in_groups = kGroups;
  conv.jump_read = conv.jump_write = kGroups;
  conv.jump_read_endl = conv.jump_write_endl = kRow;
  dpu::PoolInit pool;
  pool.kernel_w = pool.kernel_h = pool.stride_w = pool.stride_h = 2;
  pool.jump_read = pool.jump_write = kGroups;
  pool.jump_read_endl = kRow;
  pool.jump_write_endl = kRow / 2;
  return {conv, pool};
}

// All weights and biases: 145 words of PM.
dpu::Op load_weights() {
  dpu::Load load;
  load.mode = 1;
  load.jump_read = load.channel = 16;
  load.jump_write = 1;
  load.length = kWeightWords + 1;
  load.reg_id = static_cast<int>(dpu::Reg::Params);
  return load;
}

// The rows that tile i needs beyond those of the tile before: its convolution looks one row ahead.
std::vector<dpu::Op> loads(const dpu::Config& config, int i) {
  std::vector<dpu::Op> ops;
  const int first = i == 0 ? 0 : 8 * i + 1, end = std::min(8 * i + 9, kHeight);
  for (int r = first; r < end; ++r) {
    dpu::Load load;
    load.bank_id = bank_of(0, r);
    load.bank_addr = address_of(config, 0, r, kRow);
    load.jump_read = load.channel = kChannels;
    load.jump_write = kGroups;
    load.length = kWidth;
    load.ddr_addr = r * kRow * config.word_bytes();
    ops.push_back(load);
  }
  return ops;
}

// Eight rows. Rows and columns outside of the map are pads, not read.
std::vector<dpu::Op> convs(const dpu::Config& config, int i) {
  const int top = std::max(8 * i - 1, 0);
  dpu::Conv conv;
  conv.pad_left = conv.pad_right = 1;
  conv.pad_top = i == 0 ? 1 : 0;
  conv.pad_bottom = i + 1 == kTiles ? 1 : 0;
  conv.bank_id_in = bank_of(0, top);
  conv.bank_addr_in = address_of(config, 0, top, kRow);
  conv.bank_id_out = bank_of(1, 8 * i);
  conv.bank_addr_out = address_of(config, 1, 8 * i, kRow);
  conv.bank_addr_bias = 4 * kWeightWords;  // counts quarters of a word
  conv.length = kWidth;
  conv.out_groups = kGroups;
  conv.valid_rows = 8;
  return {conv};
}

// Four rows, two at once.
std::vector<dpu::Op> pools(const dpu::Config& config, int i) {
  std::vector<dpu::Op> ops;
  for (int out = 4 * i; out < 4 * i + 4; out += 2) {
    dpu::Pool pool;
    pool.bank_id_in = bank_of(1, 2 * out);
    pool.bank_addr_in = address_of(config, 1, 2 * out, kRow);
    pool.bank_id_out = bank_of(2, out);
    pool.bank_addr_out = address_of(config, 2, out, kRow / 2);
    pool.length = kWidth / 2;
    pool.channel_group = kGroups;
    pool.valid_rows = 2;
    ops.push_back(pool);
  }
  return ops;
}

std::vector<dpu::Op> saves(const dpu::Config& config, int i) {
  std::vector<dpu::Op> ops;
  for (int r = 4 * i; r < 4 * i + 4; ++r) {
    dpu::Save save;
    save.bank_id = bank_of(2, r);
    save.bank_addr = address_of(config, 2, r, kRow / 2);
    save.jump_read = kGroups;
    save.jump_write = save.channel = kChannels;
    save.length = kWidth / 2;
    save.reg_id = static_cast<int>(dpu::Reg::Output);
    save.ddr_addr = r * kRow / 2 * config.word_bytes();
    ops.push_back(save);
  }
  return ops;
}

Status add(dpu::Builder& builder, const std::vector<dpu::Op>& ops) {
  for (const dpu::Op& op : ops) TW_TRY_STATUS(builder.add(op));
  return {};
}

enum class Order { Addresses, Barriers, InTurn };

// The layer without its weights. By addresses, instructions are given tile after tile, and the
// builder finds out who waits for whom. By barriers, a group has the loads of one tile, the
// convolution of the tile before it, and so on: its units work side by side.
Status add_layer(dpu::Builder& builder, const dpu::Config& config, Order order) {
  TW_TRY_STATUS(add(builder, inits()));
  const auto parts = {loads, convs, pools, saves};
  const int steps = order == Order::Barriers ? kTiles + 3 : kTiles;
  for (int step = 0; step < steps; ++step) {
    int lag = 0;
    if (order == Order::Barriers) builder.begin_group();
    for (const auto& part : parts) {
      const int tile = order == Order::Barriers ? step - lag++ : step;
      if (order == Order::InTurn) builder.begin_group();
      if (tile >= 0 && tile < kTiles) TW_TRY_STATUS(add(builder, part(config, tile)));
    }
  }
  return {};
}

// Where input, output and weights are in DDR, and pixels of every image in the same place.
dpu::Program on_memory(const dpu::Config& config, dpu::Run run, const std::string& input,
                       const std::string& params) {
  dpu::Program program;
  program.config = config;
  const uint64_t in = input.size(), out = in / 4;
  program.regions[0] = {"input", program.base, in};
  program.regions[1] = {"output", program.base + in, out};
  program.regions[3] = {"params", program.base + in + out, params.size()};
  program.image = input + std::string(out, '\0') + params;
  program.runs = {std::move(run)};
  return program;
}

Result<dpu::Program> layer(const dpu::Config& config, Order order, bool with_weights,
                           const std::string& input, const std::string& params) {
  dpu::Builder builder(config);
  builder.begin_span("conv+pool");
  if (with_weights) TW_TRY_STATUS(builder.add(load_weights()));
  TW_TRY_STATUS(add_layer(builder, config, order));
  dpu::Run run = TW_TRY(builder.finish(order == Order::Addresses));
  return on_memory(config, std::move(run), input, params);
}

// Numbers that are the same everywhere: nothing here depends on a generator.
int8_t number(int64_t i) { return static_cast<int8_t>(i * 2654435761 >> 7 & 0xff); }

int8_t pixel(int r, int x, int c) { return number(int64_t{r} * kRow * 16 + x * kChannels + c); }
int8_t weight(int out, int ky, int kx, int in) {
  return number(((int64_t{out} * 3 + ky) * 3 + kx) * kChannels + in + 77);
}
int32_t bias(int out) { return 100 * out - 3000; }

// [row][column][group][image][16 channels]; all images are alike.
std::string input_bytes(const dpu::Config& config) {
  std::string bytes;
  for (int r = 0; r < kHeight; ++r)
    for (int x = 0; x < kWidth; ++x)
      for (int g = 0; g < kGroups; ++g)
        for (int b = 0; b < config.pe; ++b)
          for (int c = 0; c < 16; ++c) bytes += static_cast<char>(pixel(r, x, 16 * g + c));
  return bytes;
}

// Words of [output group][row][column][input group], byte 16 * output + input; then biases.
std::string param_bytes() {
  std::string bytes;
  for (int out = 0; out < kGroups; ++out)
    for (int tap = 0; tap < 9; ++tap)
      for (int in = 0; in < kGroups; ++in)
        for (int byte = 0; byte < 256; ++byte)
          bytes += static_cast<char>(
              weight(16 * out + byte / 16, tap / 3, tap % 3, 16 * in + byte % 16));
  for (int out = 0; out < kChannels; ++out)
    for (int byte = 0; byte < 4; ++byte) bytes += static_cast<char>(bias(out) >> 8 * byte & 0xff);
  return bytes;
}

// One value of the layer by its definition.
int convolved(int r, int x, int out) {
  int64_t sum = bias(out);
  for (int ky = 0; ky < 3; ++ky)
    for (int kx = 0; kx < 3; ++kx) {
      const int y = r + ky - 1, z = x + kx - 1;
      if (y < 0 || y >= kHeight || z < 0 || z >= kWidth) continue;
      for (int in = 0; in < kChannels; ++in) sum += pixel(y, z, in) * weight(out, ky, kx, in);
    }
  const int64_t rounded = (sum + (int64_t{1} << (kShift - 1))) >> kShift;
  return static_cast<int>(std::clamp<int64_t>(rounded, 0, 127));
}

// Values of all of the map, some by their definition.
Status check_values(const dpu::Config& config, const std::string& output) {
  for (int i = 0; i < 2000; ++i) {
    const int r = i * 37 % (kHeight / 2), x = i * 101 % (kWidth / 2), c = i * 29 % kChannels;
    int want = 0;
    for (int k = 0; k < 4; ++k) want = std::max(want, convolved(2 * r + k / 2, 2 * x + k % 2, c));
    const int word = r * kRow / 2 + x * kGroups + c / 16, image = i % config.pe;
    const int got =
        static_cast<int8_t>(output[static_cast<size_t>((word * config.pe + image) * 16 + c % 16)]);
    if (got != want)
      return tilewright::fail(
          ErrorKind::Mismatch,
          fmt::format("row {}, column {}, channel {} is {}, not {}", r, x, c, got, want));
  }
  return {};
}

Status run() {
  // Only what moves and computes takes time here.
  dpu::Config config;
  config.timing.lat_ddr = config.timing.lat_conv = config.timing.lat_misc = 0;
  config.timing.lat_init = 0;
  const std::string input = input_bytes(config), params = param_bytes();

  const struct {
    Order order;
    const char* words;
    uint64_t cycles;
  } kOrders[] = {{Order::Barriers, "barriers", 916'608},
                 {Order::Addresses, "addresses", 915'712},
                 {Order::InTurn, "one after the other", 1'254'400}};
  for (const auto& [order, words, cycles] : kOrders) {
    // As if the weights were there already: their load would hide behind nothing.
    const dpu::Program program = TW_TRY(layer(config, order, false, input, params));
    const dpu::LaunchReport report = TW_TRY(dpu::simulate_time(config, program.runs[0].insns, {}));
    fmt::print("{:20} {:9} cycles, {:.3f} ms\n", words, report.cycles,
               static_cast<double>(report.cycles) / (config.clock_mhz * 1e3));
    if (report.cycles != cycles)
      return tilewright::fail(ErrorKind::Mismatch, fmt::format("not {} cycles", cycles));
  }

  const dpu::Program program = TW_TRY(layer(config, Order::Addresses, true, input, params));
  for (const dpu::Finding& finding : dpu::check_program(program))
    return tilewright::fail(ErrorKind::Invalid, finding.text);
  std::vector<std::unique_ptr<dpu::Device>> devices;
  devices.push_back(dpu::make_fsim(config, program.end()));
  devices.push_back(dpu::make_tsim(config, program.end()));
  for (const auto& device : devices) {
    const dpu::LaunchReport report = TW_TRY(dpu::execute(*device, program));
    std::string output(program.regions[1].bytes, '\0');
    TW_TRY_STATUS(device->read(program.regions[1].address, output.data(), output.size()));
    TW_TRY_STATUS(check_values(config, output));
    // The functional simulator keeps no time: 0 cycles. With the weights it is 580 more.
    fmt::print("{}: {} MAC of an image, {} cycles, right\n", device->name(), report.counters.macs,
               report.cycles);
  }
  return {};
}

int main() {
  const Status status = run();
  if (!status) fmt::print(stderr, "{}", tilewright::to_string(status.error()));
  return status ? 0 : 1;
}
