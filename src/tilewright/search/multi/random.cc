#include "tilewright/search/multi/draws.h"
#include "tilewright/search/multi/methods.h"

namespace tilewright::search {
namespace {

class MultiRandom final : public MultiSearcher {
 public:
  MultiRandom(MultiProblem of, const MultiOptions& options)
      : MultiSearcher(std::move(of)), draws_(problem(), options) {}

  std::vector<Point> propose(int count) override {
    std::vector<Point> batch;
    draws_.fill(*this, batch, static_cast<size_t>(count));
    return batch;
  }

 private:
  Draws draws_;
};

}  // namespace

std::unique_ptr<MultiSearcher> multi_random(MultiProblem problem, const MultiOptions& options) {
  return std::make_unique<MultiRandom>(std::move(problem), options);
}

}  // namespace tilewright::search
