// synth: how large hardware is, by Yosys, beside what the model of areas says.
#include "tilewright/accel/common/rtl/synth.h"

#include <fmt/format.h>

#include <optional>

#include "tilewright/accel/fpga/rtl/cells.h"
#include "tilewright/codesign/area.h"
#include "tilewright/codesign/synth/synth.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/generated_rtl.h"
#include "tilewright/driver/verbs/bitstream.h"

namespace tilewright::driver {
namespace {

struct SynthOptions {
  HardwareOrProgram input;
  std::string library, bitstream, pins;
  double limit = 600;
};

constexpr const char* kTechnology = "hasco-fpga";  // the one that counts cells

nlohmann::ordered_json json_of(const accel::SynthesisedModule& module) {
  nlohmann::ordered_json json = {{"name", module.name},         {"copies", module.copies},
                                 {"lut", module.cells.lut},     {"ff", module.cells.ff},
                                 {"dsp", module.cells.dsp},     {"bram18", module.cells.bram18},
                                 {"carry", module.cells.carry}, {"lut_ram", module.cells.lut_ram}};
  for (const accel::MemoryBox& box : module.memories)
    json["memories"].push_back({{"words", box.size},
                                {"bits", box.width},
                                {"read_ports", box.reads},
                                {"write_ports", box.writes}});
  return json;
}

/// What a model said beforehand.
struct ModelCells {
  std::string key, technology, name;  ///< in the document twice, and in the table
  double luts = 0, ffs = 0, dsps = 0, bram18 = 0;
  std::optional<int64_t> lut_ram;  ///< of the LUTs
};

struct ToSynthesise {
  std::string label;
  accel::SynthesisTask task;
  std::vector<ModelCells> models;
};

Result<ToSynthesise> accelerator(const codesign::Hardware& hardware) {
  ToSynthesise made{TW_TRY(generated_rtl(hardware)).label, codesign::synthesis_task(hardware), {}};
  const codesign::Technology technology = TW_TRY(codesign::load_technology(kTechnology));
  const codesign::CellCount model = codesign::cells(codesign::Parts(hardware), technology).total();
  made.models.push_back({"model",
                         kTechnology,
                         fmt::format("model ({})", kTechnology),
                         model.luts,
                         model.ffs,
                         model.dsps,
                         model.brams,
                         {}});
  return made;
}

Result<ToSynthesise> program(const FpgaProgramOptions& options) {
  const LoadedFpgaProgram loaded = TW_TRY(load_fpga_program(options));
  const GeneratedRtl rtl = TW_TRY(generated_rtl(loaded));
  ToSynthesise made{
      rtl.label, {.top = rtl.top, .verilog = rtl.verilog, .boxed = {}, .library = {}}, {}};
  const accel::Cells cells = fpga::predicted_cells(rtl.verilog).cells();
  made.models.push_back({"model", compile::kFpgaTarget,
                         fmt::format("model ({})", compile::kFpgaTarget), double(cells.lut),
                         double(cells.ff), double(cells.dsp), double(cells.bram18), cells.lut_ram});
  if (const auto& schedule = loaded.program.model) {
    const hw::FpgaCells& model = schedule->verilog;
    made.models.push_back({"search",
                           compile::kFpgaTarget,
                           "model of the search",
                           model.luts,
                           model.ffs,
                           model.dsps,
                           static_cast<double>(model.bram18),
                           {}});
  }
  return made;
}

nlohmann::ordered_json json_of(const ToSynthesise& made, const accel::Synthesis& xc7) {
  const accel::Cells cells = xc7.cells();
  nlohmann::ordered_json json = document("synth");
  json["config"] = made.label;
  json["source"] = "yosys synth_xilinx xc7, module by module";
  json["lut"] = cells.lut;
  json["ff"] = cells.ff;
  json["dsp"] = cells.dsp;
  json["bram18"] = cells.bram18;
  json["carry"] = cells.carry;
  json["lut_ram"] = cells.lut_ram;
  json["seconds"] = xc7.seconds;
  for (const ModelCells& model : made.models) {
    json[model.key] = {{"technology", model.technology},
                       {"lut", model.luts},
                       {"ff", model.ffs},
                       {"dsp", model.dsps},
                       {"bram18", model.bram18}};
    if (model.lut_ram) json[model.key]["lut_ram"] = *model.lut_ram;
  }
  for (const accel::SynthesisedModule& module : xc7.modules)
    json["modules"].push_back(json_of(module));
  return json;
}

std::string text_of(const ToSynthesise& made, const accel::Synthesis& xc7) {
  const accel::Cells c = xc7.cells();
  const auto text = [](auto number) { return fmt::format("{:.0f}", static_cast<double>(number)); };
  std::vector<std::vector<std::string>> rows = {
      {made.label, "LUT", "of them RAM", "FF", "DSP", "BRAM18", "CARRY4"},
      {"Yosys", text(c.lut), text(c.lut_ram), text(c.ff), text(c.dsp), text(c.bram18),
       text(c.carry)}};
  for (const ModelCells& model : made.models)
    rows.push_back({model.name, text(model.luts), model.lut_ram ? text(*model.lut_ram) : "",
                    text(model.ffs), text(model.dsps), text(model.bram18), ""});
  return table(rows);
}

/// `--bitstream` takes another way: another family of cells, placed and routed.
Result<int> bitstream(const SynthOptions& options, bool as_json) {
  if (!options.input.is_program() || !options.library.empty())
    return fail(ErrorKind::Usage, "--bitstream is for programs on an FPGA",
                options.library.empty() ? "the input is an accelerator" : "--library is given",
                "--target fpga --hw ice40up5k");
  TW_TRY_STATUS(check_outputs({{options.bitstream}, {}}, input_files(options.input.program.subject),
                              as_json));
  return write_bitstream({options.input.program, options.bitstream, options.pins, options.limit},
                         as_json);
}

Result<int> synth(const SynthOptions& options, bool as_json) {
  if (!options.bitstream.empty()) return bitstream(options, as_json);
  ToSynthesise made =
      TW_TRY(options.input.is_program() ? program(options.input.program)
                                        : accelerator(TW_TRY(options.input.hardware())));
  made.task.limit_seconds = options.limit;
  say(fmt::format("synthesising {} with Yosys for xc7", made.label));
  const accel::Synthesis xc7 = TW_TRY(accel::synthesise(made.task));
  nlohmann::ordered_json json = json_of(made, xc7);
  std::string text = text_of(made, xc7);
  if (!options.library.empty()) {
    made.task.library = options.library;
    say(fmt::format("synthesising {} for the cells of {}", made.label, options.library));
    const accel::Synthesis cells = TW_TRY(accel::synthesise(made.task));
    json["library"] = {{"file", options.library}, {"um2", cells.um2()}, {"seconds", cells.seconds}};
    for (const accel::SynthesisedModule& module : cells.modules)
      json["library"]["modules"].push_back(
          {{"name", module.name}, {"copies", module.copies}, {"um2", module.um2}});
    text += fmt::format("cells without memories: {:.0f} um2 ({})\n", cells.um2(), options.library);
  }
  if (as_json)
    print_json(json);
  else
    fmt::print("{}", text);
  return 0;
}

}  // namespace

void add_synth(Verb app, VerbContext& context) {
  Verb verb =
      app.add_verb("synth", "Cells of an accelerator, or of a program for an FPGA, by Yosys");
  auto options = std::make_shared<SynthOptions>();
  add_hardware_or_program(verb, options->input);
  verb.add_option("--library", options->library,
                  "standard cells (Liberty): their area too, without memories");
  verb.add_option("--bitstream", options->bitstream,
                  "FPGA: a file for iCE40's programmer; placed and routed");
  verb.add_option("--pins", options->pins, "with --bitstream: a PCF file for clk, rx and tx");
  verb.needs("--pins", "--bitstream");
  verb.add_option("--limit", options->limit, "seconds for each of the two, or for the bitstream");
  verb.callback([&context, options] {
    context.action = [&context, options] { return synth(*options, context.json); };
  });
}

}  // namespace tilewright::driver
