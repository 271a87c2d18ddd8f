#include "tilewright/schedule/sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tilewright/base/integers.h"
#include "tilewright/base/scanner.h"
#include "tilewright/ir/walk.h"
#include "tilewright/schedule/sketch_text.h"

namespace tilewright::schedule {
namespace {

using Op = SketchExpr::Op;

std::string text_of(const Word& word) {
  if (const auto* number = std::get_if<int64_t>(&word)) return fmt::format("{}", *number);
  const std::string& text = std::get<std::string>(word);
  const bool name = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 127 && c != '`' && c != '"' && c != '\\';
  });
  return name ? quote_name(text, kSketchWords) : quote_string(text);
}

// --- Text.

std::string text_of(const Sketch& sketch, const SketchExpr& e, int around = 0) {
  const OpText* op = find_op(e.op);
  switch (e.op) {
    case Op::Literal:
      return text_of(e.value);
    case Op::Extent:
      return fmt::format("extent({})", text_of(e.value));
    case Op::Has:
      return fmt::format("has({})", text_of(e.value));
    case Op::Hole: {
      const SketchDecision& d = sketch.decisions[static_cast<size_t>(e.decision)];
      return "$" + quote_name(d.name) + (part_count(d) > 1 ? fmt::format(".{}", e.part) : "");
    }
    default:
      break;
  }
  if (op->level == 0)
    return fmt::format("{}({}, {})", op->text, text_of(sketch, e.args[0]),
                       text_of(sketch, e.args[1]));
  const std::string text = fmt::format("{} {} {}", text_of(sketch, e.args[0], op->level), op->text,
                                       text_of(sketch, e.args[1], op->level + 1));
  return op->level < around ? "(" + text + ")" : text;
}

std::string text_of(const std::vector<Words>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i > 0 ? ", " : "") + print(values[i]);
  return out + "]";
}

void print_steps(const Sketch& sketch, const std::vector<SketchStep>& steps,
                 const std::string& indent, std::string& out) {
  for (const SketchStep& step : steps) {
    if (!step.condition.empty()) {
      out += fmt::format("{}if {} {{\n", indent, text_of(sketch, step.condition[0]));
      print_steps(sketch, step.then_steps, indent + "  ", out);
      if (!step.else_steps.empty()) {
        out += indent + "} else {\n";
        print_steps(sketch, step.else_steps, indent + "  ", out);
      }
      out += indent + "}\n";
      continue;
    }
    out += fmt::format("{}{}(", indent, step.name);
    for (size_t i = 0; i < step.fields.size(); ++i) {
      const SketchField& field = step.fields[i];
      out += fmt::format("{}{}={}", i > 0 ? ", " : "", field.name, field.list ? "[" : "");
      for (size_t k = 0; k < field.values.size(); ++k)
        out += (k > 0 ? ", " : "") + text_of(sketch, field.values[k]);
      if (field.list) out += "]";
    }
    out += ")\n";
  }
}

// --- Values.

class Evaluator {
 public:
  explicit Evaluator(const std::vector<Words>& point) : point_(point) {}

  Result<Word> value(const SketchExpr& e) const {
    if (e.op == Op::Literal) return e.value;
    if (e.op == Op::Extent || e.op == Op::Has)
      return fail(ErrorKind::Invalid, fmt::format("nothing is known of {}", text_of(e.value)), {},
                  "bind the sketch to a program first");
    if (e.op == Op::Hole)
      return point_[static_cast<size_t>(e.decision)][static_cast<size_t>(e.part)];
    const Word a = TW_TRY(value(e.args[0])), b = TW_TRY(value(e.args[1]));
    if (e.op == Op::Eq) return int64_t{a == b};
    if (e.op == Op::Ne) return int64_t{a != b};
    for (const Word& word : {a, b})
      if (std::holds_alternative<std::string>(word))
        return fail(ErrorKind::Invalid, fmt::format("{} is a word, no number", text_of(word)));
    return numbers(e.op, std::get<int64_t>(a), std::get<int64_t>(b));
  }

 private:
  static Result<Word> numbers(Op op, int64_t a, int64_t b) {
    int64_t out = 0;
    bool overflow = false;
    switch (op) {
      case Op::Add:
        overflow = __builtin_add_overflow(a, b, &out);
        break;
      case Op::Sub:
        overflow = __builtin_sub_overflow(a, b, &out);
        break;
      case Op::Mul:
        overflow = __builtin_mul_overflow(a, b, &out);
        break;
      case Op::Div:
      case Op::Mod:
      case Op::CeilDiv:
        if (b <= 0 || a < 0)
          return fail(ErrorKind::Invalid, fmt::format("cannot divide {} by {}", a, b));
        out = op == Op::Div ? a / b : op == Op::Mod ? a % b : a / b + (a % b != 0 ? 1 : 0);
        break;
      default:
        return int64_t{compare(op, a, b)};
    }
    if (overflow) return fail(ErrorKind::Invalid, fmt::format("{} and {} are too large", a, b));
    return out;
  }

  static int64_t compare(Op op, int64_t a, int64_t b) {
    switch (op) {
      case Op::Min:
        return std::min(a, b);
      case Op::Max:
        return std::max(a, b);
      case Op::Lt:
        return a < b;
      case Op::Le:
        return a <= b;
      case Op::Gt:
        return a > b;
      case Op::Ge:
        return a >= b;
      case Op::And:
        return a != 0 && b != 0;
      default:
        return a != 0 || b != 0;
    }
  }

  const std::vector<Words>& point_;
};

Result<std::string> step_text(const SketchStep& step, const std::vector<Words>& point) {
  const Evaluator evaluator(point);
  std::string out = step.name + "(";
  for (size_t i = 0; i < step.fields.size(); ++i) {
    const SketchField& field = step.fields[i];
    out += fmt::format("{}{}={}", i > 0 ? ", " : "", field.name, field.list ? "[" : "");
    for (size_t k = 0; k < field.values.size(); ++k)
      out += (k > 0 ? ", " : "") + text_of(TW_TRY(evaluator.value(field.values[k])));
    if (field.list) out += "]";
  }
  return out + ")\n";
}

Status render(const std::vector<SketchStep>& steps, const std::vector<Words>& point,
              std::string& out) {
  for (const SketchStep& step : steps) {
    if (step.condition.empty()) {
      out += TW_TRY(step_text(step, point));
      continue;
    }
    const Word taken = TW_TRY(Evaluator(point).value(step.condition[0]));
    const bool then = taken != Word(int64_t{0});
    TW_TRY_STATUS(render(then ? step.then_steps : step.else_steps, point, out));
  }
  return {};
}

// --- What a program has.

class Binder {
 public:
  Binder(const Func& func, const Roles& roles) : roles_(roles) {
    walk(func.body, [&](const Stmt& s) {
      if (const Block* block = s.as<Block>()) blocks_.insert(block->name);
      const For* loop = s.as<For>();
      if (loop == nullptr) return;
      if (const auto extent = as_int(loop->extent)) extents_[loop->var.name()] = *extent;
    });
  }

  Status bind(SketchDecision& d) const {
    for (auto* values : {&d.values, &d.when})
      for (Words& value : *values)
        for (Word& word : value) play(word);
    return extent(d.extent);
  }

  Status bind(std::vector<SketchStep>& steps) const {
    for (SketchStep& step : steps) {
      for (SketchField& field : step.fields)
        for (SketchExpr& e : field.values) TW_TRY_STATUS(bind(e));
      for (SketchExpr& e : step.condition) TW_TRY_STATUS(bind(e));
      TW_TRY_STATUS(bind(step.then_steps));
      TW_TRY_STATUS(bind(step.else_steps));
    }
    return {};
  }

 private:
  Status bind(SketchExpr& e) const {
    if (e.op == SketchExpr::Op::Extent) {
      TW_TRY_STATUS(extent(e.value));
      e.op = SketchExpr::Op::Literal;
    }
    play(e.value);
    if (e.op == SketchExpr::Op::Has) {
      e.value = int64_t{blocks_.contains(std::get<std::string>(e.value))};
      e.op = SketchExpr::Op::Literal;
    }
    for (SketchExpr& arg : e.args) TW_TRY_STATUS(bind(arg));
    return {};
  }

  /// Roles stand where a block's name does: first, or first behind a `*` of fused loops.
  void play(Word& word) const {
    auto* name = std::get_if<std::string>(&word);
    if (name == nullptr || roles_.empty()) return;
    std::string out;
    for (size_t at = 0; at < name->size();) {
      const size_t star = std::min(name->find('*', at), name->size() - 1) + 1;
      const std::string part = name->substr(at, star - at);
      const size_t end = std::min(part.find_first_of(".*"), part.size());
      const auto role = roles_.find(part.substr(0, end));
      out += role == roles_.end() ? part : role->second + part.substr(end);
      at = star;
    }
    *name = std::move(out);
  }

  Status extent(Word& word) const {
    play(word);
    const auto* loop = std::get_if<std::string>(&word);
    if (loop == nullptr) return {};
    const auto found = extents_.find(*loop);
    if (found == extents_.end()) {
      std::vector<std::string> names;
      for (const auto& [name, trips] : extents_) names.push_back(name);
      const std::string near = nearest_name(*loop, names);
      return fail(ErrorKind::Invalid,
                  fmt::format("the program has no loop {} of constant extent", *loop), {},
                  near.empty() ? "" : fmt::format("did you mean {}?", near));
    }
    word = found->second;
    return {};
  }

  const Roles& roles_;
  std::map<std::string, int64_t> extents_;
  std::set<std::string> blocks_;
};

}  // namespace

std::string_view name(SketchDecision::Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::string print(const Words& value) {
  if (value.size() == 1) return text_of(value[0]);
  std::string out = "[";
  for (size_t i = 0; i < value.size(); ++i) out += (i > 0 ? ", " : "") + text_of(value[i]);
  return out + "]";
}

std::string print(const Sketch& sketch) {
  std::string out;
  for (const SketchDecision& d : sketch.decisions) {
    const bool factors =
        d.kind == SketchDecision::Kind::Split || d.kind == SketchDecision::Kind::Tile;
    out += fmt::format("decide {}: {} ", quote_name(d.name), name(d.kind));
    out += factors ? fmt::format("{} into {}", text_of(d.extent), d.parts) : text_of(d.values);
    if (d.parent >= 0)
      out += fmt::format(" when {} in {}",
                         quote_name(sketch.decisions[static_cast<size_t>(d.parent)].name),
                         text_of(d.when));
    out += "\n";
  }
  print_steps(sketch, sketch.steps, "", out);
  return out;
}

Result<Sketch> bind(const Sketch& sketch, const Func& func, const Roles& roles) {
  const Binder binder(func, roles);
  Sketch bound = sketch;
  for (SketchDecision& d : bound.decisions) {
    TW_TRY_STATUS(binder.bind(d));
    if (std::get<int64_t>(d.extent) < 1)
      return fail(ErrorKind::Invalid, fmt::format("decision {} splits an empty loop", d.name));
  }
  TW_TRY_STATUS(binder.bind(bound.steps));
  return bound;
}

Result<Trace> instantiate(const Sketch& sketch, const std::vector<Words>& point) {
  if (point.size() != sketch.decisions.size())
    return fail(ErrorKind::Invalid,
                fmt::format("{} values for {} decisions", point.size(), sketch.decisions.size()));
  for (size_t i = 0; i < point.size(); ++i)
    if (static_cast<int64_t>(point[i].size()) != part_count(sketch.decisions[i]))
      return fail(ErrorKind::Invalid,
                  fmt::format("decision {} has {} parts, its value {}", sketch.decisions[i].name,
                              part_count(sketch.decisions[i]), print(point[i])));
  std::string text;
  TW_TRY_STATUS(render(sketch.steps, point, text));
  return parse_trace(text);
}

Status check_step(const SketchStep& step, const std::vector<Words>& sample) {
  Result<std::string> text = step_text(step, sample);
  if (!text) return {};
  Result<Trace> trace = parse_trace(*text);
  if (!trace) return tl::unexpected<Error>(std::move(trace).error());
  return {};
}

}  // namespace tilewright::schedule
