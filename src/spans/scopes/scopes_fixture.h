// The scopes of this process, for the tests of one program: scopes belong to the process, so all
// of its tests share them, and this.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/activity/activity.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::scopes {

struct Reported : model::ActivitySink {
  std::vector<model::Layer> layers;
  std::vector<model::Range> ranges;
  std::vector<model::Scope> scopes;
  void define(std::uint32_t, const model::TracedDevice&) override {}
  void define(std::uint32_t, const model::KernelClass&) override {}
  void define(std::uint32_t id, const model::Layer& l) override { put(layers, id, l); }
  void define(std::uint32_t id, const model::Range& r) override { put(ranges, id, r); }
  void define(std::uint32_t id, const model::Scope& s) override {
    put(scopes, id, s);
    EXPECT_TRUE(s.layer == model::kNone || s.layer < layers.size());
    EXPECT_TRUE(s.range == model::kNone || s.range < ranges.size());
  }
  void add(const model::ActivityChunk&) override {}
  void status(const model::TraceStatus&) override {}
  template <typename T>
  static void put(std::vector<T>& list, std::uint32_t id, const T& value) {
    ASSERT_EQ(id, list.size());
    list.push_back(value);
  }

  // "outer/inner" of a range.
  std::string path(std::uint32_t range) const {
    if (range == model::kNone) return "";
    const model::Range& r = ranges.at(range);
    return r.parent == model::kNone ? r.name : path(r.parent) + "/" + r.name;
  }
};

inline Reported& reported() {
  static Reported all;
  send(all);
  return all;
}

// Puts the thread back to where it was.
struct InScope {
  model::Scope before = this_thread();
  ~InScope() { this_thread() = before; }
};

}  // namespace jouleprof::scopes
