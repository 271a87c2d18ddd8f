#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tilewright/accel/gemmini/check.h"
#include "tilewright/accel/gemmini/fsim.h"
#include "tilewright/accel/gemmini/testing/random_program.h"
#include "tilewright/accel/gemmini/testing/raw_machine.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"

namespace tilewright::gemmini {
namespace {

using ::testing::HasSubstr;

std::string root_file(const std::string& name) {
  return std::string(TILEWRIGHT_ROOT_DIR) + "/" + name;
}

TEST(GemminiConfig, FileIsTheBuiltin) {
  const auto file = load_config(root_file("hw/gemmini.toml"));
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(*file, *load_config("gemmini"));
  EXPECT_EQ(file->spad_rows(), 4 * 4096);
  EXPECT_EQ(file->acc_rows(), 1024);
  EXPECT_EQ(file->most_columns(1), 64);
  EXPECT_EQ(file->most_columns(4), 16);
}

TEST(GemminiConfig, RefusesAllProblemsAtOnce) {
  const auto bad = parse_config("kind = \"gemmini\"\ndim = 99\nspad = 4\n", "my.toml");
  ASSERT_FALSE(bad);
  const std::string text = to_string(bad.error());
  EXPECT_THAT(text, HasSubstr("my.toml:2"));
  EXPECT_THAT(text, HasSubstr("2..64"));
  EXPECT_THAT(text, HasSubstr("spad_kb"));
  EXPECT_THAT(to_string(parse_config("dim = 12", "x").error()), HasSubstr("power of two"));
  EXPECT_THAT(to_string(parse_config("dim = 64\nacc_kb = 8", "x").error()),
              HasSubstr("a block has"));
  EXPECT_THAT(to_string(load_config("gemini").error()), HasSubstr("gemmini"));
  Config config;
  config.name = "a \"b\"";
  config.dim = 8;
  EXPECT_EQ(*parse_config(to_toml(config), "x"), config);
}

// The bits by hand, from the table of docs/gemmini.md.
TEST(GemminiIsa, BitsAreThoseOfTheTable) {
  ConfigEx ex;
  ex.activation = Activation::Relu, ex.a_transposed = true, ex.a_stride = 3, ex.c_stride = 5;
  ex.shift = 7;
  EXPECT_EQ(encode({ex}), (RawCommand{0, 0x3F800000'0003'010C, 0x0005'0000'00000007}));
  ConfigMvin in;
  in.which = 2, in.narrow = true, in.block_stride = 16, in.scale = 0.5f, in.stride = 100;
  EXPECT_EQ(encode({in}), (RawCommand{0, 0x3F000000'0010'0015, 100}));
  ConfigMvout out;
  out.activation = Activation::Relu, out.stride = 64, out.scale = 2;
  EXPECT_EQ(encode({out}), (RawCommand{0, 0x6, 0x40000000'00000040}));
  EXPECT_EQ(encode({Mvin{0, 0x1000, {Local::spad(5), 64, 16}}}),
            (RawCommand{2, 0x1000, 0x0010'0040'00000005}));
  EXPECT_EQ(encode({Mvin{1, 0, {Local::acc(1, Local::kAdds), 4, 2}}}),
            (RawCommand{1, 0, 0x0002'0004'C0000001}));
  EXPECT_EQ(encode({Mvin{2, 9, {Local::spad(0), 1, 1}}}).funct, 14u);
  EXPECT_EQ(encode({Mvout{0x2000, {Local::acc(2, Local::kWhole), 4, 2}}}),
            (RawCommand{3, 0x2000, 0x0002'0004'A0000002}));
  EXPECT_EQ(encode({Preload{{}, {Local::acc(0), 16, 16}}}),
            (RawCommand{6, 0xFFFFFFFF, 0x0010'0010'80000000}));
  const Block a = {Local::spad(1), 2, 3};
  EXPECT_EQ(encode({Compute{true, a, {}}}), (RawCommand{4, 0x0003'0002'00000001, 0xFFFFFFFF}));
  EXPECT_EQ(encode({Compute{false, a, {}}}).funct, 5u);
  EXPECT_EQ(encode({Flush{true}}), (RawCommand{7, 1, 0}));
}

TEST(GemminiIsa, RefusesWhatItDoesNotKnow) {
  const auto why = [](RawCommand raw) { return to_string(decode(raw).error()); };
  EXPECT_THAT(why({8, 0, 0}), HasSubstr("loop commands are not supported"));
  EXPECT_THAT(why({0, 3, 0}), HasSubstr("there is no configuration 3"));
  EXPECT_THAT(why({0, 2 | 1 << 4, 0}), HasSubstr("pooling is not supported"));
  EXPECT_THAT(why({0, 2 << 3, 0}), HasSubstr("there is no activation 2"));
  EXPECT_THAT(why({0, 1 | 3 << 3, 0}), HasSubstr("there are three mvin"));
  EXPECT_THAT(why({0, 1 << 5, 0}), HasSubstr("must be zero"));
  EXPECT_FALSE(decode({127, 0, 0}));
  EXPECT_THAT(to_string(parse_lines("2 0 0\n\n# x\n2 0x 1", "f").error()), HasSubstr("f:4"));
  EXPECT_THAT(to_string(parse_lines("2 0 0 0", "f").error()), HasSubstr("more than three"));
}

TEST(GemminiIsa, RandomCommandsReadBackFromBitsAndText) {
  Rng rng(3);
  for (int trial = 0; trial < 20; ++trial) {
    const Program program = testing::random_program(rng, 100);
    for (const Insn& insn : program.runs[0].insns) EXPECT_EQ(*decode(encode(insn)), insn);
    EXPECT_EQ(parse_lines(assembly(program), "x")->at(0), program.runs[0].insns);
    const auto again = parse_program(serialise(program));
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(again->runs[0].insns, program.runs[0].insns);
    EXPECT_TRUE(again->image == program.image);
    EXPECT_EQ(again->config, program.config);
  }
}

/// DRAM after the program.
Result<std::string> image_after(const Program& program) {
  const auto device = make_fsim(program.config, program.end());
  TW_TRY(execute(*device, program));
  std::string image(program.image.size(), '\0');
  TW_TRY_STATUS(device->read(program.base, image.data(), image.size()));
  return image;
}

TEST(GemminiFsimSlow, DoesWhatTheBitsSay) {
  Rng rng(1);
  int changed = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Program program = testing::random_program(rng, 60);
    const auto image = image_after(program);
    ASSERT_TRUE(image) << to_string(image.error());
    testing::RawMachine raw(program.config, std::string(program.base, '\0') + program.image);
    for (const Insn& insn : program.runs[0].insns) raw.execute(encode(insn));
    ASSERT_TRUE(*image == raw.dram().substr(program.base)) << "program " << trial;
    changed += *image != program.image ? 1 : 0;
  }
  EXPECT_GT(changed, 190);
}

/// A program of one run over an image of so many bytes.
Program program_of(std::vector<Insn> insns, size_t bytes = 4096) {
  Program program;
  program.image.assign(bytes, '\0');
  program.runs.push_back({{}, std::move(insns), {}});
  return program;
}

constexpr uint64_t kAt = accel::kPage;

// One product of full blocks against three loops, in both dataflows, with D.
TEST(GemminiFsim, MultipliesInBothDataflows) {
  Rng rng(2);
  int8_t a[16][16], b[16][16], d[16][16];
  for (auto* m : {&a, &b, &d})
    for (auto& row : *m)
      for (int8_t& value : row) value = static_cast<int8_t>(rng.next());
  for (const bool ws : {true, false}) {
    ConfigEx ex;
    ex.weights_stay = ws;
    ConfigMvin in;
    in.stride = 16;
    ConfigMvout out;
    out.stride = 64;
    const auto block = [](int row) { return Block{Local::spad(row), 16, 16}; };
    Program program = program_of({{ex},
                                  {in},
                                  {out},
                                  {Mvin{0, kAt, block(0)}},
                                  {Mvin{0, kAt + 256, block(16)}},
                                  {Mvin{0, kAt + 512, block(32)}},
                                  {Preload{block(ws ? 16 : 32), {Local::acc(0), 16, 16}}},
                                  {Compute{true, block(0), block(ws ? 32 : 16)}},
                                  {Mvout{kAt + 1024, {Local::acc(0, Local::kWhole), 16, 16}}}});
    std::memcpy(program.image.data(), a, 256);
    std::memcpy(program.image.data() + 256, b, 256);
    std::memcpy(program.image.data() + 512, d, 256);
    EXPECT_TRUE(check_program(program).empty());
    const auto image = image_after(program);
    ASSERT_TRUE(image) << to_string(image.error());
    for (size_t i = 0; i < 16; ++i)
      for (size_t j = 0; j < 16; ++j) {
        int32_t want = d[i][j], got = 0;
        for (size_t k = 0; k < 16; ++k) want += a[i][k] * b[k][j];
        std::memcpy(&got, image->data() + 1024 + i * 64 + j * 4, 4);
        ASSERT_EQ(got, want) << ws << " " << i << " " << j;
      }
  }
}

TEST(GemminiFsim, RoundsHalfToEven) {
  EXPECT_EQ(scaled_to_byte(5, 0.5f, Activation::None), 2);
  EXPECT_EQ(scaled_to_byte(7, 0.5f, Activation::None), 4);
  EXPECT_EQ(scaled_to_byte(-5, 0.5f, Activation::None), -2);
  EXPECT_EQ(scaled_to_byte(-5, 0.5f, Activation::Relu), 0);
  EXPECT_EQ(scaled_to_byte(300, 0.5f, Activation::None), 127);
  EXPECT_EQ(scaled_to_byte(-300, 0.5f, Activation::None), -128);
  EXPECT_EQ(shifted_half_even(5, 1), 2);
  EXPECT_EQ(shifted_half_even(7, 1), 4);
  EXPECT_EQ(shifted_half_even(-7, 1), -4);
  EXPECT_EQ(shifted_half_even(-5, 1), -2);
  EXPECT_EQ(shifted_half_even(INT32_MAX, 31), 1);
}

TEST(GemminiCheck, FindsWhatIsWrong) {
  const Block spad = {Local::spad(0), 16, 16}, acc = {Local::acc(0), 16, 16};
  const ConfigMvin in{.stride = 16};
  const ConfigMvout out{.stride = 16};
  const Insn load = {Mvin{0, kAt, spad}}, ex = {ConfigEx{}};
  ConfigEx both, only_b;
  both.a_transposed = both.b_transposed = true;
  only_b.weights_stay = false, only_b.b_transposed = true;
  ConfigEx os;
  os.weights_stay = false;
  const struct {
    const char* what;
    std::vector<Insn> insns;
  } kRows[] = {
      {"both factors are transposed", {{both}}},
      {"only B is transposed", {{only_b}}},
      {"mvin 0 before its config_mvin", {load}},
      {"mvout before its config_mvout", {{Mvout{kAt, acc}}}},
      {"compute before config_ex", {{in}, load, {Preload{spad, acc}}, {Compute{true, spad, {}}}}},
      {"compute before preload", {ex, {in}, load, {Compute{true, spad, {}}}}},
      {"nothing is held yet", {ex, {in}, load, {Preload{spad, acc}}, {Compute{false, spad, {}}}}},
      {"nothing is held yet",
       {ex,
        {in},
        load,
        {Preload{spad, acc}},
        {Compute{true, spad, {}}},
        {os},
        {Preload{{}, acc}},
        {Compute{false, spad, spad}}}},
      {"A is undefined", {ex, {in}, load, {Preload{spad, acc}}, {Compute{true, {}, {}}}}},
      {"B is in the accumulator", {ex, {in}, load, {Preload{acc, acc}}, {Compute{true, spad, {}}}}},
      {"17 rows of 16 columns", {{in}, {Mvin{0, kAt, {Local::spad(0), 16, 17}}}}},
      {"16 rows of 65 columns", {{in}, {Mvin{0, kAt, {Local::spad(0), 65, 16}}}}},
      {"blocks of 16 rows are 0 rows apart", {{in}, {Mvin{0, kAt, {Local::spad(0), 64, 16}}}}},
      {"mvin writes row 16384 of 16384", {{in}, {Mvin{0, kAt, {Local::spad(16369), 16, 16}}}}},
      {"mvin writes row 1024 of 1024", {{in}, {Mvin{0, kAt, {Local::acc(1009), 16, 16}}}}},
      {"has flags, but is in the scratchpad", {{in}, {Mvin{0, kAt, {{1u << 30}, 16, 16}}}}},
      {"C is written to row 1024",
       {ex, {in}, load, {Preload{spad, {Local::acc(1009), 16, 16}}}, {Compute{true, spad, {}}}}},
      {"is outside of the image", {{in}, {Mvin{0, kAt + 3841, spad}}}},
      {"is outside of the image", {{in}, {Mvin{0, 8, spad}}}},
      {"A reads column 0 of row 16",
       {ex, {in}, load, {Preload{spad, acc}}, {Compute{true, {Local::spad(16), 1, 1}, {}}}}},
      {"B reads column 0 of row 16",
       {ex, {in}, load, {Preload{{Local::spad(16), 1, 1}, acc}}, {Compute{true, spad, {}}}}},
      {"C that adds reads column 0 of row 0 of the accumulator",
       {ex,
        {in},
        load,
        {Preload{spad, {Local::acc(0, Local::kAdds), 1, 1}}},
        {Compute{true, spad, {}}}}},
      {"mvout reads column 0 of row 0 of the accumulator", {{out}, {Mvout{kAt, acc}}}},
      {"row 0 is loaded in the same run",
       {{in}, {out}, load, {Mvout{kAt + 16, {Local::spad(0), 1, 1}}}}},
  };
  for (const auto& row : kRows) {
    const Program program = program_of(row.insns);
    const std::vector<Finding> findings = check_program(program);
    ASSERT_EQ(findings.size(), 1u) << row.what;
    EXPECT_EQ(findings[0].insn, row.insns.size() - 1) << row.what;
    EXPECT_THAT(findings[0].text, HasSubstr(row.what));
    // The simulator refuses the same, but for what reads zeros there.
    if (findings[0].rule != Rule::Command) continue;
    const auto image = image_after(program);
    ASSERT_FALSE(image) << row.what;
    EXPECT_THAT(to_string(image.error()), HasSubstr(row.what));
  }
}

TEST(GemminiCheck, AFenceIsBetweenWhatIsStoredAndWhatIsLoaded) {
  const Block spad = {Local::spad(0), 16, 16};
  const Insn in = {ConfigMvin{.stride = 16}}, out = {ConfigMvout{.stride = 16}};
  const Insn load = {Mvin{0, kAt, spad}}, store = {Mvout{kAt + 1024, spad}};
  const Insn again = {Mvin{0, kAt + 1024 + 255, {Local::spad(0), 1, 1}}};
  Program program = program_of({in, out, load, store, again});
  const std::vector<Finding> findings = check_program(program);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].rule, Rule::Fence);
  EXPECT_EQ(findings[0].insn, 4u);
  program.runs = {{{}, {in, out, load, store}, {}}, {{}, {in, again}, {}}};
  EXPECT_TRUE(check_program(program).empty());
  const auto text = parse_lines(assembly(program), "x");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->size(), 2u);
  EXPECT_EQ(text->back(), program.runs[1].insns);
}

TEST(GemminiDump, ReadsBackWithWhatIsExpected) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder);
  Rng rng(4);
  Program program = testing::random_program(rng, 80);
  program.outputs = {{"y", program.base + 5, 3000}};
  program.inputs = {{"x", program.base, 5}};
  program.info = "{}";
  program.runs[0].spans = {{"layer", 0, 10}};
  program.runs.push_back({{{program.base + 7, "patch"}}, program.runs[0].insns, {}});
  const auto image = image_after(program);
  ASSERT_TRUE(image);
  const std::string path = folder->file("dump");
  ASSERT_TRUE(write_dump(path, program, *image));
  const auto dump = read_dump(path);
  ASSERT_TRUE(dump) << to_string(dump.error());
  EXPECT_TRUE(serialise(dump->program) == serialise(program));
  ASSERT_EQ(dump->expected.size(), 1u);
  EXPECT_TRUE(dump->expected[0] == image->substr(5, 3000));
  EXPECT_EQ(std::filesystem::file_size(path + "/commands.bin"),
            24 * 2 * program.runs[0].insns.size());
  EXPECT_THAT(*read_file(path + "/commands.txt"), HasSubstr("# layer layer\n0 0x"));
  ASSERT_TRUE(write_file(path + "/commands.bin", "short"));
  EXPECT_THAT(to_string(read_dump(path).error()), HasSubstr("go beyond the 5 of 'commands.bin'"));
}

}  // namespace
}  // namespace tilewright::gemmini
