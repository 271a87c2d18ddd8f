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

/// Splits a loop into an outer and an inner one.
///   rewrite:  for i in n { S }  =>
///             for i.o in ceil(n/f), i.i in f { S[i := i.o*f + i.i] where i.o*f + i.i < n }
///   requires: 1. `loop` exists  2. 0 < factor <= 2^31  3. `loop` is serial
///   keeps:    the order of all block instances; block bodies; no guard where n % f == 0
///   source:   TVM TensorIR `split`, Halide `split`
struct Split {
  Name loop;
  int64_t factor = 1;
  static constexpr std::string_view name = "split";
  TW_FIELDS(TW_FIELD(Split, loop), TW_FIELD(Split, factor))
};
/// Makes one loop of two.
///   rewrite:  for i in n, j in m { S }  =>  for i*j in n*m { S[i := f / m, j := f % m] }
///   requires: 1. `inner` is the only statement in `outer`  2. both are serial, without marks
///             3. the extent of `inner` does not depend on `outer`
///   keeps:    the order of all block instances
///   source:   TVM TensorIR `fuse`
struct Fuse {
  Name outer, inner;  // gives `<outer>*<inner>`
  static constexpr std::string_view name = "fuse";
  TW_FIELDS(TW_FIELD(Fuse, outer), TW_FIELD(Fuse, inner))
};
/// Permutes loops of one perfect nest.
///   rewrite:  for i, j, k { S }  =>  for k, j, i { S }     (loops=[k, i])
///   requires: 1. the loops are in one perfect nest (split off what stands between)
///             2. all loops from the first to the last are serial or unrolled
///             3. their extents do not depend on each other
///             4. no dependence is turned round; sums of floats keep their order in exact math
///   keeps:    the set of block instances
///   source:   TVM TensorIR `reorder`; direction vectors as in Allen and Kennedy
struct Reorder {
  Names loops;  // outermost first; other loops keep their places
  static constexpr std::string_view name = "reorder";
  TW_FIELDS(TW_FIELD(Reorder, loops))
};
/// Cuts a loop into consecutive loops of unequal lengths; everything inside gets `@0`, `@1`, ...
///   rewrite:  for i in n { S }  =>  for i@0 in p0 { S@0 }  for i@1 in p1 { S@1[i := i@1 + p0] }
///   requires: 1. `loop` is serial  2. at least two parts, all positive, that sum to the extent
///             (the last may be 0: the rest)  3. the names with `@` are free
///   keeps:    the order of all block instances; inner loops shrink to the iterations that the
///             guards of all their blocks leave, and what always holds then is no guard any more
///   source:   TTile's unequal tiles
struct Cut {
  Name loop;
  Ints parts;  // lengths; the last may be 0 meaning "the rest"
  static constexpr std::string_view name = "cut";
  TW_FIELDS(TW_FIELD(Cut, loop), TW_FIELD(Cut, parts))
};
/// Computes a block where it is needed: its nest (a reduction's together with its init) is made
/// anew inside `loop`, before the first statement that reads it, over the hull of what is read
/// there. Named on an init alone, it moves only that, to just before its reduction.
///   rewrite:  alloc P  for i { P[i] }  for j { for k { .. P[j + k] .. } }  =>
///             for j { alloc P  for P.i in 3 { P[j + P.i] }  for k { .. P[j + k] .. } }
///   requires: 1. the block is one store, the only writer of its buffer besides its init, and does
///             not read its own result  2. the buffer is allocated and every block that reads it
///             is inside `loop` (an init: its reduction is)  3. the indices it stores to are its
///             iterations (plus constants), which it runs over all of their extents, and its guard
///             is in their terms  4. what it reads is alive and complete there  5. no vector loop
///             around, and no concurrent loop around gets a conflict  6. an init alone: each
///             element is still set exactly once, before its first update
///   keeps:    indices in whole-tensor coordinates; elements outside the block's extents are
///             guarded off; the allocation moves with the block
///   source:   Halide `compute_at`, TVM TensorIR `compute_at`
struct ComputeAt {
  Name block, loop;
  static constexpr std::string_view name = "compute_at";
  TW_FIELDS(TW_FIELD(ComputeAt, block), TW_FIELD(ComputeAt, loop))
};
/// Moves a consumer to where its input is made: its nest is made anew inside `loop`, after the last
/// statement that writes what it reads, over exactly the elements made in that iteration.
///   rewrite:  for i { P[i] }  for j { Y[j] = f(P[j]) }  =>  for i { P[i]  for Y.j in 1 { Y[i] } }
///   requires: 1. as ComputeAt; or it sets its result, which no other block uses in between
///             2. an input is written inside `loop` by one block (and perhaps an init), read at one
///             place, at iterations (or i / n and i % n of one)  3. what is written in one turn of
///             `loop` is a box without gaps, and the iterations together run exactly the instances
///             the block has now, each once; a float sum keeps its order in exact math  4. its
///             other inputs are complete there  5. its result is alive there  6. as 5 of ComputeAt
///   keeps:    the instances of the block; allocations whose users are now all in the loop move
///             into it
///   source:   TVM TensorIR `reverse_compute_at`
struct ReverseComputeAt {
  Name block, loop;
  static constexpr std::string_view name = "reverse_compute_at";
  TW_FIELDS(TW_FIELD(ReverseComputeAt, block), TW_FIELD(ReverseComputeAt, loop))
};
/// Replaces every read of an element-wise block's result by the value itself.
///   rewrite:  for i { P[i] = f(i) }  for j { .. P[g(j)] .. }  =>  for j { .. f(g(j)) .. }
///   requires: 1. the block is one unmarked assignment, the only writer, not of its own input
///             2. its buffer is allocated  3. the indices it stores to are its iterations, all of
///             them  4. there are readers, none of them an intrinsic  5. what it reads is complete
///             wherever its result is read
///   keeps:    values; select, && and || stay lazy
///   source:   Halide `compute_inline`, TVM TensorIR `compute_inline`
struct Inline {
  Name block;
  static constexpr std::string_view name = "inline";
  TW_FIELDS(TW_FIELD(Inline, block))
};
/// Lets `block` read `buffer` through a copy, filled in `loop` (or as early as the source allows)
/// with the hull of what is read there.
///   rewrite:  for i { .. B[i] .. }  =>  for i { alloc T  for T.a0 { T[..] = B[..] }  .. T[i] .. }
///   requires: 1. the block reads the buffer and does not write it, and is no intrinsic  2. it is
///             inside `loop`  3. the source is alive and complete there, every element of the copy
///             set  4. no vector loop around, and no concurrent loop gets a conflict; also, the
///             name of the copy is new (Invalid)
///   keeps:    whole-tensor coordinates
///   source:   TVM TensorIR `cache_read`
struct CacheRead {
  Name block, buffer, copy, loop;  // loop "" = at the top
  static constexpr std::string_view name = "cache_read";
  TW_FIELDS(TW_FIELD(CacheRead, block), TW_FIELD(CacheRead, buffer), TW_FIELD(CacheRead, copy),
            TW_FIELD(CacheRead, loop))
};
/// Lets `block` (and its init) write `copy`; a new block `<block>.wb` writes the result back in
/// `loop` (or right after the nest).
///   rewrite:  for i { C[i] += .. }  =>  for i { T[i] += .. }  for C.wb.i { C[i] = T[i] }
///   requires: 1. the block is one store, the only writer of its buffer besides its init  2. no
///             reader of the buffer is in its nest yet  3. it writes a box without gaps, all of it
///             set  4. the write-back can move into `loop` (ReverseComputeAt)
///   keeps:    whole-tensor coordinates
///   source:   TVM TensorIR `cache_write`
struct CacheWrite {
  Name block, copy, loop;
  static constexpr std::string_view name = "cache_write";
  TW_FIELDS(TW_FIELD(CacheWrite, block), TW_FIELD(CacheWrite, copy), TW_FIELD(CacheWrite, loop))
};
/// Stages an access as a plain array over some iterations (im2col, transposition, skew).
///   rewrite:  for i, r { .. A[i + r] .. }  =>
///             for T.r, T.i { T[r, i] = A[i + r] }  for i, r { .. T[r, i] .. }     (iters=[r, i])
///   requires: 1. the block reads the buffer at one place, not through another buffer, and does not
///             write it  2. `iters` holds every iteration of the access  3. the source is complete
///             before the statement the block is in
///   keeps:    values; places outside the buffer become zero and are not read
///   source:   TVM TensorIR `reindex`
struct Reindex {
  Name block, buffer, copy;
  Names iters;  // stage the access as an array over these iterations
  static constexpr std::string_view name = "reindex";
  TW_FIELDS(TW_FIELD(Reindex, block), TW_FIELD(Reindex, buffer), TW_FIELD(Reindex, copy),
            TW_FIELD(Reindex, iters))
};
/// Counts several iterations of a block by one.
///   rewrite:  block C(i: space n = a, j: space m = b) { C[i, j] = f(i, j) }  =>
///             block C(i*j: space n*m = a*m + b) { C[i*j / m, i*j % m] = f(i*j / m, i*j % m) }
///   requires: 1. `iters` are two or more iterations of the block, each once  2. they are all of
///             kind space or all of kind reduce, of constant extents, their product at most 2^31
///             3. the block is no intrinsic; also, the name is new to the block (Invalid)
///   keeps:    the instances and their order; loops stay (fuse them too)
///   source:   TVM TensorIR `transform_block_layout`
struct Merge {
  Name block;
  Names iters;  // the slowest first; gives `<first>*<second>..` in the place of the first
  static constexpr std::string_view name = "merge";
  TW_FIELDS(TW_FIELD(Merge, block), TW_FIELD(Merge, iters))
};
/// Counts an iteration of a block by two: groups, and what is in a group.
///   rewrite:  block C(i: space n = a) { C[i] = f(i) }  =>
///             block C(i.o: space n/m = a / m, i.i: space m = a % m) { C[i.o*m + i.i] = .. }
///   requires: 1. the iteration is of kind space or reduce, of constant extent  2. the factor is
///             positive and divides it  3. as Merge
///   keeps:    as Merge (split the loop too)
///   source:   as Merge
struct Divide {
  Name block, iter;
  int64_t factor = 1;
  static constexpr std::string_view name = "divide";
  TW_FIELDS(TW_FIELD(Divide, block), TW_FIELD(Divide, iter), TW_FIELD(Divide, factor))
};
/// Produces only what earlier iterations of `loop` have not produced yet.
///   rewrite:  for t { alloc P  for p in s { P[t*c + p] } .. }  =>
///             alloc P  for t { for p in s { P[t*c + p] where t == 0 || p >= s - c } .. }
///   requires: 1. the block is the only writer of its buffer besides its init (which slides along)
///             2. the buffer is allocated in the body of `loop`  3. `loop` is serial or unrolled
///             4. `iter` is an iteration of the block along an axis of the buffer  5. only `iter`
///             moves with `loop`: a window of constant size s that moves forward by c <= s
///   keeps:    each element is written once; the allocation moves out of the loop
///   source:   Halide sliding windows
struct Slide {
  Name block, loop, iter;
  static constexpr std::string_view name = "slide";
  TW_FIELDS(TW_FIELD(Slide, block), TW_FIELD(Slide, loop), TW_FIELD(Slide, iter))
};
/// Sums the iterations of a reduction loop separately, then their sums.
///   rewrite:  for k { C += v(k) }  =>  for k { C.rf[k] = 0 }  for k { C.rf[k] += v(k) }
///             for k { C += C.rf[k] }
///   requires: 1. the block combines, with an init, and does not read its own result
///             2. `loop` runs only reductions of one block, as a plain part of each
///             3. not a float sum in exact math  4. `loop` is serial and holds no other user of the
///             result; no vector loop around  5. the block stores to its iterations, a box without
///             gaps
///   keeps:    the value, up to the order of a sum; the loops stay with the partial sums
///   source:   TVM `rfactor`
struct RFactor {
  Name loop;
  static constexpr std::string_view name = "rfactor";
  TW_FIELDS(TW_FIELD(RFactor, loop))
};
/// Places an allocated buffer in a memory.
///   rewrite:  alloc B: f32[n]  =>  alloc B: f32[n] local
///   requires: 1. the buffer is allocated  2. the scope is global, shared, warp, local or
///             <target>.<memory>  3. a local or warp buffer is not used in a parallel loop that it
///             is allocated outside of
///   keeps:    everything else
///   source:   TVM TensorIR `set_scope`
struct SetScope {
  Name buffer, scope;
  static constexpr std::string_view name = "set_scope";
  TW_FIELDS(TW_FIELD(SetScope, buffer), TW_FIELD(SetScope, scope))
};
/// Changes how an allocated buffer is laid out; new axes round up, their padding is never read.
///   rewrite:  alloc B: f32[k, c] .. B[i, j]  =>  alloc B: f32[k/16, c, 16] .. B[i/16, j, i%16]
///   requires: 1. the buffer is allocated  2. the map names all its axes (a map that does not parse
///             is a Parse error)  3. its sizes are constant, new indices are never negative and
///             tell elements apart  4. no intrinsic uses it
///   keeps:    values
///   source:   TVM TensorIR `transform_layout`
struct Layout {
  Name buffer;
  std::string map;  // "[k,c] -> [k/16, c, k%16]"; allocated buffers only
  static constexpr std::string_view name = "layout";
  TW_FIELDS(TW_FIELD(Layout, buffer), TW_FIELD(Layout, map))
};
/// Rounds an iteration of a block up to a multiple; staged operands hold zeros there.
///   rewrite:  for T.k in 7 { T[k] = A[k] }  for k in 7 { C += T[k] * U[k] }  =>
///             for T.k in 8 { T[k] = select(k < 7, A[k], 0) }  for k in 8 { C += T[k] * U[k] }
///   requires: 1. 0 < multiple <= 2^31  2. the block is one unguarded store and the iteration one
///             serial loop of its own (pad before split)  3. a space iteration: the result is
///             allocated with the iteration as an axis, its init reads not along it  4. every
///             operand along the iteration is staged by one plain block, over a loop of its own
///             5. a reduction adds products that are zero there; no integer is divided by a value
///   keeps:    the elements the result had
///   source:   TVM TensorIR `pad_einsum`
struct Pad {
  Name block, iter;
  int64_t multiple = 1;
  static constexpr std::string_view name = "pad";
  TW_FIELDS(TW_FIELD(Pad, block), TW_FIELD(Pad, iter), TW_FIELD(Pad, multiple))
};
/// Lets a block write its result over `source`.
///   rewrite:  alloc S alloc Y .. Y[i] = f(S[i]) .. Y[j]  =>  alloc S .. S[i] = f(S[i]) .. S[j]
///   requires: 1. the block is one assignment, the only writer of its result
///             2. result and source are allocated  3. they have the same type, shape and scope
///             4. the block reads the source, only at the index it writes  5. both are allocated in
///             one sequence and every other use of the source is in a statement before the
///             block's
///   keeps:    values
///   source:   results computed in the accumulators of a matrix unit
struct Inplace {
  Name block, source;  // the block's buffer reuses `source`
  static constexpr std::string_view name = "inplace";
  TW_FIELDS(TW_FIELD(Inplace, block), TW_FIELD(Inplace, source))
};
/// Puts sibling statements in another order.
///   rewrite:  { S1 S2 S3 }  =>  { S3 S2 S1 }     (blocks=[in S3, in S1])
///   requires: 1. the blocks are in different statements of one sequence  2. no two statements that
///             change places use the same element, one of them writing
///   keeps:    the instances; allocations move to the front of the sequence
///   source:   the order of loads and computation in one stream
struct Order {
  Names blocks;  // sibling nests in this order
  static constexpr std::string_view name = "order";
  TW_FIELDS(TW_FIELD(Order, blocks))
};
/// Allows the iterations of a loop to run at the same time, on threads.
///   rewrite:  for i in n { S }  =>  for i in n parallel { S }
///   requires: 1. `loop` is serial and not inside a vector loop  2. iterations do not conflict on
///             an element; updates may if the block is marked atomic
///             3. local and warp buffers used inside
///             are allocated inside
///   keeps:    everything
///   source:   dependence tests as in Allen and Kennedy
struct Parallel {
  Name loop;
  static constexpr std::string_view name = "parallel";
  TW_FIELDS(TW_FIELD(Parallel, loop))
};
/// Allows the iterations of an innermost loop to run as lanes of vectors.
///   rewrite:  for i in n { S }  =>  for i in n vector { S }
///   requires: 1. `loop` is serial  2. iterations do not conflict on an element  3. its extent is a
///             positive constant and no loop, allocation or intrinsic is inside
///   keeps:    everything
///   source:   as Parallel
struct Vectorize {
  Name loop;
  static constexpr std::string_view name = "vectorize";
  TW_FIELDS(TW_FIELD(Vectorize, loop))
};
/// Asks for a loop to be unrolled.
///   rewrite:  for i in n { S }  =>  for i in n unroll { S }
///   requires: 1. `loop` is serial  2. its extent is constant
///   keeps:    everything
///   source:   TVM TensorIR `unroll`
struct Unroll {
  Name loop;
  static constexpr std::string_view name = "unroll";
  TW_FIELDS(TW_FIELD(Unroll, loop))
};
/// Sets a mark on a loop, block or allocated buffer; ignoring it never changes a result.
///   rewrite:  for k in n { S }  =>  for k in n @(ii=1) { S }
///   requires: 1. the target is of the kind the mark stands on: loops pipeline, ii, prefetch, port;
///             blocks async, atomic, copies, port; allocations partition, align, pad, copies, slots
///             (unknown marks and values other than an integer or a word are Invalid)
///             2. atomic: the block combines, and does not sum floats
///             in exact math  3. slots is 1 to 8, port not negative, ii at least 1
///             4. ii: all loops inside are unrolled  5. ii: the loop is the only statement in each
///             loop around, up to the one whose body allocates what the loop works on: one counter
///             counts them all  6. ii: unrolled loops inside do not sum floats in exact math
///   keeps:    everything
///   source:   docs/ir.md (marks)
struct SetMark {
  Name target, mark, value;  // loop, block or buffer; value an integer or a word
  static constexpr std::string_view name = "mark";
  TW_FIELDS(TW_FIELD(SetMark, target), TW_FIELD(SetMark, mark), TW_FIELD(SetMark, value))
};
/// Runs the iterations of a loop as blocks of a grid, or as threads of a block, of a GPU.
///   rewrite:  for i in n { S }  =>  for i in n bind(thread.x) { S }
///   requires: 1. `loop` is serial and not inside a vector loop  2. iterations do not conflict on
///             an element; updates may if the block is marked atomic  3. `axis` is block.x,
///             block.y, block.z, thread.x, thread.y or thread.z; no loop around or inside has it,
///             and no block loop is inside a thread loop
///             4. the extent is a positive constant
///   keeps:    everything; sibling nests stay ordered
///   source:   TVM (OSDI 2018) section 4.2; sibling nests in order: docs/gpu.md
struct Bind {
  Name loop, axis;
  static constexpr std::string_view name = "bind";
  TW_FIELDS(TW_FIELD(Bind, loop), TW_FIELD(Bind, axis))
};
/// Shares the iterations of a loop out to all threads of a block (or all of several axes), next
/// ones to neighbours, in as many turns as it takes.
///   rewrite:  for f in n { S }  =>     (axes=[thread.y, thread.x], extents=[a, b])
///             for f.o in ceil(n/(a*b)), f.i.o in a bind(thread.y), f.i.i in b bind(thread.x) { S }
///             with f := f.o*a*b + f.i.o*b + f.i.i, where that is less than n
///   requires: 1. to 3. as Bind, of `loop` and each axis  4. as many extents as axes, all positive,
///             and at least one
///   keeps:    everything; the iterations need to be independent before they are cut, which is
///             easier to see than afterwards
///   source:   TVM (OSDI 2018) section 4.2, cooperative fetching
struct Spread {
  Name loop;
  Names axes;    // outermost first
  Ints extents;  // of those
  static constexpr std::string_view name = "spread";
  TW_FIELDS(TW_FIELD(Spread, loop), TW_FIELD(Spread, axes), TW_FIELD(Spread, extents))
};
/// Runs some statements of a loop's body, its copies, `depth` - 1 iterations ahead of the others;
/// what they fill becomes a ring of `depth` iterations.
///   rewrite:  for t in n { alloc P  for p in c { P[t*c + p] = .. }  .. P[t*c + q] .. }  =>
///             alloc P  for t@pre in depth - 1 { for p@pre in c { P[(t*c + p) % (depth*c)] = .. } }
///             for t in n { if t < n - depth + 1 { for p in c { P[((t + depth - 1)*c + p) % ..] =
///             .. } }  .. P[(t*c + q) % (depth*c)] .. } @(pipeline=depth)
///   requires: 1. `loop` is serial, its extent a constant of at least `depth`, 2 to 64
///             2. each of `copies` is a block in the body of `loop`; other statements remain
///             3. what the copies write is allocated in the body and written by no other statement
///             4. the copies read nothing that other statements of the loop write  5. one axis of
///             each of those buffers moves with `loop`, by at least the window that one iteration
///             uses, in constant steps; regions of intrinsics do not cross the end of a window
///   keeps:    values; the other statements and their order; an element of a ring is written again
///   source:   software pipelining
struct Pipeline {
  Name loop;
  Names copies;  // blocks
  int64_t depth = 2;
  static constexpr std::string_view name = "pipeline";
  TW_FIELDS(TW_FIELD(Pipeline, loop), TW_FIELD(Pipeline, copies), TW_FIELD(Pipeline, depth))
};
/// Replaces a nest by one call of an intrinsic that does the same.
///   rewrite:  for i in 4, j in 4 { block C(x: .. = i) { C[..] += A[..] * B[..] } }  =>
///             block C(..) { call f(C[x*4:+4, ..], A[..], B[..]) }
///   requires: 1. `loop` is the root of a perfect nest of serial or unrolled loops with constant
///             extents around one block, which is one store and not marked atomic; no vector loop
///             around  2. the guard does not depend on the nest (pad or cut first)
///             3. `intrinsic` is the text of one function (one that does not parse is a Parse
///             error): one nest of such loops around one unguarded store, without scalars and
///             tables; it uses all of each parameter, sets or updates all of its result and reads
///             that only where it writes; its name is new or that of an equal function
///             4. the loops of both correspond, with equal extents (loops of extent 1 aside)
///             5. so do the types of all operands and how the result is combined  6. so do the
///             values, up to the order of commutative operands (and associative ones of
///             integers): what the nest reads and writes of a buffer is a region whose axes are
///             those of the parameter, in order (axes of size 1 aside), the written one is not
///             read as another operand, and one that is read under a condition lies in its
///             buffer anyway  7. sums of floats keep their order in exact math
///   keeps:    values, marks, the guard; iterations that other loops decide, counted in tiles
///   source:   TVM TensorIR `tensorize`; matching: match.h
struct Tensorize {
  Name loop;
  std::string intrinsic;  // text of the function called; its body is its meaning
  static constexpr std::string_view name = "tensorize";
  TW_FIELDS(TW_FIELD(Tensorize, loop), TW_FIELD(Tensorize, intrinsic))
};

/// Lets a block read or write a buffer through blocks of memory on the chip of an FPGA: a channel
/// between what fills them and what empties them.
///   rewrite:  for t { for i { .. B[i] .. } }  =>
///             for t { alloc T: fpga.bram @(slots=2)  for T.a0 { T[..] = B[..] }  for i { .. T[i] }
///             } (copy=T, memory=bram, slots=2)
///   requires: 1. as CacheRead; where the block writes the buffer, as CacheWrite  2. the memory is
///             bram, uram, lutram or reg  3. 1 <= slots <= 8  4. what is copied has a constant size
///   keeps:    whole-tensor coordinates; the pipeline `fpga` shrinks what is held to a tile
///   source:   FlexTensor (ASPLOS 2020) `buffer`
struct FpgaBuffer {
  Name block, buffer, copy, loop, memory;
  int64_t slots = 2;
  static constexpr std::string_view name = "buffer";
  TW_FIELDS(TW_FIELD(FpgaBuffer, block), TW_FIELD(FpgaBuffer, buffer), TW_FIELD(FpgaBuffer, copy),
            TW_FIELD(FpgaBuffer, loop), TW_FIELD(FpgaBuffer, memory), TW_FIELD(FpgaBuffer, slots))
};
/// Runs what is in a loop as processes at the same time, connected by channels: allocations with
/// mark `slots`. Blocks that write the same channel or the same buffer outside of the chip, or use
/// the same buffer without slots, are one process; so are reads of the same parameters through the
/// same `port` (lower/processes.h).
///   rewrite:  for t in n { S }  =>  for t in n { S } @(pipeline=dataflow)
///   requires: 1. the loop is serial and outermost, but for parallel loops without other statements
///             2. every channel inside is written by one process and read by exactly one other
///             3. in each life of a block all writes stand before all reads of the other process
///             4. no process reads or writes a buffer outside of the chip that another writes
///             5. conditions around a channel read nothing that only one process has (what they and
///             extents depend on is in all slices)  6. channels lead forward: processes have an
///             order  7. no reader waits for a block while it, or one that waits for it, has to
///             empty channels inside of that block's life for the writer to come to its end
///             8. no other nest uses a buffer on the chip that is used inside
///   keeps:    everything; for all numbers of slots the processes end with the same values
///   source:   FlexTensor (ASPLOS 2020) `pipeline`; Kahn process networks
struct Dataflow {
  Name loop;
  static constexpr std::string_view name = "dataflow";
  TW_FIELDS(TW_FIELD(Dataflow, loop))
};
/// Divides a buffer on the chip of an FPGA into banks, which are used at the same time.
///   rewrite:  alloc T: f32[32,8] fpga.bram  =>  alloc T: f32[32,8] fpga.bram @(partition=c16_f)
///   requires: 1. the buffer is allocated in a memory `fpga.*`  2. one part for each axis, joined
///   by
///             `_`: cN for N banks, cyclic; bN for N blocks; f for a bank per element
///             3. 1 <= N <= extent of the axis, as far as it is used at a time
///             4. at most 4096 banks
///   keeps:    everything
///   source:   FlexTensor (ASPLOS 2020) `partition`
struct Partition {
  Name buffer, factors;
  static constexpr std::string_view name = "partition";
  TW_FIELDS(TW_FIELD(Partition, buffer), TW_FIELD(Partition, factors))
};

using Step = std::variant<Split, Fuse, Reorder, Cut, ComputeAt, ReverseComputeAt, Inline, CacheRead,
                          CacheWrite, Reindex, Merge, Divide, Slide, RFactor, SetScope, Layout, Pad,
                          Inplace, Order, Parallel, Vectorize, Unroll, SetMark, Bind, Spread,
                          Pipeline, Tensorize, FpgaBuffer, Dataflow, Partition>;

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
