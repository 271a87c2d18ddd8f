// The parser of sketches (the grammar is at the top of schedule/sketch.h): recursive descent over
// tokens, decisions first, then steps.
//
//   decide k: split main.k into 2        -> SketchDecision{k, Split, "main.k", 2 parts}
//   split(loop=main.k, factor=$k.1)      -> SketchStep{split, loop: a name, factor: a hole}
//
// Each step is tried with a sample value for every hole, so that unknown steps and fields, and
// values of the wrong type, are errors with line and column here and not when a point is tried.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/scanner.h"
#include "tilewright/schedule/sketch_text.h"
#include "tilewright/schedule/tree.h"

namespace tilewright::schedule {
namespace {

using Kind = SketchDecision::Kind;
using Op = SketchExpr::Op;

constexpr int kDeepestSketch = 64;
constexpr int64_t kMostParts = 8;

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}

  Result<Sketch> run() {
    while (in_.at_word("decide")) TW_TRY_STATUS(decision());
    for (const SketchDecision& d : sketch_.decisions) {
      const auto parts = static_cast<size_t>(part_count(d));
      sample_.push_back(d.values.empty() ? Words(parts, int64_t{1}) : d.values[0]);
    }
    sketch_.steps = TW_TRY(steps());
    if (!in_.at_end()) return in_.error("expected a step, found " + in_.found());
    return std::move(sketch_);
  }

 private:
  Result<Word> word(std::string_view what) {
    const Token::Kind kind = in_.peek().kind;
    if (kind == Token::Kind::Int || in_.at_symbol("-")) return TW_TRY(in_.expect_int(what));
    if (kind == Token::Kind::String) return in_.next().value;
    return TW_TRY(in_.expect_name(what));
  }

  Result<Words> value() {
    if (!in_.accept_symbol("[")) return Words{TW_TRY(word("a value"))};
    Words parts{TW_TRY(word("a part of a value"))};
    while (in_.accept_symbol(",")) parts.push_back(TW_TRY(word("a part of a value")));
    TW_TRY_STATUS(in_.expect_symbol("]", "after the parts"));
    return parts;
  }

  Result<std::vector<Words>> values() {
    TW_TRY_STATUS(in_.expect_symbol("[", "before the values"));
    const size_t start = in_.offset();
    std::vector<Words> all{TW_TRY(value())};
    while (in_.accept_symbol(",")) all.push_back(TW_TRY(value()));
    TW_TRY_STATUS(in_.expect_symbol("]", "after the values"));
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].size() != all[0].size())
        return in_.error_at(start, "the values differ in the number of their parts");
      if (std::find(all.begin(), all.begin() + static_cast<long>(i), all[i]) !=
          all.begin() + static_cast<long>(i))
        return in_.error_at(start, fmt::format("the value {} is there twice", print(all[i])));
    }
    return all;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const SketchDecision& d : sketch_.decisions) out.push_back(d.name);
    return out;
  }

  int find(const std::string& name) const {
    for (size_t i = 0; i < sketch_.decisions.size(); ++i)
      if (sketch_.decisions[i].name == name) return static_cast<int>(i);
    return -1;
  }

  tl::unexpected<Error> unknown(size_t at, const std::string& name) const {
    const std::string near = nearest_name(name, names());
    return in_.error_at(at, fmt::format("no decision {} has been made", name),
                        near.empty() ? "declare it with `decide` before the steps"
                                     : fmt::format("did you mean {}?", near));
  }

  Status decision() {
    in_.next();
    SketchDecision d;
    const size_t at = in_.offset();
    d.name = TW_TRY(in_.expect_name("a decision"));
    if (d.name.find('.') != std::string::npos)
      return in_.error_at(at, fmt::format("the decision {} has a dot in its name", d.name),
                          "a dot stands between a decision and the number of a part");
    if (find(d.name) >= 0)
      return in_.error_at(at, fmt::format("the decision {} is there twice", d.name));
    TW_TRY_STATUS(in_.expect_symbol(":", "after the decision's name"));
    const size_t kind_at = in_.offset();
    const std::string kind = TW_TRY(in_.expect_name("a kind of decision"));
    const auto* known = std::find(std::begin(kKindNames), std::end(kKindNames), kind);
    if (known == std::end(kKindNames))
      return in_.error_at(kind_at, fmt::format("no decision is of the kind {}", kind),
                          "the kinds are split, tile, ordered, ring and choice");
    d.kind = static_cast<Kind>(known - std::begin(kKindNames));
    if (d.kind == Kind::Split || d.kind == Kind::Tile) {
      TW_TRY_STATUS(factors(d));
    } else {
      d.values = TW_TRY(values());
    }
    if (in_.accept_word("when")) TW_TRY_STATUS(activity(d));
    sketch_.decisions.push_back(std::move(d));
    return {};
  }

  Status factors(SketchDecision& d) {
    const size_t at = in_.offset();
    d.extent = TW_TRY(word("an extent or a loop"));
    if (const auto* extent = std::get_if<int64_t>(&d.extent);
        extent != nullptr && (*extent < 1 || *extent > kLargestExtent))
      return in_.error_at(at, fmt::format("cannot split an extent of {}", *extent),
                          fmt::format("extents are from 1 to {}", kLargestExtent));
    TW_TRY_STATUS(in_.expect_word("into", "after the extent"));
    const size_t parts_at = in_.offset();
    d.parts = TW_TRY(in_.expect_int("a number of parts"));
    if (d.parts < 1 || d.parts > kMostParts)
      return in_.error_at(parts_at, fmt::format("cannot split into {} parts", d.parts),
                          fmt::format("splits have 1 to {} parts", kMostParts));
    return {};
  }

  Status activity(SketchDecision& d) {
    const size_t at = in_.offset();
    const std::string parent = TW_TRY(in_.expect_name("a decision"));
    d.parent = find(parent);
    if (d.parent < 0) return unknown(at, parent);
    TW_TRY_STATUS(in_.expect_word("in", "after the decision"));
    const size_t values_at = in_.offset();
    d.when = TW_TRY(values());
    const SketchDecision& p = sketch_.decisions[static_cast<size_t>(d.parent)];
    for (const Words& value : d.when)
      if (std::find(p.values.begin(), p.values.end(), value) == p.values.end())
        return in_.error_at(values_at, fmt::format("{} is no value of {}", print(value), parent),
                            "a decision can depend on ordered, ring and choice decisions");
    return {};
  }

  // --- Expressions.

  Result<SketchExpr> hole() {
    const size_t at = in_.offset();
    const std::string text = TW_TRY(in_.expect_name("a decision"));
    SketchExpr e;
    e.op = Op::Hole;
    e.decision = find(text);
    const size_t dot = text.rfind('.');
    const bool has_part = e.decision < 0 && dot != std::string::npos && dot + 4 > text.size() &&
                          text.find_first_not_of("0123456789", dot + 1) == std::string::npos;
    if (has_part) {
      e.decision = find(text.substr(0, dot));
      e.part = std::stoi(text.substr(dot + 1));
    }
    // A name in backquotes ends before the dot.
    if (e.decision >= 0 && !has_part && in_.at_symbol(".")) {
      in_.next();
      const int64_t part = TW_TRY(in_.expect_int("a part"));
      e.part = static_cast<int>(std::clamp<int64_t>(part, -1, kMostParts));
      return check_part(e, at, true);
    }
    if (e.decision < 0) return unknown(at, text);
    return check_part(e, at, has_part);
  }

  Result<SketchExpr> check_part(const SketchExpr& e, size_t at, bool has_part) const {
    const SketchDecision& d = sketch_.decisions[static_cast<size_t>(e.decision)];
    const int64_t parts = part_count(d);
    if (!has_part && parts > 1)
      return in_.error_at(at, fmt::format("the decision {} has {} parts", d.name, parts),
                          fmt::format("say which: ${}.0 to ${}.{}", d.name, d.name, parts - 1));
    if (e.part < 0 || e.part >= parts)
      return in_.error_at(at, fmt::format("the decision {} has no part {}", d.name, e.part),
                          fmt::format("it has {}", parts));
    return e;
  }

  Result<SketchExpr> function() {
    const size_t at = in_.offset();
    const std::string name = in_.next().value;
    TW_TRY_STATUS(in_.expect_symbol("(", "after the function"));
    SketchExpr e;
    if (name == "extent" || name == "has") {
      e.op = name == "has" ? Op::Has : Op::Extent;
      e.value = TW_TRY(in_.expect_name(name == "has" ? "a block" : "a loop"));
    } else {
      const auto* op = std::find_if(std::begin(kOps), std::end(kOps), [&](const OpText& o) {
        return o.level == 0 && o.text == name;
      });
      if (op == std::end(kOps))
        return in_.error_at(at, fmt::format("no function is named {}", name),
                            "the functions are min, max, ceil_div, extent and has");
      e.op = op->op;
      e.args.push_back(TW_TRY(expression(1)));
      TW_TRY_STATUS(in_.expect_symbol(",", "between the arguments"));
      e.args.push_back(TW_TRY(expression(1)));
    }
    TW_TRY_STATUS(in_.expect_symbol(")", "after the arguments"));
    return e;
  }

  Result<SketchExpr> primary() {
    if (in_.accept_symbol("$")) return hole();
    if (in_.accept_symbol("(")) {
      SketchExpr e = TW_TRY(expression(1));
      TW_TRY_STATUS(in_.expect_symbol(")", "after the expression"));
      return e;
    }
    SketchExpr e;
    const bool is_function = std::any_of(std::begin(kSketchWords), std::end(kSketchWords),
                                         [&](std::string_view word) { return in_.at_word(word); });
    if (is_function) return function();
    e.value = TW_TRY(word("a value"));
    return e;
  }

  Result<SketchExpr> expression(int level) {
    if (depth_ > kDeepestSketch) return in_.error("the expression is nested too deeply");
    if (level > kOpLevels) {
      ++depth_;
      Result<SketchExpr> e = primary();
      --depth_;
      return e;
    }
    SketchExpr left = TW_TRY(expression(level + 1));
    int chain = 0;
    for (;;) {
      const auto* op = std::find_if(std::begin(kOps), std::end(kOps), [&](const OpText& o) {
        return o.level == level && in_.at_symbol(o.text);
      });
      if (op == std::end(kOps)) return left;
      if (++chain > kDeepestSketch) return in_.error("the expression is too long");
      in_.next();
      SketchExpr both;
      both.op = op->op;
      both.args.push_back(std::move(left));
      both.args.push_back(TW_TRY(expression(level + 1)));
      left = std::move(both);
    }
  }

  // --- Steps.

  Result<std::vector<SketchStep>> steps() {
    std::vector<SketchStep> all;
    while (!in_.at_end() && !in_.at_symbol("}"))
      all.push_back(TW_TRY(in_.at_word("if") ? branch() : step()));
    return all;
  }

  Result<SketchStep> branch() {
    if (++depth_ > kDeepestSketch) return in_.error("the conditions are nested too deeply");
    in_.next();
    SketchStep out;
    out.condition.push_back(TW_TRY(expression(1)));
    TW_TRY_STATUS(in_.expect_symbol("{", "after the condition"));
    out.then_steps = TW_TRY(steps());
    TW_TRY_STATUS(in_.expect_symbol("}", "after the steps"));
    if (in_.accept_word("else")) {
      TW_TRY_STATUS(in_.expect_symbol("{", "after else"));
      out.else_steps = TW_TRY(steps());
      TW_TRY_STATUS(in_.expect_symbol("}", "after the steps"));
    }
    --depth_;
    return out;
  }

  Result<SketchStep> step() {
    const size_t at = in_.offset();
    SketchStep out;
    out.name = TW_TRY(in_.expect_name("a step"));
    if (out.name == "decide")
      return in_.error_at(at, "a decision stands among the steps",
                          "declare all decisions before the first step");
    TW_TRY_STATUS(in_.expect_symbol("(", "after the step's name"));
    while (!in_.at_symbol(")")) {
      if (!out.fields.empty()) TW_TRY_STATUS(in_.expect_symbol(",", "between the fields"));
      out.fields.push_back(TW_TRY(field()));
    }
    in_.next();
    if (const Status good = check_step(out, sample_); !good)
      return in_.error_at(at, good.error().what, good.error().fix);
    return out;
  }

  Result<SketchField> field() {
    SketchField out;
    out.name = TW_TRY(in_.expect_name("a field"));
    TW_TRY_STATUS(in_.expect_symbol("=", "after the field's name"));
    out.list = in_.accept_symbol("[");
    if (!out.list) {
      out.values.push_back(TW_TRY(expression(1)));
      return out;
    }
    while (!in_.at_symbol("]")) {
      if (!out.values.empty()) TW_TRY_STATUS(in_.expect_symbol(",", "between the elements"));
      out.values.push_back(TW_TRY(expression(1)));
    }
    in_.next();
    return out;
  }

  Scanner in_;
  Sketch sketch_;
  std::vector<Words> sample_;  ///< one value per decision, to check steps with
  int depth_ = 0;
};

}  // namespace

Result<Sketch> parse_sketch(std::string_view text) { return Parser(text).run(); }

}  // namespace tilewright::schedule
