#include "tilewright/runtime/host_op.h"
namespace tilewright::runtime {
HostResult top_k(const HostAttrs&, const HostInputs&) { return fail(ErrorKind::Unsupported, ""); }
HostResult non_max_suppression(const HostAttrs&, const HostInputs&) { return fail(ErrorKind::Unsupported, ""); }
HostResult unique(const HostAttrs&, const HostInputs&) { return fail(ErrorKind::Unsupported, ""); }
HostResult scatter_elements(const HostAttrs&, const HostInputs&) { return fail(ErrorKind::Unsupported, ""); }
HostResult scatter_nd(const HostAttrs&, const HostInputs&) { return fail(ErrorKind::Unsupported, ""); }
}
