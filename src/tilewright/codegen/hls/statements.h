// Statements of a process as C++.
#pragma once

#include <map>
#include <string>

#include "tilewright/codegen/common/expr_writer.h"
#include "tilewright/codegen/hls/hls.h"

namespace tilewright::codegen {

/// What all functions of one kernel share.
struct HlsScope {
  HlsDialect dialect = HlsDialect::Vitis;
  CNames names;
  CExprWriter::Strides strides;
  std::map<Buffer, int> widths;  ///< of integers on chip that need fewer bits than their type
  arith::Bounds bounds;          ///< of the scalars
};

/// Elements of ports and of memories on chip.
class HlsExprs : public CExprWriter {
 public:
  /// `ports`: by what name this function knows the memories outside of the chip.
  HlsExprs(HlsScope& scope, std::map<Buffer, std::string> ports);
  std::string element(const Buffer& buffer, const std::vector<Expr>& indices, CText& out) override;
  void assign(const Buffer& buffer, const std::vector<Expr>& indices, const std::string& text,
              CText& out) override;

 private:
  std::string place(const Buffer& buffer, const std::vector<Expr>& indices, CText& out);

  HlsScope& scope_;
  std::map<Buffer, std::string> ports_;
};

/// Whether `id` stands in `text` as a word.
bool mentions(const std::string& text, const std::string& id);
/// The type of one element of a memory on chip.
std::string hls_element_type(const HlsScope& scope, const Buffer& buffer);
/// `[16][30]`. errors: Unsupported (an extent without an upper bound).
Result<std::string> hls_array_axes(const Buffer& buffer, const arith::Bounds& bounds);

/// Pragmas for the banks of memory `id`, none without the mark `partition`. errors: Invalid.
Result<std::vector<std::string>> hls_partitions(const Alloc& alloc, const std::string& id);

/// How this function uses a channel.
struct HlsLock {
  std::string parameter;  ///< the channel's name as an argument
  std::string type;       ///< of a block
  bool writes = false;
};

struct HlsProcessText {
  const std::map<Buffer, HlsLock>* locks = nullptr;
  /// Allocations that are memory outside of the chip.
  const std::map<Buffer, std::string>* ports = nullptr;
};
/// The statements of `body`. errors: Unsupported.
Status write_hls_statements(const Stmt& body, HlsScope& scope, const HlsProcessText& process,
                            CText& out);

}  // namespace tilewright::codegen
