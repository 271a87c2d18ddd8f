// The options that say what to run, on what, and how: verbs take those groups that have an effect.
#include "tilewright/driver/subject.h"

namespace tilewright::driver {

void add_workload_options(Verb verb, ModelOptions& options) {
  verb.add_option("--workload", options.workload, "operators of a workload file (JSON)");
  verb.add_option("--suite", options.suite, "only this suite of the workload file");
  verb.add_option("--id", options.id, "only this case of the workload file");
  verb.needs("--suite", "--workload");
  verb.needs("--id", "--workload");
}

void add_model_options(Verb verb, ModelOptions& options, bool several, const char* what) {
  if (several) {
    verb.add_option("input", options.paths, what);
    add_workload_options(verb, options);
  } else {
    verb.add_option("input", options.paths, what).required().only_one();
  }
  verb.add_option("--dim", options.dims, "the size of a dimension that has a name instead: NAME=N");
  verb.add_option("--shape", options.shapes, "the shape of an input: INPUT:1x3x224x224");
  verb.add_option("--const", options.constants,
                  "the value of an input that never changes: NAME=@FILE.npy");
  verb.add_flag("--allow-newer-opset", options.allow_newer_opset,
                "read a model of a newer opset than any tested one");
}

void add_target_options(Verb verb, TargetChoice& options) {
  verb.add_option("--target", options.target, "what to compile for (`tilewright targets`)");
  verb.add_option("--hw", options.hw,
                  "configuration of the accelerator: a built-in name (vta, vta-paper, vdla, ...), "
                  "FILE.toml, or "
                  "VTA's FILE.json");
}

void add_quantize_options(Verb verb, QuantizeChoice& options) {
  verb.add_option(
      "--quantize", options.quantize,
      "make integers of 8 bits of the model; calibrate with FILE.npz (arrays named as the inputs), "
      "or with N random inputs: random[:N]");
  verb.add_option(
          "--fallback", options.fallback,
          "operators that the accelerator lacks: error (default), or cpu: the processor runs them")
      .one_of({"error", "cpu"});
  verb.add_option("--designs", options.designs,
                  "layers of a network on an FPGA: shared (default), those of one form share a "
                  "design; own: each has its own")
      .one_of({"shared", "own"});
  verb.add_flag("--per-channel", options.per_channel,
                "with --quantize: weights have a scale for each output channel");
}

void add_code_options(Verb verb, CodeOptions& options) {
  verb.add_option("--math", options.math,
                  "fast (default): sums may be regrouped; exact: every sum keeps its order")
      .one_of({"fast", "exact"});
  verb.add_flag("--direct", options.direct,
                "no Winograd convolutions, although --math fast allows them");
  verb.add_flag(
      "--tf32", options.tf32,
      "CUDA: matrix instructions for products of f32, whose factors are rounded to 10 bits");
  verb.add_option("--backend", options.backend,
                  "code generator for processors: llvm (default), or c (through the C compiler)")
      .one_of({"llvm", "c"});
  verb.add_option("--threads", options.threads, "threads that compute (default: one per core)")
      .in_range(1, 1024);
  verb.add_option("-O,--level", options.level,
                  "0: loops as written, no graph passes, no records; 1: schedules, fusion and the "
                  "simpler graph passes; 2 (default): also blocked layouts, products of bytes, and "
                  "kernels of several convolutions")
      .in_range(0, 2);
}

void add_records_option(Verb verb, TuningOptions& options) {
  verb.add_option("--records,--store", options.records,
                  "tuning records: FILE, sqlite:FILE or postgresql://HOST/DATABASE (default: the "
                  "user's file)");
}

void add_calibrate_option(Verb verb, TuningOptions& options) {
  verb.add_flag("--no-calibrate", options.no_calibrate,
                "assume typical speeds instead of measuring this machine");
}

void add_tuning_options(Verb verb, TuningOptions& options) {
  add_records_option(verb, options);
  verb.add_flag("--no-records", options.no_records,
                "use no tuning records: only the compiler's own schedules");
  verb.excludes("--no-records", "--records");
  add_calibrate_option(verb, options);
}

void add_device_option(Verb verb, DeviceOptions& options) {
  verb.add_option("--device", options.device, "where to run (`tilewright devices`)");
}

void add_dump_option(Verb verb, DeviceOptions& options) {
  verb.add_option("--dump-program", options.dump_program,
                  "folder for the accelerator's programs, with data and expected results");
}

void add_seed_option(Verb verb, InputOptions& options) {
  verb.add_option("--seed", options.seed, "of random inputs and weights");
}

void add_compile_options(Verb verb, SubjectOptions& options, bool several, const char* what) {
  add_model_options(verb, options, several, what);
  add_target_options(verb, options);
  add_quantize_options(verb, options);
  verb.needs("--per-channel", "--quantize");
  add_seed_option(verb, options);
  add_code_options(verb, options);
  add_device_option(verb, options);
}

void add_run_options(Verb verb, SubjectOptions& options, bool several) {
  add_compile_options(verb, options, several, "model.onnx, package.twm or file.tw");
  add_tuning_options(verb, options);
  add_dump_option(verb, options);
}

void add_input_options(Verb verb, InputOptions& options) {
  verb.add_option("--input", options.inputs,
                  "NAME=@FILE (.npy, .npz, .png, .jpg), NAME=random, zeros or ones; NAME may be a "
                  "position from 0, or left out")
      .one_value();
  verb.add_flag("--cast", options.files.cast, "convert arrays to the inputs' element types");
  ImageOptions& image = options.files.image;
  verb.add_option("--mean", image.mean,
                  "images: subtracted from pixels (0 to 255): X, or X,Y,Z per channel");
  verb.add_option("--scale", image.scale,
                  "images: multiplied with afterwards: 1/255, or one per channel");
  verb.add_option("--layout", image.layout, "images: nchw or nhwc inputs (default nchw)")
      .one_of({"nchw", "nhwc"});
  verb.add_flag("--resize", image.resize, "images: stretch to the input's size");
}

}  // namespace tilewright::driver
