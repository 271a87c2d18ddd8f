#include "tilewright/driver/command_line/help_examples.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright::driver {
namespace {

/// By verb; one command per line.
constexpr std::pair<std::string_view, const char*> kExamples[] = {
    {"doctor", "tilewright doctor\n"},
    {"devices", "tilewright devices\n"},
    {"targets", "tilewright targets\n"},
    {"calibrate",
     "tilewright calibrate\ntilewright calibrate --device opencl\n"
     "tilewright calibrate --target fpga --hw vu9p -o mine.toml   # cells of operators, by "
     "Yosys\n"},
    {"zoo",
     "tilewright zoo list\n"
     "tilewright zoo resnet18 --size 64 -o model.onnx\n"},
    {"check",
     "tilewright check model.onnx\n"
     "tilewright check model.onnx --shape data:1x3x64x64\n"
     "tilewright check model.onnx --target vta\n"},
    {"compile",
     "tilewright compile model.onnx -o model.twm\n"
     "tilewright compile model.onnx --target aarch64-v8.2 -o arm.twm\n"
     "tilewright compile model.onnx --target opencl -o gpu.twm\n"
     "tilewright compile model.onnx --target vta --quantize calib.npz -o vta.twm\n"},
    {"run",
     "tilewright run model.twm --input data=@image.npy --output y.npy\n"
     "tilewright run model.onnx --threads 2\n"
     "tilewright run vta.twm --device vta:tsim\n"},
    {"bench",
     "tilewright bench model.onnx --against ort --threads 2\n"
     "tilewright bench model.twm --profile\n"},
    {"verify",
     "tilewright verify model.onnx --against interp,ort\n"
     "tilewright verify model.onnx --against ort --per-node\n"
     "tilewright verify model.onnx --target opencl --against ort\n"},
    {"tune",
     "tilewright tune model.onnx --for 10s -o tuned.twm\n"
     "tilewright tune model.onnx --until-stall 20% --for 20s --report page.html\n"
     "tilewright tune model.onnx --dry-run\n"},
    {"fleet",
     "tilewright fleet init --private pool\n"
     "tilewright fleet status\n"
     "tilewright fleet login ann --kind user --weight 2\n"
     "tilewright fleet grant ann --pool default --submit --class 'cpu:*'\n"
     "tilewright fleet launch slurm\n"},
    {"worker",
     "tilewright worker --device cpu --tag desk\n"
     "tilewright worker --device vta:tsim --idle-exit 5m\n"},
    {"records",
     "tilewright records ls\n"
     "tilewright records best\n"
     "tilewright records export -o all.jsonl\n"
     "tilewright records import all.jsonl\n"},
    {"inspect", "tilewright inspect model.twm\n"},
    {"explain",
     "tilewright explain model.onnx Conv_2\n"
     "tilewright explain model.onnx --memory\n"
     "tilewright explain --rules --target cuda\n"},
    {"opt",
     "tilewright opt examples/05_gemm_loops.tw --passes simplify,unroll\n"
     "tilewright opt examples/05_gemm_loops.tw --pipeline cpu --dump-ir-to passes/\n"
     "tilewright opt --list\n"},
    {"hw",
     "tilewright hw check vta\n"
     "tilewright hw new vta --set log_batch=1 -o my.toml\n"
     "tilewright hw diff vta my.toml\n"},
    {"sim",
     "tilewright sim vta.twm --check\n"
     "tilewright sim vta.twm --asm\n"},
    {"rtl", "tilewright rtl vta -o rtl/ --lint\n"},
    {"hls",
     "tilewright hls examples/02_gemm_relu.tw --hw vu9p -o gemm/\n"
     "tilewright hls examples/02_gemm_relu.tw --trace examples/02_gemm_relu_fpga.steps "
     "--dialect plain -o gemm_tiles/\n"},
    {"synth", "tilewright synth vta\n"},
    {"codesign",
     "tilewright codesign choices model.onnx --intrinsics gemm,dot\n"
     "tilewright codesign choices examples/02_gemm_relu.tw\n"
     "tilewright codesign space edge\n"
     "tilewright codesign search model.onnx --space edge --evaluations 8 -o designs\n"
     "tilewright codesign front designs --pick knee -o design\n"
     "tilewright codesign eval design/hw.toml model.onnx\n"
     "tilewright codesign choices examples/02_gemm_relu.tw --design design/hw.toml\n"},
};

}  // namespace

void add_examples(CLI::App& app) {
  for (const auto& [verb, examples] : kExamples) {
    std::string text = "Examples:\n";
    for (const char* at = examples; *at != '\0'; ++at) {
      if (at == examples || at[-1] == '\n') text += "  ";
      text += *at;
    }
    app.get_subcommand(std::string(verb))->footer(text);
  }
}

}  // namespace tilewright::driver
