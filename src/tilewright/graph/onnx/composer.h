// What turns a node of ONNX into several: the operators that it is made of, added one by one.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/graph/onnx/opset.h"

namespace tilewright::graph::composing {

using Id = Result<ValueId>;
using Ids = Result<std::vector<ValueId>>;
using AttrMap = std::map<std::string, tensor::AttrValue>;
using Ints = std::vector<int64_t>;

/// Adds operators on behalf of a node.
class Composer {
 public:
  Composer(const Node& node, UpgradeContext& context) : node_(node), context_(context) {}

 protected:
  bool has(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] >= 0; }
  ValueId input(size_t i) const { return node_.inputs[i]; }
  const Shape& shape(ValueId id) const { return context_.type(id).shape; }
  DType dtype(ValueId id) const { return context_.type(id).dtype; }
  int64_t attr(const char* key, int64_t fallback) const {
    return node_.attrs.get_int(key, fallback);
  }

  Id add(const char* op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    Node made;
    made.op = op;
    made.name = node_.name + "/" + op;
    made.inputs = std::move(inputs);
    made.attrs.values = std::move(attrs);
    return context_.before(std::move(made));
  }
  ValueId number(ValueId like, double value) {
    return context_.constant(Array::scalar(dtype(like), value));
  }
  ValueId ints(const Ints& values) {
    Array array(DType::I64, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), array.as<int64_t>().begin());
    return context_.constant(std::move(array));
  }
  /// 0, 1, ... along one of four axes.
  ValueId count(int64_t extent, bool last) {
    Array array(DType::I64, last ? Shape{1, 1, 1, extent} : Shape{1, 1, extent, 1});
    for (int64_t i = 0; i < extent; ++i) array.set_int(i, i);
    return context_.constant(std::move(array));
  }
  /// `id`, or a copy if it is an input of the node: an output has a name of its own.
  Id own(ValueId id) {
    const auto& given = node_.inputs;
    if (std::find(given.begin(), given.end(), id) == given.end()) return id;
    return add("Identity", {id});
  }
  Id reshaped(ValueId id, const Ints& to) { return add("Reshape", {id, ints(to)}); }
  /// Elements `begin`, `begin + step`, ... below `end` of the last axis.
  Id cut(ValueId id, int64_t begin, int64_t end, int64_t step = 1) {
    return add("Slice", {id, ints({begin}), ints({end}), ints({-1}), ints({step})});
  }
  tl::unexpected<Error> wrong(std::string what, std::string why = {}) const {
    return fail(ErrorKind::Invalid, std::move(what), std::move(why));
  }

  const Node& node_;
  UpgradeContext& context_;
};

// One function for each operator, or for several that are alike.
Ids compose_attention(const Node& node, UpgradeContext& context);
Ids compose_dft(const Node& node, UpgradeContext& context);
Ids compose_loss(const Node& node, UpgradeContext& context);
Ids compose_rotary(const Node& node, UpgradeContext& context);
Ids compose_stft(const Node& node, UpgradeContext& context);

}  // namespace tilewright::graph::composing
