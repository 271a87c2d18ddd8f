#include "tilewright/lower/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/process_graph.h"

namespace tilewright::lower {
namespace {

constexpr std::string_view kProcessKinds[] = {"read", "compute", "write"};

bool is_dataflow(const Stmt& s) {
  const auto* loop = s.as<For>();
  const Mark* mark = loop != nullptr ? find_mark(loop->marks, MarkKind::Pipeline) : nullptr;
  const auto* value = mark != nullptr ? std::get_if<std::string>(&mark->value) : nullptr;
  return value != nullptr && *value == "dataflow";
}

std::vector<const For*> dataflow_loops(const Stmt& s) {
  std::vector<const For*> loops;
  walk(s, [&](const Stmt& x) {
    if (is_dataflow(x)) loops.push_back(x.as<For>());
  });
  return loops;
}

/// Whether an outermost statement is a region. errors: Unsupported (requirement 1).
Result<bool> is_region(const Stmt& s) {
  const std::vector<const For*> loops = dataflow_loops(s);
  if (loops.empty()) return false;
  if (loops.size() > 1)
    return not_dataflow(1, fmt::format("loops {} and {} are in one nest", loops[0]->var.name(),
                                       loops[1]->var.name()));
  Stmt top = s;
  if (const auto* list = s.as<Seq>()) top = list->stmts.back();  // behind what `place` moved
  while (!is_dataflow(top)) {
    const auto* loop = top.as<For>();
    if (loop == nullptr || loop->kind != ForKind::Parallel)
      return not_dataflow(1, fmt::format("loop {} is not outermost: around it may only be loops "
                                         "of kind parallel, without other statements",
                                         loops[0]->var.name()));
    top = loop->body;
  }
  if (top.as<For>()->kind != ForKind::Serial)
    return not_dataflow(
        1, fmt::format("loop {} is {}", loops[0]->var.name(), name(top.as<For>()->kind)));
  return true;
}

/// Buffers of `leaves`, without those in `inside`, in order of first use.
std::vector<Buffer> in_memory(const Survey& survey, const std::vector<bool>& mine,
                              const std::set<Buffer>& inside, bool written) {
  std::vector<Buffer> all;
  auto add = [&](const std::vector<Buffer>& some) {
    for (const Buffer& b : some)
      if (!inside.contains(b) && std::find(all.begin(), all.end(), b) == all.end())
        all.push_back(b);
  };
  for (size_t i = 0; i < survey.leaves.size(); ++i) {
    const Leaf& leaf = survey.leaves[i];
    if (!mine[i]) continue;
    add(written ? leaf.writes : leaf.reads);
    if (!written && leaf.combines) add(leaf.writes);
  }
  return all;
}

class ProcessMaker {
 public:
  explicit ProcessMaker(const Func& func) : func_(func) {}

  Result<ProcessProgram> run() {
    const auto* list = func_.body.as<Seq>();
    const std::vector<Stmt> top = list != nullptr ? list->stmts : std::vector<Stmt>{func_.body};
    std::vector<Stmt> allocs, nests;
    for (const Stmt& s : top) (s.as<Alloc>() ? allocs : nests).push_back(s);
    std::reverse(allocs.begin(), allocs.end());
    for (const Stmt& alloc : allocs) TW_TRY_STATUS(place(alloc, nests));
    std::reverse(out_.scratch.begin(), out_.scratch.end());
    for (const Stmt& nest : nests) {
      Result<DataflowRegion> region = make_region(nest);
      if (!region) return tl::unexpected<Error>(std::move(region.error()));
      if (!region->processes.empty()) out_.regions.push_back(std::move(*region));
    }
    return std::move(out_);
  }

 private:
  /// A buffer that only one region uses and that lies on the chip moves into it.
  Status place(const Stmt& alloc, std::vector<Stmt>& nests) {
    const Buffer& buffer = alloc.as<Alloc>()->buffer;
    std::vector<size_t> users;
    for (size_t i = 0; i < nests.size(); ++i) {
      bool used = false;
      for (const Leaf& leaf : survey(nests[i]).leaves)
        for (const auto* some : {&leaf.reads, &leaf.writes})
          used |= std::find(some->begin(), some->end(), buffer) != some->end();
      if (used) users.push_back(i);
    }
    if (users.empty()) return {};
    if (fpga_memory(buffer.scope()).empty()) {
      out_.scratch.push_back(buffer);
    } else if (users.size() == 1) {
      nests[users[0]] = seq({alloc, nests[users[0]]});
    } else {
      return fail(ErrorKind::Unsupported,
                  fmt::format("{} of scope {} is used by {} nests that run one after the other",
                              buffer.name(), buffer.scope(), users.size()),
                  "what is on the chip lives in one of them", "put a loop around them");
    }
    return {};
  }

  Result<DataflowRegion> make_region(const Stmt& nest) {
    const bool dataflow = TW_TRY(is_region(nest));
    const Survey found = survey(nest);
    DataflowRegion region;
    if (found.leaves.empty()) return region;
    ProcessGraph graph;
    if (dataflow) {
      graph = TW_TRY(process_graph(found));
    } else {
      graph.process_of_leaf.assign(found.leaves.size(), 0);
      graph.kinds = {ProcessKind::Compute};
    }
    region.channels = graph.channels;
    for (size_t p = 0; p < graph.kinds.size(); ++p)
      region.processes.push_back(make_process(nest, found, graph, static_cast<int>(p)));
    return region;
  }

  Process make_process(const Stmt& nest, const Survey& found, const ProcessGraph& graph, int p) {
    std::vector<bool> mine;
    for (const int q : graph.process_of_leaf) mine.push_back(q == p);
    std::set<Buffer> inside, kept;
    for (const Home& home : found.homes) inside.insert(home.alloc->buffer);
    for (const bool written : {false, true})
      for (const Buffer& b : in_memory(found, mine, {}, written))
        if (inside.contains(b)) kept.insert(b);
    Process process;
    process.kind = graph.kinds[p];
    process.body = slice_of(nest, mine, kept);
    process.reads = in_memory(found, mine, inside, false);
    process.writes = in_memory(found, mine, inside, true);
    process.name = fresh_name(process);
    return process;
  }

  std::string fresh_name(const Process& process) {
    std::string base(name(process.kind));
    if (process.kind == ProcessKind::Read) base += "_" + process.reads.front().name();
    if (process.kind == ProcessKind::Write) base += "_" + process.writes.front().name();
    std::string fresh = base;
    for (int n = 2; !names_.insert(fresh).second; ++n) fresh = fmt::format("{}_{}", base, n);
    return fresh;
  }

  const Func& func_;
  ProcessProgram out_;
  std::set<std::string> names_;
};

}  // namespace

std::string_view name(ProcessKind kind) { return kProcessKinds[static_cast<int>(kind)]; }

Result<ProcessProgram> processes_of(const Func& func) { return ProcessMaker(func).run(); }

}  // namespace tilewright::lower
