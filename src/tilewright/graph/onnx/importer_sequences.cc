// Sequences and optional values. A package has tensors only; here a sequence is a list of the
// values in it, so its length and the place of each element must be known while importing. An
// optional value that is there is that value, one that is not is an absent input.
//
// Example: SplitToSequence(x), SequenceAt(s, 1) on x of [3, 4] becomes a Slice of x.
// source: the ONNX operator specification, operators of sequences and optional values.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/counted.h"
#include "tilewright/graph/onnx/importer.h"

namespace tilewright::graph {

ValueId Importer::add_sequence(Values elements) {
  sequences_.push_back(std::move(elements));
  return kSequence - static_cast<ValueId>(sequences_.size() - 1);
}

Result<Importer::Values> Importer::sequence_input(const Call& call, size_t i) const {
  const Values& inputs = call.node.inputs;
  if (i >= inputs.size() || inputs[i] > kSequence)
    return fail(ErrorKind::Invalid,
                fmt::format("input {} of {} is not a sequence", i, call.node.op));
  return sequences_[static_cast<size_t>(kSequence - inputs[i])];
}

Result<size_t> Importer::sequence_position(const Call& call, size_t i, int64_t most) {
  const int64_t position = TW_TRY(known_scalar(
      call.node.inputs[i], fmt::format("the position (input {}) of this {}", i, call.node.op)));
  const int64_t counted = position < 0 ? position + most : position;
  if (counted < 0 || counted > most)
    return fail(ErrorKind::Invalid,
                fmt::format("position {} is not in a sequence of this length", position),
                fmt::format("the last one here is {}", most));
  return static_cast<size_t>(counted);
}

Result<Importer::Values> Importer::sequence_construct(const Call& call) {
  for (ValueId id : call.node.inputs)
    if (id < 0) return fail(ErrorKind::Invalid, "an element of this sequence is no tensor");
  return Values{add_sequence(call.node.inputs)};
}

Result<Importer::Values> Importer::sequence_empty(const Call&) { return Values{add_sequence({})}; }

Result<Importer::Values> Importer::sequence_at(const Call& call) {
  const Values elements = TW_TRY(sequence_input(call, 0));
  if (call.node.inputs.size() != 2) return fail(ErrorKind::Invalid, "SequenceAt needs a position");
  const auto length = static_cast<int64_t>(elements.size());
  if (length == 0) return fail(ErrorKind::Invalid, "an empty sequence has no elements");
  const int64_t position =
      TW_TRY(known_scalar(call.node.inputs[1], "the position (input 1) of this SequenceAt"));
  if (position < -length || position >= length)
    return fail(ErrorKind::Invalid, fmt::format("position {} is not in a sequence of {}", position,
                                                counted(length, "element")));
  return Values{elements[static_cast<size_t>(position < 0 ? position + length : position)]};
}

Result<Importer::Values> Importer::sequence_length(const Call& call) {
  const Values elements = TW_TRY(sequence_input(call, 0));
  return Values{add_scalar(call, DType::I64, static_cast<int64_t>(elements.size()))};
}

Result<Importer::Values> Importer::sequence_insert(const Call& call) {
  Values elements = TW_TRY(sequence_input(call, 0));
  const Values& inputs = call.node.inputs;
  if (inputs.size() < 2 || inputs[1] < 0)
    return fail(ErrorKind::Invalid, "SequenceInsert needs a tensor");
  size_t at = elements.size();
  if (inputs.size() > 2)
    at = TW_TRY(sequence_position(call, 2, static_cast<int64_t>(elements.size())));
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), inputs[1]);
  return Values{add_sequence(std::move(elements))};
}

Result<Importer::Values> Importer::sequence_erase(const Call& call) {
  Values elements = TW_TRY(sequence_input(call, 0));
  if (elements.empty()) return fail(ErrorKind::Invalid, "an empty sequence has no elements");
  const auto length = static_cast<int64_t>(elements.size());
  size_t at = elements.size() - 1;
  if (call.node.inputs.size() > 1) at = TW_TRY(sequence_position(call, 1, length));
  if (at >= elements.size())
    return fail(ErrorKind::Invalid, fmt::format("position {} is not in a sequence of {}", at,
                                                counted(length, "element")));
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
  return Values{add_sequence(std::move(elements))};
}

Result<Importer::Values> Importer::split_to_sequence(const Call& call) {
  const Values& inputs = call.node.inputs;
  if (inputs.empty() || inputs[0] < 0)
    return fail(ErrorKind::Invalid, "SplitToSequence needs a tensor");
  const tensor::TensorType type = graph_.values[static_cast<size_t>(inputs[0])].type;
  const auto rank = static_cast<int64_t>(type.shape.size());
  const int64_t asked = call.node.attrs.get_int("axis", 0), axis = asked < 0 ? asked + rank : asked;
  if (axis < 0 || axis >= rank)
    return fail(ErrorKind::Invalid, fmt::format("axis {} of {}", asked, to_string(type)));
  if (type.dynamic_axis == axis)
    return fail(ErrorKind::Unsupported, "the length of this sequence is known only at run time",
                "it depends on " + inputs_behind(inputs[0]));
  const int64_t extent = type.shape[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes;
  const bool split = inputs.size() > 1;
  if (split) {
    const Array given = TW_TRY(known_value(inputs[1], "input 1 ('split') of this SplitToSequence"));
    if (given.shape().empty()) {
      const int64_t size = given.get_int(0);
      if (size < 1) return fail(ErrorKind::Invalid, fmt::format("pieces of {} elements", size));
      for (int64_t left = extent; left > 0; left -= size) sizes.push_back(std::min(size, left));
    } else {
      for (int64_t i = 0; i < given.size(); ++i) sizes.push_back(given.get_int(i));
    }
  } else {
    sizes.assign(static_cast<size_t>(extent), 1);
  }
  Values pieces;
  int64_t begin = 0;
  const ValueId axes = add_ints(call, {axis});
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - begin)
      return fail(ErrorKind::Invalid, "the pieces of this SplitToSequence do not fit",
                  fmt::format("there are {} along axis {}", counted(extent, "element"), axis));
    TW_TRY_STATUS(count_iteration(call, begin, std::to_string(extent)));
    ValueId piece = TW_TRY(add_part(
        call, "Slice", {inputs[0], add_ints(call, {begin}), add_ints(call, {begin + size}), axes}));
    if (!split && call.node.attrs.get_int("keepdims", 1) == 0)
      piece = TW_TRY(add_part(call, "Squeeze", {piece, axes}));
    pieces.push_back(piece);
    begin += size;
  }
  if (begin != extent)
    return fail(ErrorKind::Invalid, "the pieces of this SplitToSequence do not fit",
                fmt::format("they have {} of {}", begin, counted(extent, "element")));
  return Values{add_sequence(std::move(pieces))};
}

Result<Importer::Values> Importer::concat_from_sequence(const Call& call) {
  const Values elements = TW_TRY(sequence_input(call, 0));
  if (elements.empty())
    return fail(ErrorKind::Invalid, "an empty sequence cannot be joined to a tensor");
  const int64_t axis = call.node.attrs.get_int("axis", 0);
  if (call.node.attrs.get_int("new_axis", 0) != 0)
    return Values{TW_TRY(stacked(call, elements, axis))};
  if (elements.size() == 1) return Values{TW_TRY(add_part(call, "Identity", {elements[0]}))};
  return Values{TW_TRY(add_part(call, "Concat", elements, {{"axis", axis}}))};
}

Result<Importer::Values> Importer::sequence_map(const Call& call) {
  const Subgraph body = TW_TRY(open_subgraph(call, "body"));
  const size_t length = TW_TRY(sequence_input(call, 0)).size();
  const Values& inputs = call.node.inputs;
  if (static_cast<size_t>(body.graph.input_size()) != inputs.size())
    return fail(
        ErrorKind::Invalid, "the body of this SequenceMap does not fit its inputs",
        fmt::format("it has {}, the SequenceMap {}", counted(body.graph.input_size(), "input"),
                    counted(static_cast<int64_t>(inputs.size()), "input")));
  std::vector<Values> outputs(static_cast<size_t>(body.graph.output_size()));
  for (size_t i = 0; i < length; ++i) {
    TW_TRY_STATUS(count_iteration(call, static_cast<int64_t>(i), std::to_string(length)));
    Values given;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k] > kSequence) {
        given.push_back(inputs[k]);
        continue;
      }
      const Values elements = TW_TRY(sequence_input(call, k));
      if (elements.size() != length)
        return fail(ErrorKind::Invalid, "the sequences of this SequenceMap differ in length",
                    fmt::format("{} and {}", length, elements.size()));
      given.push_back(elements[i]);
    }
    const Values made = run_subgraph(body, call, std::to_string(i), given);
    if (std::find(made.begin(), made.end(), kUnknown) != made.end()) return made;
    for (size_t k = 0; k < made.size(); ++k) outputs[k].push_back(made[k]);
  }
  Values results;
  for (Values& elements : outputs) results.push_back(add_sequence(std::move(elements)));
  return results;
}

Result<Importer::Values> Importer::optional_value(const Call& call) {
  return Values{call.node.inputs.empty() ? -1 : call.node.inputs[0]};
}

Result<Importer::Values> Importer::optional_get_element(const Call& call) {
  if (call.node.inputs.empty()) return fail(ErrorKind::Invalid, "this optional value is absent");
  return Values{call.node.inputs[0]};
}

Result<Importer::Values> Importer::optional_has_element(const Call& call) {
  return Values{add_scalar(call, DType::Bool, call.node.inputs.empty() ? 0 : 1)};
}

}  // namespace tilewright::graph
