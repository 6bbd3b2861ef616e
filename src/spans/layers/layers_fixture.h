// What the tests of layers share: a sink, and layers to call.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <utility>

#include "model/activity/activity_codec.h"
#include "spans/layers/layers.h"
#include "spans/layers/thread_layers.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::layers {

struct Sink : model::ActivitySink {
  void define(std::uint32_t, const model::TracedDevice&) override {}
  void define(std::uint32_t, const model::KernelClass&) override {}
  void define(std::uint32_t id, const model::Layer& layer) override { names[id] = layer.name; }
  void define(std::uint32_t, const model::Range&) override {}
  void define(std::uint32_t, const model::Scope&) override {}
  void add(const model::ActivityChunk& chunk) override {
    ++chunks;
    EXPECT_LE(chunk.begin, chunk.end);
    model::ActivityDecoder decoder(chunk.bytes);
    if (chunk.kind == model::ChunkKind::kPhases) {
      for (model::PhaseEntry entry; decoder.next(entry);) phases[entry.phase] = entry;
      EXPECT_TRUE(decoder.ok());
      return;
    }
    EXPECT_EQ(chunk.kind, model::ChunkKind::kLayers);
    model::LayerEntry entry;
    while (decoder.next(entry)) {
      ASSERT_TRUE(names.count(entry.layer));  // defined before it is named
      entries[{names[entry.layer], entry.phase}] = entry;
    }
    EXPECT_TRUE(decoder.ok());
  }
  void status(const model::TraceStatus&) override {}

  std::map<std::uint32_t, std::string> names;
  std::map<std::pair<std::string, model::Phase>, model::LayerEntry> entries;
  std::map<model::Phase, model::PhaseEntry> phases;
  int chunks = 0;
};

inline Sink& sink() {
  static Sink only;
  return only;
}

inline const Sink& reported() {
  sink().entries.clear();
  sink().phases.clear();
  sink().chunks = 0;
  send(sink(), HostClock::now());
  return sink();
}

inline std::uint32_t layer(const std::string& name) {
  model::Layer layer;
  layer.name = name;
  return scopes::add(layer);
}

inline void spend(Duration time) { std::this_thread::sleep_for(time); }
inline constexpr auto kForward = model::Phase::kForward;
inline constexpr auto kBackward = model::Phase::kBackward;
inline constexpr auto kOptimizer = model::Phase::kOptimizer;
inline constexpr std::chrono::milliseconds kShort{20};

}  // namespace jouleprof::layers
