#include "tilewright/accel/fpga/rtl/ice40_netlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tilewright/base/json.h"

namespace tilewright::fpga {
namespace {

using nlohmann::json;

auto no_netlist(const std::string& why) {
  return fail(ErrorKind::Tool, "Yosys wrote no netlist that can be read", why,
              "install a newer yosys");
}
auto unknown(const std::string& cell, const std::string& why) {
  return fail(ErrorKind::Unsupported, fmt::format("the netlist's cell {} is not simulated", cell),
              why);
}

/// Nets of the constants, and of outputs that nobody reads.
constexpr int kNowhere = 2, kFirstNet = 3;
/// The net of a bit: constants are words, unknown ones 0.
int net_of(const json& bit) {
  if (bit.is_number_unsigned()) return bit.get<int>() + kFirstNet;
  return bit == "1" ? 1 : 0;
}

/// What a carry is as a table of its three inputs.
constexpr uint32_t kCarry = 0xe8;

template <size_t kIn>
std::array<uint8_t, kIn> gather(const std::vector<uint8_t>& bits,
                                const std::array<int, kIn>& nets) {
  std::array<uint8_t, kIn> in;
  for (size_t i = 0; i < kIn; ++i) in[i] = bits[static_cast<size_t>(nets[i])];
  return in;
}

}  // namespace

/// Fills in a netlist; the JSON is checked as it is read.
class Ice40Reader {
 public:
  explicit Ice40Reader(Ice40Netlist& out) : out_(out) {}

  Status run(const json& module, const std::string& clock) {
    if (!module.is_object() || !module.contains("ports") || !module.contains("cells"))
      return no_netlist("it has no such module");
    for (const auto& [name, port] : module["ports"].items()) {
      std::vector<int> nets;
      for (const json& bit : port.at("bits")) nets.push_back(seen(net_of(bit)));
      if (name == clock && nets.size() == 1) clock_ = nets[0];
      out_.ports_.emplace_back(name, nets);
    }
    for (const auto& [name, cell] : module["cells"].items()) TW_TRY_STATUS(add(name, cell));
    out_.bits_.assign(static_cast<size_t>(nets_), 0);
    out_.bits_[1] = 1;
    return order();
  }

 private:
  int seen(int net) {
    nets_ = std::max(nets_, net + 1);
    return net;
  }
  /// The net at bit `at` of a port.
  int net(const json& cell, const std::string& port, size_t at, bool otherwise) {
    const json& connections = cell.at("connections");
    const auto found = connections.find(port);
    if (found == connections.end() || found->size() <= at) return otherwise ? 1 : 0;
    return seen(net_of((*found)[at]));
  }

  Status add(const std::string& name, const json& cell) {
    const std::string type = cell.at("type").get<std::string>();
    if (type == "SB_LUT4") {
      Ice40Netlist::Step step;
      for (size_t i = 0; i < 4; ++i) step.in[i] = net(cell, fmt::format("I{}", i), 0, false);
      step.out = output(cell, "O", 0);
      step.table = static_cast<uint32_t>(
          std::stoul(cell.at("parameters").at("LUT_INIT").get<std::string>(), nullptr, 2));
      steps_.push_back(step);
    } else if (type == "SB_CARRY") {
      steps_.push_back(
          {{net(cell, "I0", 0, false), net(cell, "I1", 0, false), net(cell, "CI", 0, false), 0},
           output(cell, "CO", 0),
           kCarry});
    } else if (type.rfind("SB_DFF", 0) == 0) {
      return add_register(name, type.substr(6), cell);
    } else if (type == "SB_RAM40_4K") {
      return add_block(name, cell, out_.rams_);
    } else if (type == "SB_SPRAM256KA") {
      return add_block(name, cell, out_.sprams_);
    } else if (type == "SB_MAC16") {
      for (const char* reset : {"IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT"})
        if (net(cell, reset, 0, false) != 0) return unknown(name, "it has an asynchronous reset");
      return add_block(name, cell, out_.macs_);
    } else {
      return unknown(name, type);
    }
    return {};
  }

  /// `kind`: what follows SB_DFF: E with enable, SR and SS with a reset to 0 and 1.
  Status add_register(const std::string& name, std::string kind, const json& cell) {
    Ice40Netlist::Register made;
    made.d = net(cell, "D", 0, false);
    made.q = output(cell, "Q", 0);
    if (!kind.empty() && kind[0] == 'E') {
      made.enable = net(cell, "E", 0, true);
      kind.erase(0, 1);
    }
    if (kind == "SR" || kind == "SS") {
      made.to_one = kind == "SS";
      made.reset = net(cell, made.to_one ? "S" : "R", 0, false);
      kind.clear();
    }
    if (!kind.empty()) return unknown(name, cell.at("type").get<std::string>());
    if (net(cell, "C", 0, false) != clock_) return unknown(name, "it has another clock");
    out_.registers_.push_back(made);
    return {};
  }

  template <class T, size_t kIn, size_t kOut>
  Status add_block(const std::string& name, const json& cell,
                   std::vector<Ice40Netlist::Block<T, kIn, kOut>>& to) {
    const json none = json::object();
    const json& parameters = cell.contains("parameters") ? cell["parameters"] : none;
    Ice40Netlist::Block<T, kIn, kOut> block{
        T([&](const std::string& p) { return parameters.value(p, std::string()); }), {}, {}, true};
    for (const char* clock : T::kClocks)
      if (const int of = net(cell, clock, 0, false); of != clock_ && of != 0)
        return unknown(name, "it has another clock");
    size_t in = 0, out = 0;
    for (const Ice40Port& port : T::inputs())
      for (int bit = 0; bit < port.bits; ++bit)
        block.in[in++] = net(cell, port.name, static_cast<size_t>(bit), port.otherwise);
    for (const Ice40Port& port : T::outputs())
      for (int bit = 0; bit < port.bits; ++bit)
        block.out[out++] = output(cell, port.name, static_cast<size_t>(bit));
    to.push_back(std::move(block));
    return {};
  }

  /// The net that an output drives; where nothing is connected, one that nobody reads.
  int output(const json& cell, const std::string& port, size_t at) {
    const json& connections = cell.at("connections");
    const auto found = connections.find(port);
    if (found == connections.end() || found->size() <= at || !(*found)[at].is_number_unsigned())
      return kNowhere;
    return seen(net_of((*found)[at]));
  }

  /// Steps in an order in which each comes behind those that it reads.
  Status order() {
    for (size_t i = 0; i < out_.macs_.size(); ++i) {
      Ice40Netlist::Mac& mac = out_.macs_[i];
      mac.at_edge =
          mac.cell.registered() && std::all_of(mac.out.begin() + Ice40Mac::kResult, mac.out.end(),
                                               [](int net) { return net == kNowhere; });
      if (!mac.at_edge)
        steps_.push_back({{}, kNowhere, Ice40Netlist::kMac + static_cast<uint32_t>(i)});
    }
    const auto nets = static_cast<size_t>(nets_);
    std::vector<std::vector<size_t>> readers(nets);
    std::vector<int> waits(steps_.size(), 0), driver(nets, -1);
    const auto outputs = [&](const Ice40Netlist::Step& step, const auto& visit) {
      if (step.table < Ice40Netlist::kMac) return visit(step.out);
      for (const int net : out_.macs_[step.table - Ice40Netlist::kMac].out) visit(net);
    };
    for (size_t i = 0; i < steps_.size(); ++i)
      outputs(steps_[i], [&](int net) {
        if (net != kNowhere) driver[static_cast<size_t>(net)] = static_cast<int>(i);
      });
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto reads = [&](int net) {
        if (net < 2 || driver[static_cast<size_t>(net)] < 0) return;
        readers[static_cast<size_t>(net)].push_back(i);
        ++waits[i];
      };
      if (steps_[i].table < Ice40Netlist::kMac)
        for (const int net : steps_[i].in) reads(net);
      else
        for (const int net : out_.macs_[steps_[i].table - Ice40Netlist::kMac].in) reads(net);
    }
    std::vector<size_t> ready;
    for (size_t i = 0; i < steps_.size(); ++i)
      if (waits[i] == 0) ready.push_back(i);
    for (size_t next = 0; next < ready.size(); ++next) {
      const Ice40Netlist::Step& step = steps_[ready[next]];
      out_.steps_.push_back(step);
      outputs(step, [&](int net) {
        if (net == kNowhere) return;
        for (const size_t reader : readers[static_cast<size_t>(net)])
          if (--waits[reader] == 0) ready.push_back(reader);
      });
    }
    if (ready.size() != steps_.size()) return unknown("", "there is a loop without a register");
    return {};
  }

  Ice40Netlist& out_;
  std::vector<Ice40Netlist::Step> steps_;
  int nets_ = kFirstNet, clock_ = -1;
};

Result<Ice40Netlist> Ice40Netlist::read(std::string_view text, const std::string& top,
                                        const std::string& clock) {
  const json all = parse_json(text, std::nothrow);
  if (!all.is_object() || !all.contains("modules") || !all["modules"].contains(top))
    return no_netlist(fmt::format("it has no module {}", top));
  Ice40Netlist netlist;
  try {
    TW_TRY_STATUS(Ice40Reader(netlist).run(all["modules"][top], clock));
  } catch (const std::exception& problem) {  // of the JSON: a member is missing or another type
    return no_netlist(problem.what());
  }
  netlist.connect();
  for (const auto& ram : netlist.rams_) netlist.put(ram);
  for (const auto& ram : netlist.sprams_) netlist.put(ram);
  netlist.settle();
  return netlist;
}

std::vector<int> Ice40Netlist::port(const std::string& name) const {
  for (const auto& [own, bits] : ports_)
    if (own == name) return bits;
  return {};
}

void Ice40Netlist::connect() {
  std::vector<std::vector<uint32_t>> readers(bits_.size());
  const auto reads = [&](int net, size_t step) {
    std::vector<uint32_t>& of = readers[static_cast<size_t>(net)];
    if (of.empty() || of.back() != step) of.push_back(static_cast<uint32_t>(step));
  };
  changed_.assign(steps_.size() / 64 + 1, 0);
  for (size_t i = 0; i < steps_.size(); ++i) {
    mark(static_cast<uint32_t>(i));
    if (steps_[i].table < kMac) {
      for (const int net : steps_[i].in) reads(net, i);
      continue;
    }
    mac_steps_.push_back(static_cast<uint32_t>(i));
    for (const int net : macs_[steps_[i].table - kMac].in) reads(net, i);
  }
  for (const std::vector<uint32_t>& of : readers) {
    first_reader_.push_back(static_cast<uint32_t>(readers_.size()));
    readers_.insert(readers_.end(), of.begin(), of.end());
  }
  first_reader_.push_back(static_cast<uint32_t>(readers_.size()));
}

void Ice40Netlist::change(int net, uint8_t value) {
  const auto n = static_cast<size_t>(net);
  if (bits_[n] == value) return;
  bits_[n] = value;
  for (uint32_t r = first_reader_[n]; r < first_reader_[n + 1]; ++r) mark(readers_[r]);
}

template <class B>
void Ice40Netlist::put(const B& block) {
  const uint64_t out = block.cell.out(gather(bits_, block.in));
  for (size_t i = 0; i < block.out.size(); ++i)
    if (block.out[i] != kNowhere) change(block.out[i], static_cast<uint8_t>(out >> i & 1));
}

void Ice40Netlist::compute(const Step& step) {
  if (step.table >= kMac) return put(macs_[step.table - kMac]);
  const auto bit = [&](size_t i) { return unsigned{bits_[static_cast<size_t>(step.in[i])]}; };
  const unsigned place = bit(0) | bit(1) << 1 | bit(2) << 2 | bit(3) << 3;
  change(step.out, static_cast<uint8_t>(step.table >> place & 1));
}

void Ice40Netlist::settle() {
  for (size_t word = 0; word < changed_.size(); ++word)
    while (changed_[word] != 0) {  // what reads a step comes behind it
      const auto at = static_cast<size_t>(std::countr_zero(changed_[word]));
      changed_[word] &= changed_[word] - 1;
      compute(steps_[64 * word + at]);
    }
}

void Ice40Netlist::tick() {
  const auto bit = [this](int net) { return bits_[static_cast<size_t>(net)]; };
  for (Register& one : registers_)
    one.next = bit(one.enable) == 0  ? bit(one.q)
               : bit(one.reset) != 0 ? static_cast<uint8_t>(one.to_one ? 1 : 0)
                                     : bit(one.d);
  for (auto& ram : rams_) ram.cell.edge(gather(bits_, ram.in));
  for (auto& ram : sprams_) ram.cell.edge(gather(bits_, ram.in));
  for (Mac& mac : macs_) mac.cell.edge(gather(bits_, mac.in));
  for (const Register& one : registers_) change(one.q, one.next);
  for (const auto& ram : rams_) put(ram);
  for (const auto& ram : sprams_) put(ram);
  for (const Mac& mac : macs_)
    if (mac.at_edge) put(mac);
  for (const uint32_t step : mac_steps_) mark(step);
  settle();
}

}  // namespace tilewright::fpga
