#include "tilewright/graph/onnx/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "tilewright/base/names.h"
#include "tilewright/graph/onnx/importer.h"

namespace tilewright::graph {
namespace {

namespace onnx = tilewright_onnx;

enum AttributeType {
  kFloat = 1,
  kInt,
  kString,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kStrings,
  kTensors,
  kGraphs
};

/// The type of an attribute; files of the first IR versions leave it out.
int type_of(const onnx::AttributeProto& a) {
  if (a.has_type() && a.type() != 0) return a.type();
  if (a.has_f()) return kFloat;
  if (a.has_i()) return kInt;
  if (a.has_s()) return kString;
  if (a.has_t()) return kTensor;
  if (a.has_g()) return kGraph;
  if (a.floats_size() > 0) return kFloats;
  if (a.strings_size() > 0) return kStrings;
  return a.graphs_size() > 0 ? kGraphs : kInts;
}

/// Operators with the same attributes, of all opsets together: `name:type`, with the types
/// i integer, f float, s text, t tensor, and I, F, S lists of these; p a sparse tensor, which
/// nobody reads, g what is read where it matters (a graph, a type). A whole number is a float, too.
// source: the ONNX operator changelog
struct AttributeRow {
  const char *operators, *attributes;
};
constexpr AttributeRow kAttributeRows[] = {
    {"Abs Acos Acosh Asin Asinh Atan Atanh BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Cos "
     "Cosh DynamicQuantizeLinear Erf Exp Expand Floor GlobalAveragePool GlobalMaxPool "
     "GreaterOrEqual HardSwish Identity IsNaN LessOrEqual Log MatMul MatMulInteger Max Mean "
     "Min Mish Neg NonZero Not PRelu QLinearMatMul Reciprocal Relu Round Sigmoid Sign Sin Sinh "
     "Size Softplus Softsign Sqrt Sum Tan Tanh Tile Where",
     ""},
    {"Add And Div Equal Greater Less Mul Or Pow Sub Xor", "axis:i broadcast:i"},
    {"AffineGrid", "align_corners:i"},
    {"ArgMax ArgMin", "axis:i keepdims:i select_last_index:i"},
    {"Attention",
     "is_causal:i kv_num_heads:i left_window_size:i q_num_heads:i qk_matmul_output_mode:i "
     "right_window_size:i scale:f softcap:f softmax_precision:i"},
    {"AveragePool",
     "auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I pads:I strides:I"},
    {"BatchNormalization", "epsilon:f is_test:i momentum:f spatial:i training_mode:i"},
    {"BitShift", "direction:s"},
    {"Cast", "round_mode:s saturate:i to:is"},
    {"CastLike", "round_mode:s saturate:i"},
    {"Celu Elu LeakyRelu Swish ThresholdedRelu", "alpha:f"},
    {"CenterCropPad MeanVarianceNormalization Squeeze Unsqueeze", "axes:I"},
    {"Clip", "max:f min:f"},
    {"Col2Im", "dilations:I pads:I strides:I"},
    {"Compress Concat Flatten Gather GatherElements Hardmax LogSoftmax OneHot Scatter Softmax",
     "axis:i"},
    {"DFT", "axis:i inverse:i onesided:i"},
    {"Constant",
     "value:t value_float:f value_floats:F value_int:i value_ints:I value_string:s "
     "value_strings:S sparse_value:p"},
    {"ConstantOfShape", "value:t"},
    {"ConcatFromSequence", "axis:i new_axis:i"},
    {"GlobalLpPool", "p:fi"},
    {"Conv ConvInteger QLinearConv",
     "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I"},
    {"ConvTranspose",
     "auto_pad:s dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I "
     "strides:I"},
    {"CumProd CumSum", "exclusive:i reverse:i"},
    {"DepthToSpace SpaceToDepth", "blocksize:i mode:s"},
    {"DequantizeLinear", "axis:i block_size:i output_dtype:i"},
    {"Dropout", "is_test:i ratio:f seed:i"},
    {"Einsum", "equation:s"},
    {"EyeLike", "dtype:i k:i"},
    {"GRU",
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
     "layout:i linear_before_reset:i output_sequence:i"},
    {"GatherND", "batch_dims:i"},
    {"Gelu", "approximate:s"},
    {"Gemm", "alpha:f beta:f broadcast:i transA:i transB:i"},
    {"GridSample", "align_corners:i mode:s padding_mode:s"},
    {"GroupNormalization", "epsilon:f num_groups:i stash_type:i"},
    {"HardSigmoid", "alpha:f beta:f"},
    {"InstanceNormalization", "epsilon:f"},
    {"IsInf", "detect_negative:i detect_positive:i"},
    {"If", "else_branch:g then_branch:g"},
    {"LRN", "alpha:f beta:f bias:f size:i"},
    {"LSTM",
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
     "input_forget:i layout:i output_sequence:i"},
    {"LayerNormalization RMSNormalization", "axis:i epsilon:f stash_type:i"},
    {"Loop SequenceMap", "body:g"},
    {"LpNormalization", "axis:i p:i"},
    {"LpPool", "auto_pad:s ceil_mode:i dilations:I kernel_shape:I p:fi pads:I strides:I"},
    {"MaxPool",
     "auto_pad:s ceil_mode:i dilations:I kernel_shape:I pads:I storage_order:i strides:I"},
    {"MaxUnpool", "kernel_shape:I pads:I strides:I"},
    {"Mod", "fmod:i"},
    {"NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss", "ignore_index:i reduction:s"},
    {"NonMaxSuppression", "center_point_box:i"},
    {"Optional", "type:g"},
    {"OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceErase "
     "SequenceInsert "
     "SequenceLength",
     ""},
    {"Pad", "mode:s paddings:I pads:I value:f"},
    {"QuantizeLinear", "axis:i block_size:i output_dtype:i precision:i saturate:i"},
    {"RNN",
     "activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i "
     "layout:i output_sequence:i"},
    {"Range", "stash_type:i"},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
     "ReduceSum ReduceSumSquare",
     "axes:I keepdims:i noop_with_empty_axes:i"},
    {"Reshape", "allowzero:i shape:I"},
    {"Resize",
     "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i "
     "extrapolation_value:f keep_aspect_ratio_policy:s mode:s nearest_mode:s"},
    {"ReverseSequence", "batch_axis:i time_axis:i"},
    {"RoiAlign",
     "coordinate_transformation_mode:s mode:s output_height:i output_width:i sampling_ratio:i "
     "spatial_scale:f"},
    {"STFT", "onesided:i"},
    {"RotaryEmbedding", "interleaved:i num_heads:i rotary_embedding_dim:i"},
    {"Scan",
     "body:g directions:I num_scan_inputs:i scan_input_axes:I scan_input_directions:I "
     "scan_output_axes:I scan_output_directions:I"},
    {"ScatterElements", "axis:i reduction:s"},
    {"ScatterND", "reduction:s"},
    {"Selu", "alpha:f gamma:f"},
    {"SequenceEmpty", "dtype:i"},
    {"Shape", "end:i start:i"},
    {"Shrink", "bias:f lambd:f"},
    {"Slice", "axes:I ends:I starts:I"},
    {"SplitToSequence", "axis:i keepdims:i"},
    {"Split", "axis:i num_outputs:i split:I"},
    {"TopK", "axis:i k:i largest:i sorted:i"},
    {"Transpose", "perm:I"},
    {"Trilu", "upper:i"},
    {"Unique", "axis:i sorted:i"},
    {"Upsample", "height_scale:f mode:s scales:F width_scale:f"},
};

using AttributeTypes = std::map<std::string, std::string>;  // of one operator, by name

const std::map<std::string, AttributeTypes>& attribute_table() {
  static const std::map<std::string, AttributeTypes> table = [] {
    std::map<std::string, AttributeTypes> made;
    for (const AttributeRow& row : kAttributeRows) {
      AttributeTypes types;
      for (const std::string& word : split_words(row.attributes)) {
        const size_t colon = word.find(':');
        types[word.substr(0, colon)] = word.substr(colon + 1);
      }
      for (const std::string& name : split_words(row.operators)) made[name] = types;
    }
    return made;
  }();
  return table;
}

/// The letter of a value's type in the table, and what to call it. In the order of AttrValue.
struct AttributeLetter {
  char letter;
  const char* name;
};
constexpr AttributeLetter kAttributeLetters[] = {
    {'i', "an integer"},       {'f', "a float"},
    {'s', "a text"},           {'I', "a list of integers"},
    {'F', "a list of floats"}, {'S', "a list of texts"},
    {'t', "a tensor"}};

std::string names_of_types(const std::string& letters) {
  std::vector<std::string> names;
  for (const AttributeLetter& type : kAttributeLetters)
    if (letters.find(type.letter) != letters.npos) names.emplace_back(type.name);
  return fmt::format("{}", fmt::join(names, " or "));
}

}  // namespace

std::optional<Error> attribute_error(const std::string& op, const std::string& key,
                                     const tensor::AttrValue* value) {
  const auto known = attribute_table().find(op);
  if (known == attribute_table().end()) return std::nullopt;
  const auto found = known->second.find(key);
  if (found == known->second.end()) {
    std::vector<std::string> names;
    for (const auto& [name, types] : known->second) names.push_back(name);
    const std::string meant = did_you_mean(key, names);
    return fail(ErrorKind::Invalid, fmt::format("{} has no attribute '{}'", op, key),
                names.empty() ? "in ONNX it has none"
                              : fmt::format("in ONNX it has {}", fmt::join(names, ", ")),
                meant.empty() ? "export the model without it" : meant)
        .value();
  }
  if (found->second == "p" || found->second == "g")
    return std::nullopt;  // whoever reads the node refuses it
  const AttributeLetter given = value == nullptr ? AttributeLetter{'?', "of another kind"}
                                                 : kAttributeLetters[value->index()];
  const bool fits = found->second.find(given.letter) != std::string::npos ||
                    (given.letter == 'i' && found->second == "f");
  if (fits) return std::nullopt;
  return fail(ErrorKind::Invalid, fmt::format("attribute '{}' of {} is {} instead of {}", key, op,
                                              given.name, names_of_types(found->second)))
      .value();
}

std::optional<tensor::Attrs> Importer::read_attributes(const NodeProto& proto, const Body& body,
                                                       const std::string& name) {
  tensor::Attrs attrs;
  const bool is_onnx = proto.domain().empty() || proto.domain() == "ai.onnx";
  bool sound = true;
  for (const onnx::AttributeProto& written : proto.attribute()) {
    const onnx::AttributeProto* a = &written;
    if (!written.ref_attr_name().empty()) {
      const auto found = body.arguments.find(written.ref_attr_name());
      if (found == body.arguments.end()) continue;  // absent at the call: absent here
      a = found->second;
    }
    tensor::AttrValue& value = attrs.values[written.name()];
    switch (type_of(*a)) {
      case kFloat:
        value = static_cast<double>(a->f());
        break;
      case kInt:
        value = a->i();
        break;
      case kString:
        value = a->s();
        break;
      case kFloats:
        value = std::vector<double>(a->floats().begin(), a->floats().end());
        break;
      case kInts:
        value = std::vector<int64_t>(a->ints().begin(), a->ints().end());
        break;
      case kStrings:
        value = std::vector<std::string>(a->strings().begin(), a->strings().end());
        break;
      case kTensor: {
        onnx::TensorProto copy = a->t();
        Result<Array> array = take_tensor(copy, external_);
        if (array) {
          value = *std::move(array);
        } else {
          report(
              std::move(array.error()).at(fmt::format("attribute '{}'", printable(written.name()))),
              node_place(name, printable(proto.op_type()), body));
          sound = false;
          attrs.values.erase(written.name());
        }
        break;
      }
      default:  // graphs are read where they matter; no supported operator has the other kinds
        attrs.values.erase(written.name());
    }
    const auto kept = attrs.values.find(written.name());
    if (!is_onnx) continue;
    if (auto error = attribute_error(proto.op_type(), printable(written.name()),
                                     kept == attrs.values.end() ? nullptr : &kept->second)) {
      report(*std::move(error), node_place(name, printable(proto.op_type()), body));
      sound = false;
    }
  }
  if (!sound) return std::nullopt;
  return attrs;
}

std::vector<std::string> operators_with_known_attributes() {
  std::vector<std::string> names;
  for (const auto& [name, types] : attribute_table()) names.push_back(name);
  return names;
}

}  // namespace tilewright::graph
