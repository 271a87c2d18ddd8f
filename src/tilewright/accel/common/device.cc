#include "tilewright/accel/common/device.h"

namespace tilewright::accel {

Status write_through(Memory& memory, uint64_t address, std::string_view bytes) {
  TW_TRY_STATUS(memory.write(address, bytes));
  return memory.flush(address, bytes.size());
}

Status write_image(Memory& memory, const Image& image) {
  return write_through(memory, image.base, image.image);
}

}  // namespace tilewright::accel
