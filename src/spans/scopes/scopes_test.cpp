#include "spans/scopes/scopes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "spans/scopes/scopes_fixture.h"

namespace jouleprof::scopes {
namespace {

model::Layer layer_named(const char* name) {
  model::Layer layer;
  layer.name = name;
  return layer;
}

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
  EXPECT_EQ(reported().scopes.at(here),
            (model::Scope{layer, model::kNone, model::Phase::kForward}));
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
  EXPECT_EQ(reported().scopes.at(id), (model::Scope{layer, model::kNone, model::Phase::kBackward}));
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
  EXPECT_EQ(reported().scopes.at(both), (model::Scope{layer, range, model::Phase::kForward}));
}

TEST(Scopes, AForkedChildSendsAllAgain) {
  reported();
  const auto layer = add(layer_named("before the fork"));
  const pid_t child = fork();
  if (child == 0) {
    Reported all;
    send(all);
    _exit(all.layers.size() > layer && all.layers[layer].name == "before the fork" ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace jouleprof::scopes
