// Traces with something in every field, for tests and as seeds of the fuzzers.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "model/activity/activity.h"
#include "model/activity/activity_codec.h"
#include "model/record_fields.h"
#include "recording/spool/spool_reader.h"

namespace jouleprof::spool {

// Gives a sink all records of a trace, definitions first.
inline void send(const model::Trace& trace, model::ActivitySink& sink) {
  const auto define = [&sink](const auto& parts) {
    std::uint32_t id = 0;
    for (const auto& part : parts) sink.define(id++, part);
  };
  define(trace.devices);
  define(trace.classes);
  define(trace.layers);
  define(trace.ranges);
  define(trace.scopes);
  for (const auto& chunk : trace.chunks) sink.add(chunk);
  sink.status(trace.status);
}

// A seed always gives one trace. `size` is the number of entries of each chunk.
class RandomTrace {
 public:
  explicit RandomTrace(unsigned seed, int size = 20) : random_(seed), size_(size) {}

  model::Trace make() {
    model::Trace t;
    static_cast<model::TracedProcess&>(t) = record<model::TracedProcess>(0);
    t.bin = std::chrono::microseconds{1 + below(10'000)};
    add(t.devices);
    add(t.classes);
    add(t.layers);
    add(t.ranges);
    add(t.scopes);
    for (std::uint32_t i = 0; i < kMany; ++i) t.chunks.push_back(chunk(t.bin));
    t.status = record<model::TraceStatus>(0);
    return t;
  }

  // A record with something in every field; it names others below `id`.
  template <class Record>
  Record record(std::uint32_t id) {
    below_ = id;
    Record made;
    fields(made,
           [this](std::string_view, auto&& value, model::FieldTraits = {}) { this->fill(value); });
    return made;
  }

 private:
  static constexpr std::uint32_t kMany = 5;

  template <class Record>
  void add(std::vector<Record>& list) {
    constexpr bool kNamesOthers = std::is_same_v<Record, model::Scope>;
    for (std::uint32_t i = 0; i < kMany; ++i) {
      list.push_back(record<Record>(kNamesOthers ? kMany : i));
    }
  }

  template <std::integral T>
  void fill(T& value) {
    value = static_cast<T>(std::is_same_v<T, bool> ? below(2) : 1 + below(100'000));
  }
  template <class T>
    requires std::is_enum_v<T>
  void fill(T& value) {
    value = static_cast<T>(below(static_cast<std::uint32_t>(words_of(value).size())));
  }
  void fill(double& value) { value = below(1000) / 7.0; }
  void fill(std::string& value) { value = text(); }
  void fill(Duration& value) { value = Duration{below(1000)}; }
  template <class T>
  void fill(std::optional<T>& value) {
    value.reset();
    if (chance()) fill(value.emplace());
  }
  template <class T>
  void fill(model::Nullable<T> value) {
    fill(value.value);
  }
  // One that is absent at kNone names another record.
  void fill(model::Nullable<std::uint32_t> value) {
    value.value = value.absent == 0 ? below(9) : index_or_none(below_);
  }

  model::ActivityChunk chunk(Duration bin) {
    model::ActivityEncoder encoder;
    const auto kind = model::ChunkKind{static_cast<std::uint8_t>(1 + below(12))};
    const std::uint32_t bins = 1 + below(1000);
    const HostTime begin{std::chrono::microseconds{below(1'000'000'000)}};
    std::uint32_t at = 0;
    for (int i = 0; i < size_; ++i) {
      at = std::min(at + below(5), bins - 1);
      switch (kind) {
        case model::ChunkKind::kBins:
        case model::ChunkKind::kWideBins:
        case model::ChunkKind::kOverlappedBins:
        case model::ChunkKind::kWideOverlappedBins:
          encoder.add(model::BinEntry{at, below(kMany), below(1'000'000), below(100)});
          break;
        case model::ChunkKind::kScopes:
        case model::ChunkKind::kOverlappedScopes:
          encoder.add(
              model::ScopeEntry{below(kMany), index_or_none(kMany), below(100), below(1'000'000)});
          break;
        case model::ChunkKind::kEvents:
        case model::ChunkKind::kCollectives:
          encoder.add(model::EventEntry{std::int64_t{below(1000)} - 3, below(1000), below(kMany),
                                        index_or_none(kMany), below(10)});
          break;
        case model::ChunkKind::kReplay:
          encoder.add(model::KernelRerun{below(999), below(999)});
          break;
        case model::ChunkKind::kLayers:
          encoder.add(model::LayerEntry{below(kMany), phase(), below(9), below(999), below(999)});
          break;
        case model::ChunkKind::kPhases:
          encoder.add(model::PhaseEntry{phase(), below(9), below(999), below(999)});
          break;
        case model::ChunkKind::kServing:
          break;
      }
    }
    return {kind, model::is_of_host(kind) ? model::kNone : below(kMany), begin,
            begin + bins * model::bin_of(kind, bin), encoder.take()};
  }

  std::uint32_t below(std::uint32_t n) {
    return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_);
  }
  bool chance() { return below(2) == 0; }
  std::uint32_t index_or_none(std::uint32_t n) {
    return n == 0 || chance() ? model::kNone : below(n);
  }
  model::Phase phase() { return model::Phase{static_cast<std::uint8_t>(below(4))}; }
  std::string text() {
    std::string text;
    for (std::uint32_t n = below(30); n > 0; --n) text += "aZ9 _<>:\"'\n\xC3\xA4"[below(14)];
    return text;
  }

  std::mt19937 random_;
  int size_;
  std::uint32_t below_ = 0;
};

}  // namespace jouleprof::spool
