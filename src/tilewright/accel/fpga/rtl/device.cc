// `fpga:rtl`: the generated Verilog under Verilator, as a shared object in the cache.
#include <dlfcn.h>
#include <fmt/format.h>

#include "tilewright/accel/common/rtl/model.h"
#include "tilewright/accel/fpga/rtl/harness.h"
#include "tilewright/accel/fpga/rtl/rtl.h"

namespace tilewright::fpga {
namespace {

namespace abi = rtl::abi;

class Model : public RtlModel {
 public:
  Model(std::string text, Numbers numbers, std::shared_ptr<void> library)
      : text_(std::move(text)), numbers_(numbers), library_(std::move(library)) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model() override { reset(); }

  Status open() {
    find("fpga_create", create_);
    find("fpga_destroy", destroy_);
    find("fpga_run", run_);
    if (create_ == nullptr || destroy_ == nullptr || run_ == nullptr)
      return fail(ErrorKind::Tool, "the compiled model lacks its interface", {},
                  "delete the cache's folder rtl; it is compiled again");
    return {};
  }

  Result<Report> run(const Design& design, const RunOptions& options,
                     std::vector<std::string>& arguments) override {
    const Verilog own = verilog(design, numbers_);
    if (own.text != text_)
      return fail(ErrorKind::Invalid, "the model is of another design",
                  "only numbers of the table may differ");
    const MemoryTiming& t = options.memory;
    const abi::fpga_memory memory = {t.read_latency, t.write_latency, t.write_beat,    t.write_gap,
                                     t.read_cost,    t.write_cost,    t.stall_percent, t.seed};
    std::vector<abi::fpga_argument> places;
    for (std::string& argument : arguments)
      places.push_back({reinterpret_cast<unsigned char*>(argument.data()), argument.size()});
    if (handle_ == nullptr) handle_ = create_();
    abi::fpga_result result{};
    run_(handle_, &memory, places.data(), static_cast<uint32_t>(places.size()), own.table.data(),
         static_cast<uint32_t>(own.table.size()), static_cast<uint64_t>(options.max_cycles),
         &result);
    const std::string problem(result.problem);
    if (!problem.empty() || result.late != 0) reset();  // it stopped in the middle
    if (!problem.empty())
      return fail(ErrorKind::Invalid, problem, fmt::format("after {} cycles", result.cycles));
    if (result.late != 0)
      return fail(ErrorKind::Limit, "the design takes more cycles than allowed",
                  fmt::format("after {} cycles", result.cycles));
    Report report;
    report.cycles = static_cast<int64_t>(result.cycles);
    return report;
  }

 private:
  template <class F>
  void find(const char* function_name, F& function) {
    function = reinterpret_cast<F>(::dlsym(library_.get(), function_name));
  }
  void reset() {
    if (handle_ != nullptr) destroy_(handle_);
    handle_ = nullptr;
  }

  std::string text_;
  Numbers numbers_;
  std::shared_ptr<void> library_;
  decltype(&abi::fpga_create) create_ = nullptr;
  decltype(&abi::fpga_destroy) destroy_ = nullptr;
  decltype(&abi::fpga_run) run_ = nullptr;
  void* handle_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<RtlModel>> make_rtl(const Design& design, Numbers numbers, Runs runs) {
  TW_TRY_STATUS(rtl_supports(design));
  return rtl::model_of(design, numbers, verilog(design, numbers).text, runs);
}

Result<std::unique_ptr<RtlModel>> rtl::model_of(const Design& design, Numbers numbers,
                                                const std::string& text, Runs runs) {
  const std::string path =
      TW_TRY(accel::compiled({kTop, text, rtl::harness_of(design), runs == Runs::Short}));
  std::shared_ptr<void> library(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), [](void* opened) {
    if (opened != nullptr) ::dlclose(opened);
  });
  if (library == nullptr)
    return fail(ErrorKind::Tool, fmt::format("cannot load the model '{}'", path), ::dlerror(),
                "delete this folder; it is compiled again");
  auto model = std::make_unique<Model>(verilog(design, numbers).text, numbers, std::move(library));
  TW_TRY_STATUS(model->open());
  return std::unique_ptr<RtlModel>(std::move(model));
}

}  // namespace tilewright::fpga
