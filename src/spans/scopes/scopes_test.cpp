#include "spans/scopes/scopes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "spans/scopes/range_stack.h"

namespace jouleprof::scopes {
namespace {

// Scopes are the process's, so all tests of this program share them, and this.
struct Told : model::ActivitySink {
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
};

Told& told() {
  static Told all;
  tell(all);
  return all;
}

model::Layer layer_named(const char* name) {
  model::Layer layer;
  layer.name = name;
  return layer;
}

// Puts the thread back to where it was.
struct InScope {
  model::Scope before = this_thread();
  ~InScope() { this_thread() = before; }
};

TEST(Scopes, NoneIsNone) {
  const InScope back;
  this_thread() = {};
  EXPECT_EQ(current(), model::kNone);
}

TEST(Scopes, TheSameScopeIsTheSameIdentifierInEveryThread) {
  const InScope back;
  const auto layer = add(layer_named("fc"));
  this_thread() = {layer, model::kNone, model::Phase::kForward};
  const auto here = current();
  EXPECT_EQ(current(), here);
  std::uint32_t there = model::kNone;
  std::uint32_t plain = 0;
  std::thread([&] {
    plain = current();
    this_thread() = {layer, model::kNone, model::Phase::kForward};
    there = current();
  }).join();
  EXPECT_EQ(there, here);
  EXPECT_EQ(plain, model::kNone);
  this_thread().phase = model::Phase::kBackward;
  EXPECT_NE(current(), here);
  EXPECT_EQ(told().scopes.at(here), (model::Scope{layer, model::kNone, model::Phase::kForward}));
}

TEST(Scopes, MoreScopesThanThePlacesOfTheCache) {
  const InScope back;
  std::vector<std::uint32_t> layers;
  std::vector<std::uint32_t> first;
  for (std::uint32_t i = 0; i != 5000; ++i) {
    layers.push_back(add(layer_named("one of many")));
    this_thread() = {layers[i], model::kNone, model::Phase::kOptimizer};
    first.push_back(current());
  }
  for (std::uint32_t i = 0; i != 5000; ++i) {
    this_thread() = {layers[i], model::kNone, model::Phase::kOptimizer};
    ASSERT_EQ(current(), first[i]);
  }
}

TEST(Scopes, TheFinderIsAskedOnlyOutsideOfLayers) {
  const InScope back;
  const auto layer = add(layer_named("found"));
  static std::uint32_t found = 0;
  static int asked = 0;
  found = layer;
  set_finder([](model::Scope& scope) noexcept {
    ++asked;
    scope.layer = found;
    scope.phase = model::Phase::kBackward;
    return true;
  });
  this_thread() = {};
  const auto id = current();
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(this_thread(), model::Scope{});
  this_thread().layer = layer;
  current();
  EXPECT_EQ(asked, 1);
  set_finder(nullptr);
  EXPECT_EQ(told().scopes.at(id), (model::Scope{layer, model::kNone, model::Phase::kBackward}));
}

TEST(Scopes, RangesNestAndAreNamedOnce) {
  const InScope back;
  this_thread() = {};
  EXPECT_EQ(pop_range(nullptr), -1);
  EXPECT_EQ(push_range(nullptr, "step"), 0);
  const auto step = this_thread().range;
  EXPECT_EQ(push_range(nullptr, "loss"), 1);
  const auto loss = this_thread().range;
  EXPECT_EQ(pop_range(nullptr), 1);
  EXPECT_EQ(this_thread().range, step);
  EXPECT_EQ(push_range(nullptr, "loss"), 1);
  EXPECT_EQ(this_thread().range, loss);
  EXPECT_EQ(pop_range(nullptr), 1);
  EXPECT_EQ(pop_range(nullptr), 0);
  EXPECT_EQ(this_thread().range, model::kNone);
  EXPECT_EQ(pop_range(nullptr), -1);
  EXPECT_EQ(told().ranges.at(step), (model::Range{"step", model::kNone}));
  EXPECT_EQ(told().ranges.at(loss), (model::Range{"loss", step}));
}

TEST(Scopes, ADomainPopsItsOwnRange) {
  const InScope back;
  this_thread() = {};
  int domain = 0;
  push_range(nullptr, "outer");
  push_range(&domain, "theirs");
  const auto theirs = this_thread().range;
  EXPECT_EQ(push_range(nullptr, "inner"), 1);
  EXPECT_EQ(pop_range(&domain), 0);
  EXPECT_EQ(pop_range(&domain), -1);
  EXPECT_EQ(pop_range(nullptr), 1);
  EXPECT_NE(this_thread().range, theirs);
  EXPECT_EQ(pop_range(nullptr), 0);
}

TEST(Scopes, RangesTooDeepAreCounted) {
  const InScope back;
  this_thread() = {};
  for (int i = 0; i != 100; ++i) EXPECT_EQ(push_range(nullptr, "deep"), i);
  for (int i = 99; i >= 0; --i) EXPECT_EQ(pop_range(nullptr), i);
  EXPECT_EQ(this_thread().range, model::kNone);
}

TEST(Scopes, ANodeHasItsLayerAndTheLaunchsRange) {
  const InScope back;
  const auto layer = add(layer_named("captured"));
  const auto range = add(model::Range{"replay", model::kNone});
  this_thread() = {layer, model::kNone, model::Phase::kForward};
  const auto node = current();
  this_thread() = {model::kNone, range, model::Phase::kNone};
  const auto launch = current();
  EXPECT_EQ(merged(node, model::kNone), node);
  EXPECT_EQ(merged(model::kNone, launch), launch);
  const auto both = merged(node, launch);
  EXPECT_EQ(told().scopes.at(both), (model::Scope{layer, range, model::Phase::kForward}));
}

TEST(Scopes, AForkedChildTellsAllAnew) {
  told();
  const auto layer = add(layer_named("before the fork"));
  const pid_t child = fork();
  if (child == 0) {
    Told all;
    tell(all);
    _exit(all.layers.size() > layer && all.layers[layer].name == "before the fork" ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Scopes, ABackwardPassIsInTheRangeOfTheOnlyThreadThatHasOne) {
  set_finder([](model::Scope& scope) noexcept {
    scope.phase = model::Phase::kBackward;
    return true;
  });
  push_range(nullptr, "training");
  const std::uint32_t training = this_thread().range;
  EXPECT_EQ(lone_range(), training);
  std::uint32_t there = model::kNone;
  std::uint32_t two = 0;
  std::thread([&] {
    there = current();
    push_range(nullptr, "mine");
    two = lone_range();
    pop_range(nullptr);
  }).join();
  EXPECT_EQ(two, model::kNone);
  EXPECT_EQ(told().scopes.at(there).range, training);
  pop_range(nullptr);
  EXPECT_EQ(lone_range(), model::kNone);
  set_finder(nullptr);
}

}  // namespace
}  // namespace jouleprof::scopes
