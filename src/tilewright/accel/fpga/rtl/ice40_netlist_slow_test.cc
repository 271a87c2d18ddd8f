// Cells of the iCE40 against Yosys's models of them under Icarus: every kind, with random
// parameters and inputs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tilewright/accel/fpga/rtl/ice40_netlist.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/base/rng.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::fpga {
namespace {

/// Cells side by side, all of whose ports are ports of the top: as JSON, and as Verilog.
class Bench {
 public:
  explicit Bench(uint64_t seed) : rng_(seed) {}

  using Parameters = std::vector<std::pair<const char*, int>>;  ///< name, bits
  /// `inputs`: `rare` ones are 1 now and then, `low` ones only in their two lowest bits, and in
  /// those behind the first eight.
  struct Input {
    const char* name;
    int bits;
    enum class Kind { Any, Often, Low, Zero, One } kind = Kind::Any;
  };
  void add(const std::string& type, const Parameters& parameters, const std::vector<Input>& inputs,
           const std::vector<Ice40Port>& outputs, const std::vector<const char*>& clocks) {
    nlohmann::json cell = {{"type", type}};
    std::string given, connections;
    for (const auto& [name, bits] : parameters) {
      std::string value;
      for (int i = 0; i < bits; ++i) value += rng_.chance(0.5) ? '1' : '0';
      cell["parameters"][name] = value;
      given += fmt::format("{}.{}({}'b{})", given.empty() ? "" : ", ", name, bits, value);
    }
    const auto connect = [&](const std::string& name, const std::string& to) {
      connections += fmt::format("{}.{}({})", connections.empty() ? "" : ", ", name, to);
    };
    for (const char* clock : clocks) {
      cell["connections"][clock] = {kClock};
      connect(clock, "clk");
    }
    for (const Input& input : inputs) {
      if (input.kind == Input::Kind::Zero || input.kind == Input::Kind::One) {
        const bool one = input.kind == Input::Kind::One;
        cell["connections"][input.name] = {one ? "1" : "0"};
        connect(input.name, one ? "1'b1" : "1'b0");
        continue;
      }
      connect(input.name, fmt::format("in[{}+:{}]", inputs_.size(), input.bits));
      for (int bit = 0; bit < input.bits; ++bit) {
        cell["connections"][input.name].push_back(kFirst + 2 * static_cast<int>(inputs_.size()));
        const bool fixed = input.kind == Input::Kind::Low && bit >= 2 && bit < 8;
        inputs_.push_back(fixed ? 0 : input.kind == Input::Kind::Often ? 0.9 : 0.5);
      }
    }
    for (const Ice40Port& output : outputs) {
      connect(output.name, fmt::format("out[{}+:{}]", outputs_, output.bits));
      for (int bit = 0; bit < output.bits; ++bit)
        cell["connections"][output.name].push_back(kFirst + 2 * outputs_++ + 1);
    }
    const std::string name = fmt::format("c{}", cells_++);
    module_["cells"][name] = cell;
    text_ += fmt::format("  {} {} {} ({});\n", type,
                         given.empty() ? "" : fmt::format("#({})", given), name, connections);
  }

  std::string json() const {
    nlohmann::json module = module_;
    module["ports"]["clk"]["bits"] = {kClock};
    for (size_t i = 0; i < inputs_.size(); ++i)
      module["ports"]["in"]["bits"].push_back(kFirst + 2 * static_cast<int>(i));
    for (int i = 0; i < outputs_; ++i) module["ports"]["out"]["bits"].push_back(kFirst + 2 * i + 1);
    return nlohmann::json{{"modules", {{"bench", module}}}}.dump();
  }
  std::string verilog(size_t cycles) const {
    return fmt::format(R"(module bench;
  reg clk = 0;
  reg [{0}:0] in;
  wire [{1}:0] out;
  reg [{0}:0] given[0:{2}];
  integer i;
{3}  initial begin
    $readmemb("given.txt", given);
    for (i = 0; i <= {2}; i = i + 1) begin
      in = given[i];
      #1 $display("%b", out);
      clk = 1;
      #1 clk = 0;
      #1;
    end
  end
endmodule
)",
                       inputs_.size() - 1, outputs_ - 1, cycles - 1, text_);
  }
  /// Inputs of a cycle, the last one first.
  std::string draw() {
    std::string bits;
    for (size_t i = inputs_.size(); i-- > 0;) bits += rng_.chance(inputs_[i]) ? '1' : '0';
    return bits;
  }

 private:
  static constexpr int kClock = 2, kFirst = 3;
  Rng rng_;
  nlohmann::json module_;
  std::string text_;
  std::vector<double> inputs_;  ///< how often each is 1
  int outputs_ = 0, cells_ = 0;
};

using Kind = Bench::Input::Kind;

Bench all_kinds(uint64_t seed) {
  Bench bench(seed);
  for (int i = 0; i < 4; ++i)
    bench.add("SB_LUT4", {{"LUT_INIT", 16}}, {{"I0", 1}, {"I1", 1}, {"I2", 1}, {"I3", 1}},
              {{"O", 1}}, {});
  bench.add("SB_CARRY", {}, {{"I0", 1}, {"I1", 1}, {"CI", 1}}, {{"CO", 1}}, {});
  for (const char* kind : {"", "E", "SR", "SS", "ESR", "ESS"}) {
    const std::string type = std::string("SB_DFF") + kind;
    std::vector<Bench::Input> inputs = {{"D", 1}};
    if (kind[0] == 'E') inputs.push_back({"E", 1});
    if (type.find("SR") != std::string::npos) inputs.push_back({"R", 1});
    if (type.find("SS") != std::string::npos) inputs.push_back({"S", 1});
    bench.add(type, {}, inputs, {{"Q", 1}}, {"C"});
  }
  for (int i = 0; i < 16; ++i) {
    Bench::Parameters parameters = {{"READ_MODE", 2}, {"WRITE_MODE", 2}};
    for (const char* init : {"INIT_0", "INIT_7", "INIT_F"}) parameters.push_back({init, 256});
    bench.add("SB_RAM40_4K", parameters,
              {{"RCLKE", 1, Kind::Often},
               {"RE", 1, Kind::Often},
               {"RADDR", 11, Kind::Low},
               {"WCLKE", 1, Kind::Often},
               {"WE", 1},
               {"WADDR", 11, Kind::Low},
               {"MASK", 16},
               {"WDATA", 16}},
              {{"RDATA", 16}}, {"RCLK", "WCLK"});
  }
  bench.add("SB_SPRAM256KA", {},
            {{"ADDRESS", 14, Kind::Low},
             {"DATAIN", 16},
             {"MASKWREN", 4},
             {"WREN", 1},
             {"CHIPSELECT", 1, Kind::Often},
             {"STANDBY", 1, Kind::Zero},
             {"SLEEP", 1, Kind::Zero},
             {"POWEROFF", 1, Kind::One}},
            {{"DATAOUT", 16}}, {"CLOCK"});
  for (int i = 0; i < 60; ++i) {
    Bench::Parameters parameters;
    for (const char* flag :
         {"C_REG", "A_REG", "B_REG", "D_REG", "TOP_8x8_MULT_REG", "BOT_8x8_MULT_REG",
          "PIPELINE_16x16_MULT_REG1", "PIPELINE_16x16_MULT_REG2", "MODE_8x8", "A_SIGNED",
          "B_SIGNED", "TOPADDSUB_UPPERINPUT", "BOTADDSUB_UPPERINPUT"})
      parameters.push_back({flag, 1});
    for (const char* choice : {"TOPOUTPUT_SELECT", "TOPADDSUB_LOWERINPUT", "TOPADDSUB_CARRYSELECT",
                               "BOTOUTPUT_SELECT", "BOTADDSUB_LOWERINPUT", "BOTADDSUB_CARRYSELECT"})
      parameters.push_back({choice, 2});
    std::vector<Bench::Input> inputs = {
        {"A", 16}, {"B", 16}, {"C", 16}, {"D", 16}, {"CE", 1, Kind::Often}};
    for (const char* reset : {"IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT"})
      inputs.push_back({reset, 1, Kind::Zero});
    for (const char* flag :
         {"AHOLD", "BHOLD", "CHOLD", "DHOLD", "OLOADTOP", "OLOADBOT", "ADDSUBTOP", "ADDSUBBOT",
          "OHOLDTOP", "OHOLDBOT", "CI", "ACCUMCI", "SIGNEXTIN"})
      inputs.push_back({flag, 1});
    // Without what chains cells, results are taken at edges where they can be.
    std::vector<Ice40Port> outputs = Ice40Mac::outputs();
    if (i % 2 == 0) outputs.resize(1);
    bench.add("SB_MAC16", parameters, inputs, outputs, {"CLK"});
  }
  return bench;
}

/// What Icarus makes of it: a line for each cycle, the last output first.
std::vector<std::string> by_yosys(const Bench& bench, const std::vector<std::string>& given) {
  const auto folder = TemporaryFolder::create();
  EXPECT_TRUE(folder);
  const std::filesystem::path yosys = std::filesystem::canonical(find_program(kYosys.name));
  const std::string cells =
      (yosys.parent_path().parent_path() / "share/yosys/ice40/cells_sim.v").string();
  std::string lines;
  for (const std::string& line : given) lines += line + "\n";
  EXPECT_TRUE(write_file(folder->file("bench.v"), bench.verilog(given.size())));
  EXPECT_TRUE(write_file(folder->file("given.txt"), lines));
  const auto compiled = run_checked({"iverilog", "-g2005", "-DNO_ICE40_DEFAULT_ASSIGNMENTS", "-o",
                                     "bench.vvp", "-s", "bench", "bench.v", cells},
                                    {folder->path(), 120});
  EXPECT_TRUE(compiled) << to_string(compiled.error());
  const auto run = run_checked({"vvp", "-n", "bench.vvp"}, {folder->path(), 120});
  EXPECT_TRUE(run) << to_string(run.error());
  std::vector<std::string> out;
  std::istringstream text(run ? run->output : "");
  for (std::string line; std::getline(text, line);) out.push_back(line);
  return out;
}

TEST(Ice40NetlistSlow, CellsAreThoseOfYosys) {
  constexpr size_t kCycles = 200;
  Bench bench = all_kinds(7);
  std::vector<std::string> given;
  for (size_t i = 0; i < kCycles; ++i) given.push_back(bench.draw());
  const std::vector<std::string> expected = by_yosys(bench, given);
  ASSERT_EQ(expected.size(), kCycles);
  auto netlist = Ice40Netlist::read(bench.json(), "bench", "clk");
  ASSERT_TRUE(netlist) << to_string(netlist.error());
  const std::vector<int> in = netlist->port("in"), out = netlist->port("out");
  int64_t compared = 0;
  for (size_t cycle = 0; cycle < kCycles; ++cycle) {
    for (size_t i = 0; i < in.size(); ++i)
      netlist->set(in[i], given[cycle][in.size() - 1 - i] == '1');
    netlist->settle();
    ASSERT_EQ(expected[cycle].size(), out.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const char bit = expected[cycle][out.size() - 1 - i];
      if (bit == 'x') continue;
      ++compared;
      ASSERT_EQ(netlist->get(out[i]), bit == '1') << "output " << i << " in cycle " << cycle;
    }
    netlist->tick();
  }
  EXPECT_GT(compared, static_cast<int64_t>(kCycles * out.size() / 2));
}

/// The netlist of `cells` alone, or why there is none.
std::string why(const std::string& cells) {
  const auto read = Ice40Netlist::read(
      R"({"modules": {"top": {"ports": {"clk": {"bits": [2]}}, "cells": {)" + cells + "}}}}", "top",
      "clk");
  return read ? "" : to_string(read.error());
}

TEST(Ice40NetlistSlow, WhatIsNotSimulatedIsNamed) {
  using ::testing::HasSubstr;
  const auto cell = [](const char* type, const char* connections) {
    return fmt::format(R"("{0}": {{"type": "{0}", "parameters": {{"LUT_INIT": "0110"}},
                       "connections": {{{1}}}}})",
                       type, connections);
  };
  EXPECT_EQ(why(cell("SB_DFF", R"("C": [2], "D": [3], "Q": [4])")), "");
  EXPECT_THAT(why(cell("SB_DFF", R"("C": [3], "D": [3], "Q": [4])")), HasSubstr("another clock"));
  EXPECT_THAT(why(cell("SB_DFFR", R"("C": [2], "D": [3], "Q": [4])")), HasSubstr("SB_DFFR"));
  EXPECT_THAT(why(cell("SB_PLL40_CORE", "")), HasSubstr("SB_PLL40_CORE"));
  EXPECT_THAT(why(cell("SB_LUT4", R"("I0": [3], "O": [3])")), HasSubstr("loop"));
  EXPECT_THAT(why(cell("SB_MAC16", R"("CLK": [2], "IRSTTOP": [3])")), HasSubstr("asynchronous"));
  EXPECT_THAT(why(R"("c": 3)"), HasSubstr("no netlist that can be read"));
  EXPECT_FALSE(Ice40Netlist::read("{", "top", "clk"));
}

}  // namespace
}  // namespace tilewright::fpga
