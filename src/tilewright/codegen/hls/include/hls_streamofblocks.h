// Channels of whole blocks between processes, with the interface of vendors' hls_streamofblocks.h.
//
// A channel holds exactly `depth` blocks: a writer waits for a free one, a reader for a full one.
// (The vendor's own header for simulation never frees blocks, so it cannot show that processes
// wait for one another.)
#pragma once

#include <cstdint>
#include <memory>

#include "tw_processes.h"

namespace hls {

template <class T>
class write_lock;
template <class T>
class read_lock;

/// What locks see of a channel, whatever its depth.
template <class T>
class blocks {
 public:
  void set_name(const char* name) { name_ = name; }

 protected:
  explicit blocks(int depth) : storage_(new Block[depth]()), depth_(depth) {}
  blocks(const blocks&) = delete;
  blocks& operator=(const blocks&) = delete;

 private:
  friend class write_lock<T>;
  friend class read_lock<T>;
  struct Block {
    T data;
  };
  T& acquire_free() {
    tw_csim::Lock lock(tw_csim::mutex());
    tw_csim::wait(lock, "a free block of", name_, [this] { return full_ + reading_ < depth_; });
    return storage_[written_ % depth_].data;
  }
  void hand_over() {
    tw_csim::Lock lock(tw_csim::mutex());
    ++written_, ++full_;
    tw_csim::changed();
  }
  T& acquire_full() {
    tw_csim::Lock lock(tw_csim::mutex());
    tw_csim::wait(lock, "a full block of", name_, [this] { return full_ > 0; });
    --full_, ++reading_;
    return storage_[read_ % depth_].data;
  }
  void give_back() {
    tw_csim::Lock lock(tw_csim::mutex());
    ++read_, --reading_;
    tw_csim::changed();
  }

  const char* name_ = "a channel";
  std::unique_ptr<Block[]> storage_;
  int64_t depth_, full_ = 0, reading_ = 0, written_ = 0, read_ = 0;
};

template <class T, int depth = 2>
class stream_of_blocks : public blocks<T> {
 public:
  stream_of_blocks() : blocks<T>(depth) {}
};

/// A free block while it lives; afterwards the reader may have it.
template <class T>
class write_lock {
 public:
  explicit write_lock(blocks<T>& channel) : channel_(channel), block_(channel.acquire_free()) {}
  ~write_lock() { channel_.hand_over(); }
  write_lock(const write_lock&) = delete;
  write_lock& operator=(const write_lock&) = delete;
  operator T&() { return block_; }
  auto& operator[](int64_t i) { return block_[i]; }

 private:
  blocks<T>& channel_;
  T& block_;
};

/// A full block while it lives; afterwards it is free.
template <class T>
class read_lock {
 public:
  explicit read_lock(blocks<T>& channel) : channel_(channel), block_(channel.acquire_full()) {}
  ~read_lock() { channel_.give_back(); }
  read_lock(const read_lock&) = delete;
  read_lock& operator=(const read_lock&) = delete;
  operator const T&() const { return block_; }
  const auto& operator[](int64_t i) const { return block_[i]; }

 private:
  blocks<T>& channel_;
  T& block_;
};

}  // namespace hls
