// What a compiler is asked for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tilewright/compile/kernel_report.h"
#include "tilewright/compile/observer.h"
#include "tilewright/hw/targets.h"
#include "tilewright/tensor/conv2d_shape.h"

namespace tilewright::compile {

/// The record that decides how a convolution is computed (compile/conv_record.h); absent: the model
/// of the machine decides.
using FindForm = std::function<std::optional<records::Record>(const tensor::Conv2dShape& conv)>;

/// The record whose decisions a network that an accelerator plans as a whole shall have, given its
/// key; absent: the back-end searches.
using FindNetwork = std::function<std::optional<records::Record>(const std::string& workload)>;

/// What a back-end has found out about parts of a model, for when it is asked again.
class BackendMemo {
 public:
  virtual ~BackendMemo() = default;
};

struct CompileOptions {
  hw::Target target = hw::as_target(hw::host());
  /// The processor beside a GPU or an accelerator.
  hw::CpuTarget host = hw::host();
  int threads = 1;  ///< workers the schedules are made for
  MathMode math = MathMode::Fast;
  bool direct = false;  ///< convolutions never by Winograd, whatever `math` allows
  bool fuse = true;     ///< false: every operator of the model is a kernel of its own
  /// Copies into channel blocks and out of them are no part of other kernels: to measure an
  /// operator without them.
  bool copies_apart = false;
  int level = 2;        ///< 0: no passes, loops as written; 1: fusion; 2: also layouts
  bool use_c = false;   ///< the C back-end instead of LLVM
  int jobs = 2;         ///< compile threads
  std::string command;  ///< for the manifest
  Observer observer;
  FindRecord tuned;     ///< empty: all schedules by rule
  FindForm form;        ///< empty: all algorithms by the model of the machine
  FindNetwork network;  ///< empty: all networks as their back-ends choose
  /// Shared by copies of these options. Not for several threads. May be absent.
  std::shared_ptr<BackendMemo> memo;

  /// What code for the processor is made for.
  const hw::CpuTarget& cpu() const { return target.cpu() != nullptr ? *target.cpu() : host; }
};

}  // namespace tilewright::compile
