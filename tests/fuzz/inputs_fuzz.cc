// Files of inputs: .npy, .npz, PNG and JPEG.
#include "fuzz_common.h"
#include "tilewright/base/npy.h"
#include "tilewright/driver/inputs/image.h"
#include "tilewright/driver/inputs/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tilewright;
  const std::string_view bytes = fuzz::as_text(data, size);
  (void)parse_npy(bytes, "input");
  (void)driver::parse_npz(bytes, "input");
  if (driver::is_image(bytes)) {
    driver::ImageOptions options;
    options.resize = true;
    (void)driver::image_array(bytes, "input", DType::F32, {1, 3, 8, 8}, options);
  }
  return 0;
}
