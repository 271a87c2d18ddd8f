// Sums of products of bytes in words of four terms, which threads of a GPU multiply by one
// instruction (hw/intrinsics/cuda.tw, dp4a).
#pragma once

#include <optional>
#include <string>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/rules/common/draft.h"

namespace tilewright::rules {

/// Terms of a word.
inline constexpr int64_t kWordTerms = 4;

/// An iteration of a sum that goes along a word of both factors.
struct WordTerms {
  Var iter;
  std::string loop;
  const hw::Intrinsic* by = nullptr;  ///< the instruction that multiplies words
};

/// The iteration of four terms of `block`, if it sums products of bytes for which `target` has an
/// instruction, words of both factors begin at multiples of four along an axis, and it goes through
/// these.
std::optional<WordTerms> word_terms(const BlockFacts& block, const hw::GpuTarget& target);

/// The axis of `load` along which `iter` moves by single elements, and no other iteration by less
/// than a word.
std::optional<size_t> word_axis(const Load& load, const Var& iter);

/// Where words of the factors come from: from memory as it is (what is known is laid out first), or
/// from copies that are laid out later, with the rest of words as zeros.
enum class WordsFrom { Memory, Copies };

/// Gives the sum `name` an iteration of four terms that word_terms finds. False, with some steps
/// taken, where it has none.
bool in_words(Draft& draft, const std::string& name, const hw::GpuTarget& target, WordsFrom from);

/// Makes an instruction of every word whose bytes lie side by side, of all sums.
void multiply_words(Draft& draft, const hw::GpuTarget& target);

}  // namespace tilewright::rules
