// Schedule steps: plain structs; `apply` is pure. Loops, blocks and buffers go by name.
// A loop is born `<block>.<iteration>`; split gives `<loop>.o`, `<loop>.i`; cut gives `@0`, `@1`,
// ... to every loop and block inside; a regenerated nest takes its born names again (next free `.n`
// if in use).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tilewright/base/fields.h"
#include "tilewright/base/result.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::schedule {

using Name = std::string;
using Names = std::vector<std::string>;
using Ints = std::vector<int64_t>;

#define TW_FIELDS(...) \
  static constexpr auto fields() { return std::tuple{__VA_ARGS__}; }
#define TW_FIELD(Struct, member) ::tilewright::field(#member, &Struct::member)

struct Split {
  Name loop;
  int64_t factor = 1;
  static constexpr std::string_view name = "split";
  TW_FIELDS(TW_FIELD(Split, loop), TW_FIELD(Split, factor))
};
struct Fuse {
  Name outer, inner;  // gives `<outer>*<inner>`
  static constexpr std::string_view name = "fuse";
  TW_FIELDS(TW_FIELD(Fuse, outer), TW_FIELD(Fuse, inner))
};
struct Reorder {
  Names loops;  // outermost first; other loops keep their places
  static constexpr std::string_view name = "reorder";
  TW_FIELDS(TW_FIELD(Reorder, loops))
};
struct Cut {
  Name loop;
  Ints parts;  // lengths; the last may be 0 meaning "the rest"
  static constexpr std::string_view name = "cut";
  TW_FIELDS(TW_FIELD(Cut, loop), TW_FIELD(Cut, parts))
};
struct ComputeAt {
  Name block, loop;
  static constexpr std::string_view name = "compute_at";
  TW_FIELDS(TW_FIELD(ComputeAt, block), TW_FIELD(ComputeAt, loop))
};
struct ReverseComputeAt {
  Name block, loop;
  static constexpr std::string_view name = "reverse_compute_at";
  TW_FIELDS(TW_FIELD(ReverseComputeAt, block), TW_FIELD(ReverseComputeAt, loop))
};
struct Inline {
  Name block;
  static constexpr std::string_view name = "inline";
  TW_FIELDS(TW_FIELD(Inline, block))
};
struct CacheRead {
  Name block, buffer, copy, loop;  // loop "" = at the top
  static constexpr std::string_view name = "cache_read";
  TW_FIELDS(TW_FIELD(CacheRead, block), TW_FIELD(CacheRead, buffer), TW_FIELD(CacheRead, copy),
            TW_FIELD(CacheRead, loop))
};
struct CacheWrite {
  Name block, copy, loop;
  static constexpr std::string_view name = "cache_write";
  TW_FIELDS(TW_FIELD(CacheWrite, block), TW_FIELD(CacheWrite, copy), TW_FIELD(CacheWrite, loop))
};
struct Reindex {
  Name block, buffer, copy;
  Names iters;  // stage the access as an array over these iterations
  static constexpr std::string_view name = "reindex";
  TW_FIELDS(TW_FIELD(Reindex, block), TW_FIELD(Reindex, buffer), TW_FIELD(Reindex, copy),
            TW_FIELD(Reindex, iters))
};
struct Slide {
  Name block, loop, iter;
  static constexpr std::string_view name = "slide";
  TW_FIELDS(TW_FIELD(Slide, block), TW_FIELD(Slide, loop), TW_FIELD(Slide, iter))
};
struct RFactor {
  Name loop;
  static constexpr std::string_view name = "rfactor";
  TW_FIELDS(TW_FIELD(RFactor, loop))
};
struct SetScope {
  Name buffer, scope;
  static constexpr std::string_view name = "set_scope";
  TW_FIELDS(TW_FIELD(SetScope, buffer), TW_FIELD(SetScope, scope))
};
struct Layout {
  Name buffer;
  std::string map;  // "[k,c] -> [k/16, c, k%16]"; allocated buffers only
  static constexpr std::string_view name = "layout";
  TW_FIELDS(TW_FIELD(Layout, buffer), TW_FIELD(Layout, map))
};
struct Pad {
  Name block, iter;
  int64_t multiple = 1;
  static constexpr std::string_view name = "pad";
  TW_FIELDS(TW_FIELD(Pad, block), TW_FIELD(Pad, iter), TW_FIELD(Pad, multiple))
};
struct Inplace {
  Name block, source;  // the block's buffer reuses `source`
  static constexpr std::string_view name = "inplace";
  TW_FIELDS(TW_FIELD(Inplace, block), TW_FIELD(Inplace, source))
};
struct Order {
  Names blocks;  // sibling nests in this order
  static constexpr std::string_view name = "order";
  TW_FIELDS(TW_FIELD(Order, blocks))
};
struct Parallel {
  Name loop;
  static constexpr std::string_view name = "parallel";
  TW_FIELDS(TW_FIELD(Parallel, loop))
};
struct Vectorize {
  Name loop;
  static constexpr std::string_view name = "vectorize";
  TW_FIELDS(TW_FIELD(Vectorize, loop))
};
struct Unroll {
  Name loop;
  static constexpr std::string_view name = "unroll";
  TW_FIELDS(TW_FIELD(Unroll, loop))
};
struct SetMark {
  Name target, mark, value;  // loop, block or buffer; value an integer or a word
  static constexpr std::string_view name = "mark";
  TW_FIELDS(TW_FIELD(SetMark, target), TW_FIELD(SetMark, mark), TW_FIELD(SetMark, value))
};

using Step = std::variant<Split, Fuse, Reorder, Cut, ComputeAt, ReverseComputeAt, Inline, CacheRead,
                          CacheWrite, Reindex, Slide, RFactor, SetScope, Layout, Pad, Inplace,
                          Order, Parallel, Vectorize, Unroll, SetMark>;

/// The program after the step. errors: NotApplicable (the number of the broken requirement, names
/// and sizes in the text), Invalid (no such loop, block or buffer).
Result<Func> apply(const Step& step, const Func& func);

/// A list of steps with concrete values. Text: one `split(loop=C.h, factor=14)` per line.
using Trace = std::vector<Step>;
std::string print(const Step& step);
std::string print(const Trace& trace);
/// errors: Parse with line and column.
Result<Trace> parse_trace(std::string_view text);
/// Applies all steps in order; an error names the step's index.
Result<Func> replay(const Func& func, const Trace& trace);

}  // namespace tilewright::schedule
