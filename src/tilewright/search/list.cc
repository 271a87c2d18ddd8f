#include "tilewright/search/searchers.h"

namespace tilewright::search {
namespace {

class ListSearcher final : public Searcher {
 public:
  ListSearcher(const Space& space, std::vector<Point> points)
      : Searcher(space), points_(std::move(points)) {}

  std::vector<Point> choose(int count) override {
    std::vector<Point> batch;
    for (const Point& point : points_) {
      if (static_cast<int>(batch.size()) >= count) break;
      add_new(batch, point);
    }
    return batch;
  }

 private:
  std::vector<Point> points_;
};

}  // namespace

std::unique_ptr<Searcher> list_searcher(const Space& space, std::vector<Point> points) {
  return std::make_unique<ListSearcher>(space, std::move(points));
}

}  // namespace tilewright::search
