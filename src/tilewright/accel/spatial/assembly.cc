// Instructions as text, one a line.
#include <fmt/format.h>

#include <vector>

#include "tilewright/accel/spatial/fields.h"

namespace tilewright::spatial {
namespace {

constexpr std::string_view kQueueLetters = "LCS";

constexpr std::array<std::string_view, kQueues> kOperations = {"LOAD", "COMPUTE", "STORE"};

/// Numbers that stand side by side.
struct FieldText {
  std::string_view name;
  std::string values;
};

template <class Work>
std::vector<FieldText> texts_of(const Work& work) {
  std::vector<FieldText> out;
  each_field(work, [&](std::string_view name, int, const auto& number) {
    const std::string value = fmt::format("{}", static_cast<int64_t>(number));
    if (!out.empty() && out.back().name == name)
      out.back().values += "," + value;
    else
      out.push_back({name, value});
  });
  return out;
}

std::string queues_text(std::string_view name, unsigned mask) {
  std::string text;
  for (size_t q = 0; q < 8; ++q)
    if ((mask >> q & 1) != 0) text += q < kQueueLetters.size() ? kQueueLetters[q] : '?';
  return text.empty() ? text : fmt::format(" {}={}", name, text);
}

}  // namespace

std::string to_string(const Insn& insn) {
  std::string text(kOperations[insn.work.index()]);
  text += queues_text("takes", insn.takes) + queues_text("gives", insn.gives);
  std::visit(
      [&](const auto& work) {
        const auto own = texts_of(work), usual = texts_of(std::decay_t<decltype(work)>{});
        for (size_t i = 0; i < own.size(); ++i)
          if (own[i].values != usual[i].values)
            text += fmt::format(" {}={}", own[i].name, own[i].values);
      },
      insn.work);
  return text;
}

}  // namespace tilewright::spatial
