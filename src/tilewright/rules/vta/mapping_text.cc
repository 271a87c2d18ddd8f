#include "tilewright/rules/vta/mapping_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace tilewright::rules {
namespace {

using vta::Mem;

constexpr std::string_view kAxisLetters = "nohwcrs";
constexpr int64_t kMostTile = int64_t{1} << 40;

char axis_name(TileAxis axis) { return kAxisLetters[static_cast<size_t>(axis)]; }

std::optional<TileAxis> axis_of(std::string_view name) {
  const size_t at = name.size() == 1 ? kAxisLetters.find(name[0]) : kAxisLetters.npos;
  return at == kAxisLetters.npos ? std::nullopt : std::optional(static_cast<TileAxis>(at));
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = text.find_first_not_of(" \t\r");
    if (begin == text.npos) return words;
    const size_t end = std::min(text.find_first_of(" \t\r", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

class MappingReader {
 public:
  MappingReader(const VtaLayer& layer, std::string_view text) : layer_(layer), text_(text) {
    mapping_.tile = layer.extent;
  }

  Result<VtaMapping> read() {
    for (std::string_view rest = text_;;) {
      const size_t comma = rest.find(',');
      TW_TRY_STATUS(section(words_of(rest.substr(0, comma))));
      if (comma == rest.npos) break;
      rest.remove_prefix(comma + 1);
    }
    TW_TRY_STATUS(finish());
    return std::move(mapping_);
  }

 private:
  tl::unexpected<Error> bad(std::string_view word, std::string why) const {
    Error error =
        fail(ErrorKind::Parse, fmt::format("`{}` is no part of a mapping", word), std::move(why))
            .value();
    error.place = std::to_string(word.data() - text_.data() + 1);
    return tl::unexpected<Error>(std::move(error));
  }

  Result<int64_t> number(std::string_view word, std::string_view digits, int64_t low) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < low ||
        value > kMostTile)
      return bad(word, fmt::format("expected a number from {}", low));
    return value;
  }

  Status section(const std::vector<std::string_view>& words) {
    if (words.empty()) return {};
    const std::vector<std::string_view> values(words.begin() + 1, words.end());
    if (words[0] == "order") return order(values);
    if (words[0] == "tail") return tail(values);
    if (words[0] == "copies") return copies(words[0], values);
    for (const std::string_view word : words) TW_TRY_STATUS(tile_or_depth(word));
    return {};
  }

  Status tile_or_depth(std::string_view word) {
    if (const size_t at = word.find('@'); at != word.npos) {
      const std::string_view what = word.substr(0, at);
      if (what != "input" && what != "weights") return bad(word, "expected input@N or weights@N");
      (what == "input" ? input_ : weights_) =
          static_cast<int>(TW_TRY(number(word, word.substr(at + 1), 0)));
      return {};
    }
    const auto axis = axis_of(word.substr(0, 1));
    if (!axis)
      return bad(
          word,
          "expected n, o, h, w, c, r or s and a number, order, input@N, weights@N, tail or copies");
    mapping_.tile[*axis] = TW_TRY(number(word, word.substr(1), 1));
    return {};
  }

  Status order(const std::vector<std::string_view>& words) {
    ordered_ = true;
    for (const std::string_view word : words) {
      const auto axis = axis_of(word);
      if (!axis) return bad(word, "expected n, o, h, w, c, r or s");
      mapping_.order.push_back(*axis);
    }
    return {};
  }

  Status tail(const std::vector<std::string_view>& words) {
    for (const std::string_view word : words)
      mapping_.tail.push_back(TW_TRY(number(word, word, 1)));
    return {};
  }

  Status copies(std::string_view key, const std::vector<std::string_view>& words) {
    if (words.size() != 2) return bad(key, "expected two numbers: of buffers, and of the result's");
    for (const std::string_view word : words)
      if (word != "1" && word != "2") return bad(word, "copies are 1 or 2");
    mapping_.copies = words[0] == "1" ? 1 : 2;
    mapping_.result_copies = words[1] == "1" ? 1 : 2;
    return {};
  }

  Status finish() {
    const auto wrong = [](std::string what) { return fail(ErrorKind::Usage, std::move(what)); };
    std::vector<TileAxis> cut;
    for (size_t i = 0; i < kTileAxes; ++i) {
      const auto axis = static_cast<TileAxis>(i);
      if (mapping_.tile[axis] > layer_.extent[axis])
        return wrong(fmt::format("the tile of {} is {}, the layer has {}", axis_name(axis),
                                 mapping_.tile[axis], layer_.extent[axis]));
      if (tiles(layer_, mapping_, axis) > 1) cut.push_back(axis);
    }
    if (!ordered_) mapping_.order = cut;
    std::vector<TileAxis> sorted = mapping_.order;
    std::sort(sorted.begin(), sorted.end());
    if (sorted != cut) {
      std::string names;
      for (const TileAxis axis : cut) names += fmt::format(" {}", axis_name(axis));
      return wrong(fmt::format("the order names the axes of several tiles, each once:{}", names));
    }
    const auto loops = static_cast<int>(cut.size());
    mapping_.input_depth = input_.value_or(loops);
    mapping_.weight_depth = weights_.value_or(loops);
    if (std::max(mapping_.input_depth, mapping_.weight_depth) > loops)
      return wrong(fmt::format("a copy stands inside of {} loops at most", loops));
    return {};
  }

  const VtaLayer& layer_;
  const std::string_view text_;
  VtaMapping mapping_;
  bool ordered_ = false;
  std::optional<int> input_, weights_;
};

}  // namespace

Result<VtaMapping> parse_vta_mapping(const VtaLayer& layer, std::string_view text) {
  return MappingReader(layer, text).read();
}

std::vector<std::string> misfits(const VtaLayer& layer, const VtaMapping& mapping,
                                 const vta::Config& config) {
  const VtaNeed needs = need(layer, mapping, config);
  std::vector<std::string> reasons;
  const auto check = [&](const char* memory, const char* tensor, int64_t elements, int64_t there,
                         Mem mem) {
    if (elements <= there) return;
    const auto kib = [&](int64_t count) {
      return static_cast<double>(count * config.element_bytes(mem)) / 1024;
    };
    reasons.push_back(fmt::format("{}: {} {:.1f} KiB of {:.1f} KiB, {:.1f} KiB more", memory,
                                  tensor, kib(elements), kib(there), kib(elements - there)));
  };
  check("input memory", "input", needs.inp, config.depth(Mem::Inp), Mem::Inp);
  check("weight memory", "weights", needs.wgt, config.depth(Mem::Wgt), Mem::Wgt);
  check("accumulators", "result", needs.acc, config.depth(Mem::Acc), Mem::Acc);
  check("micro-op memory", "micro-ops", needs.uop, config.most_uops(), Mem::Uop);
  return reasons;
}

}  // namespace tilewright::rules
