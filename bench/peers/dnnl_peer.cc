// A sequence of layers through oneDNN, for Python's ctypes. Layouts are oneDNN's choice: weights
// are brought into them before the first run, reorders between layers are part of a run. The input
// of the first layer and the result are in its layout too, or, with `row_major`, as other peers
// have them; then their reorders are part of a run. Builds against versions 2 and 3.
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Dims = memory::dims;
using Args = std::unordered_map<int, memory>;

constexpr auto kF32 = memory::data_type::f32;
constexpr auto kInference = dnnl::prop_kind::forward_inference;

#if DNNL_VERSION_MAJOR >= 3
Dims get_dims(const memory::desc& desc) { return desc.get_dims(); }
#else
Dims get_dims(const memory::desc& desc) { return desc.dims(); }
#endif

struct Step {
  dnnl::primitive primitive;
  Args args;
};

struct Peer {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<Step> steps;
  memory input, value;  // of the whole sequence; of the layer added last
  Dims shape;
  bool row_major = false;  // input and result of the sequence
  std::string detail, error;

  memory reordered(memory from, const memory::desc& to) {
    memory result(to, engine);
    dnnl::reorder(from, result).execute(stream, from, result);
    stream.wait();
    return result;
  }

  memory plain(const Dims& dims, Tag tag, const float* data) {
    memory result({dims, kF32, tag}, engine);
    std::memcpy(result.get_data_handle(), data, result.get_desc().get_size());
    return result;
  }

  static memory::desc row_major_desc(const Dims& dims) {
    return {dims, kF32, dims.size() == 4 ? Tag::nchw : Tag::ab};
  }

  // `from` as `wanted`; a reorder becomes part of a run.
  memory laid_out(const memory& from, const memory::desc& wanted) {
    if (from.get_desc() == wanted) return from;
    memory to(wanted, engine);
    steps.push_back({dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}});
    return to;
  }

  // The layer's source: unless it is row-major, the first one is in the layout liked best.
  memory source(const memory::desc& wanted) {
    if (value) return laid_out(value, wanted);
    input = memory(row_major ? row_major_desc(get_dims(wanted)) : wanted, engine);
    return laid_out(input, wanted);
  }

  void add(dnnl::primitive primitive, Args args, const memory& result, const char* implementation) {
    args[DNNL_ARG_DST] = result;
    steps.push_back({std::move(primitive), std::move(args)});
    value = result;
    shape = get_dims(result.get_desc());
    detail += std::string(detail.empty() ? "" : ", ") + implementation;
  }

  memory::desc current(Tag fallback) const {
    return value ? value.get_desc() : memory::desc(shape, kF32, fallback);
  }
};

dnnl::primitive_attr with_relu(bool relu) {
  dnnl::primitive_attr attr;
  if (relu) {
    dnnl::post_ops ops;
#if DNNL_VERSION_MAJOR >= 3
    ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.f, 0.f);
#else
    ops.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
#endif
    attr.set_post_ops(ops);
  }
  return attr;
}

template <typename F>
int guarded(Peer* peer, F f) {
  try {
    f(*peer);
    return 0;
  } catch (const std::exception& e) {
    peer->error = e.what();
    return 1;
  }
}

}  // namespace

extern "C" {

const char* dp_version() {
  static const std::string text = [] {
    const dnnl_version_t* v = dnnl_version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
           std::to_string(v->patch);
  }();
  return text.c_str();
}

// Null where oneDNN finds no CPU; dp_failure then says why.
static std::string g_failure;
const char* dp_failure() { return g_failure.c_str(); }

Peer* dp_create(const int64_t* shape, int rank, int row_major) {
  try {
    auto peer = std::make_unique<Peer>();
    peer->row_major = row_major != 0;
    peer->shape.assign(shape, shape + rank);
    return peer.release();
  } catch (const std::exception& e) {
    g_failure = e.what();
    return nullptr;
  }
}
void dp_free(Peer* peer) { delete peer; }
const char* dp_error(const Peer* peer) { return peer->error.c_str(); }
const char* dp_detail(const Peer* peer) { return peer->detail.c_str(); }

// p: out channels, kernel h w, stride h w, padding h w, dilation h w (1: dense), groups.
// algorithm: 0 auto, 1 direct, 2 Winograd. Nothing is added where it fails.
int dp_conv(Peer* handle, const int64_t* p, const float* weights, const float* bias, int relu,
            int algorithm) {
  return guarded(handle, [&](Peer& peer) {
    using dnnl::convolution_forward;
    const dnnl::algorithm algorithms[] = {dnnl::algorithm::convolution_auto,
                                          dnnl::algorithm::convolution_direct,
                                          dnnl::algorithm::convolution_winograd};
    const Dims& in = peer.shape;
    const int64_t groups = p[9];
    Dims out = {in[0], p[0], 0, 0}, stride, dilation, pad;
    for (int d = 0; d < 2; ++d) {
      const int64_t taps = p[7 + d] * (p[1 + d] - 1) + 1;
      out[2 + d] = (in[2 + d] + 2 * p[5 + d] - taps) / p[3 + d] + 1;
      stride.push_back(p[3 + d]);
      pad.push_back(p[5 + d]);
      dilation.push_back(p[7 + d] - 1);
    }
    Dims filter = {p[0], in[1] / groups, p[1], p[2]};
    if (groups > 1) filter = {groups, p[0] / groups, in[1] / groups, p[1], p[2]};
    const memory::desc src(in, kF32, Tag::any), dst(out, kF32, Tag::any);
    const memory::desc wei(filter, kF32, Tag::any), bia({p[0]}, kF32, Tag::x);
    const dnnl::algorithm how = algorithms[algorithm];
#if DNNL_VERSION_MAJOR >= 3
    const convolution_forward::primitive_desc pd(peer.engine, kInference, how, src, wei, bia, dst,
                                                 stride, dilation, pad, pad, with_relu(relu));
#else
    const convolution_forward::primitive_desc pd(
        {kInference, how, src, wei, bia, dst, stride, dilation, pad, pad}, with_relu(relu),
        peer.engine);
#endif
    const memory w = peer.reordered(
        peer.plain(filter, groups > 1 ? Tag::goihw : Tag::oihw, weights), pd.weights_desc());
    const memory b = peer.plain({p[0]}, Tag::x, bias);
    const memory from = peer.source(pd.src_desc());
    peer.add(convolution_forward(pd),
             {{DNNL_ARG_SRC, from}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_BIAS, b}},
             memory(pd.dst_desc(), peer.engine), pd.impl_info_str());
  });
}

// p: kernel h w, stride h w, padding h w. Maximum.
int dp_pool(Peer* handle, const int64_t* p) {
  return guarded(handle, [&](Peer& peer) {
    using dnnl::pooling_forward;
    const Dims& in = peer.shape;
    Dims out = {in[0], in[1], 0, 0};
    for (int d = 0; d < 2; ++d) out[2 + d] = (in[2 + d] + 2 * p[4 + d] - p[d]) / p[2 + d] + 1;
    const Dims kernel = {p[0], p[1]}, stride = {p[2], p[3]}, pad = {p[4], p[5]};
    const memory::desc src = peer.current(Tag::nchw), dst(out, kF32, Tag::any);
    const auto how = dnnl::algorithm::pooling_max;
#if DNNL_VERSION_MAJOR >= 3
    const pooling_forward::primitive_desc pd(peer.engine, kInference, how, src, dst, stride, kernel,
                                             {0, 0}, pad, pad);
#else
    const pooling_forward::primitive_desc pd({kInference, how, src, dst, stride, kernel, pad, pad},
                                             peer.engine);
#endif
    peer.add(pooling_forward(pd), {{DNNL_ARG_SRC, peer.source(src)}},
             memory(pd.dst_desc(), peer.engine), pd.impl_info_str());
  });
}

// [m, k] x [k, n], the right operand fixed.
int dp_gemm(Peer* handle, int64_t n, const float* weights) {
  return guarded(handle, [&](Peer& peer) {
    const int64_t m = peer.shape[0], k = peer.shape[1];
    const memory::desc src({m, k}, kF32, Tag::any), wei({k, n}, kF32, Tag::any);
    const memory::desc dst({m, n}, kF32, Tag::any);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc pd(peer.engine, src, wei, dst);
#else
    const dnnl::matmul::primitive_desc pd({src, wei, dst}, peer.engine);
#endif
    const memory w = peer.reordered(peer.plain({k, n}, Tag::ab, weights), pd.weights_desc());
    peer.add(dnnl::matmul(pd), {{DNNL_ARG_SRC, peer.source(pd.src_desc())}, {DNNL_ARG_WEIGHTS, w}},
             memory(pd.dst_desc(), peer.engine), pd.impl_info_str());
  });
}

// After the last layer.
int dp_finish(Peer* handle) {
  return guarded(handle, [&](Peer& peer) {
    if (peer.row_major) peer.value = peer.laid_out(peer.value, Peer::row_major_desc(peer.shape));
  });
}

// After dp_finish: `data` is row-major.
int dp_set_input(Peer* handle, const float* data) {
  return guarded(handle, [&](Peer& peer) {
    const Dims dims = get_dims(peer.input.get_desc());
    if (peer.row_major) {
      std::memcpy(peer.input.get_data_handle(), data, peer.input.get_desc().get_size());
      return;
    }
    memory from = peer.plain(dims, dims.size() == 4 ? Tag::nchw : Tag::ab, data);
    dnnl::reorder(from, peer.input).execute(peer.stream, from, peer.input);
    peer.stream.wait();
  });
}

int dp_run(Peer* handle) {
  return guarded(handle, [&](Peer& peer) {
    for (Step& step : peer.steps) step.primitive.execute(peer.stream, step.args);
    peer.stream.wait();
  });
}

// Row-major.
int dp_output(Peer* handle, float* data) {
  return guarded(handle, [&](Peer& peer) {
    const Dims& dims = peer.shape;
    const memory to = peer.reordered(peer.value, Peer::row_major_desc(dims));
    std::memcpy(data, to.get_data_handle(), to.get_desc().get_size());
  });
}

}  // extern "C"
