#include "tilewright/accel/common/program_bytes.h"

namespace tilewright::accel {

Status read_signature(ByteReader& in, std::string_view signature, std::string_view what) {
  const Result<std::string_view> found = in.take(signature.size(), "the signature");
  if (found && *found == signature) return {};
  return fail(ErrorKind::Parse, fmt::format("not a {}", what),
              fmt::format("the signature `{}` is not there", signature),
              "compile the program again");
}

void put_end(std::string& out, const Image& image) {
  put_bytes(out, image.producer);
  put_bytes(out, image.info);
}

Status read_end(ByteReader& in, std::string_view what, Image& image) {
  image.producer = TW_TRY(in.bytes("the producer"));
  image.info = TW_TRY(in.bytes("the information"));
  if (in.left() == 0) return {};
  return fail(ErrorKind::Parse,
              fmt::format("{} bytes follow the {} at byte {}", in.left(), what, in.at()));
}

}  // namespace tilewright::accel
