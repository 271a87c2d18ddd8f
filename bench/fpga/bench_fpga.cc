// Figures for FPGAs:
//
//   bench_fpga alexnet | fig6c | overlap | widths | split | network | search     by the cost model
//   bench_fpga layers --check | rtl | shared | model | best | cells   of what is generated and run
//
// Prints tables as in bench/results/fpga.md.
#include <CLI/CLI.hpp>

#include "figures.h"

int main(int argc, char** argv) {
  using namespace tilewright::bench;
  CLI::App app("Figures for FPGAs");
  app.require_subcommand(1);
  int status = 0;
  int trials = 200, seeds = 5;
  std::vector<std::string> devices, types;
  Selection chosen;
  const auto figure = [&](const char* name, const char* what, auto run) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->callback(run);
    return sub;
  };
  figure("alexnet", "Zhang's AlexNet", alexnet);
  figure("fig6c", "C1 to C15 over a uniform design", fig6c);
  figure("overlap", "what slots bring", overlap);
  CLI::App* widths_of = figure("widths", "types and devices", [&] { widths(devices, types); });
  widths_of->add_option("--hw", devices, "only these devices");
  widths_of->add_option("--types", types, "only these of f32, bf16, i16, i8");
  figure("split", "split factor of output channels", split);
  figure("network", "one design for a network", network);
  CLI::App* search = figure("search", "searchers", [&] { searchers(trials, seeds); });
  search->add_option("--trials", trials);
  search->add_option("--seeds", seeds);

  const auto drawn = [&](const char* name, const char* what, auto run) {
    CLI::App* sub = figure(name, what, [&chosen, &status, run] { status = run(chosen); });
    sub->add_option("--layers", chosen.layers, "C1 to C15 (default: all)");
    sub->add_option("--hw", chosen.device, "device");
    sub->add_option("--count", chosen.count, "points of each layer, or designs");
    sub->add_option("--seed", chosen.seed);
    return sub;
  };
  bool check = false;
  drawn("layers", "C1 to C15 at full size: C++ against the processor's code", layers_check)
      ->add_flag("--check", check, "compare values")
      ->required();
  drawn("rtl", "random designs, and layers scaled down: Verilog against the cycle simulator", rtl)
      ->add_option("--record", chosen.record, "a file: keeps what is done, and goes on behind it");
  drawn("shared", "layers scaled down, on one build of the Verilog", shared);
  drawn("model", "random points: model against the cycle simulator", model_accuracy)
      ->add_option("--limit", chosen.limit, "cycles by the model, above which none is simulated");
  CLI::App* best =
      drawn("best", "the model's best designs: model against the cycle simulator",
            [&](const Selection& selection) { return model_of_best(selection, types); });
  best->add_option("--types", types, "only these of f32, i16, i8")
      ->check(CLI::IsMember({"f32", "bf16", "i16", "i8"}));
  best->add_flag("--waits", chosen.details, "also who waits for what");
  drawn("cells", "random designs: model against Yosys", cells)
      ->add_flag("--modules", chosen.details, "also LUTs and flip-flops of each kind of module");
  CLI11_PARSE(app, argc, argv);
  return status;
}
