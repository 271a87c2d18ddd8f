// FIFOs of scalars between processes, with the interface of vendors' hls_stream.h.
#pragma once

#include <cstddef>
#include <deque>

#include "tw_processes.h"

namespace hls {

template <class T, int depth = 2>
class stream {
 public:
  explicit stream(const char* name = "a stream") : name_(name) {}
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  void set_name(const char* name) { name_ = name; }
  void write(const T& value) {
    tw_csim::Lock lock(tw_csim::mutex());
    tw_csim::wait(lock, "room in", name_,
                  [this] { return values_.size() < static_cast<size_t>(depth); });
    values_.push_back(value);
    tw_csim::changed();
  }
  T read() {
    tw_csim::Lock lock(tw_csim::mutex());
    tw_csim::wait(lock, "a value of", name_, [this] { return !values_.empty(); });
    const T value = values_.front();
    values_.pop_front();
    tw_csim::changed();
    return value;
  }
  bool empty() const { return size() == 0; }
  size_t size() const {
    tw_csim::Lock lock(tw_csim::mutex());
    return values_.size();
  }
  stream& operator<<(const T& value) {
    write(value);
    return *this;
  }
  stream& operator>>(T& value) {
    value = read();
    return *this;
  }

 private:
  const char* name_;
  std::deque<T> values_;
};

}  // namespace hls
