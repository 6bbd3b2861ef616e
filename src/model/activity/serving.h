// What an inference server with continuous batching did: its steps, and the requests in each.
//
// The entries of a chunk of ChunkKind::kServing lie one after the other. Each is a type (1 byte),
// the length of its payload (4 bytes) and the payload. Numbers have their least byte first; a text
// is its length (2 bytes) and its bytes. Times are nanoseconds of CLOCK_MONOTONIC. A reader skips
// an entry of an unknown type, and what follows the known fields of a payload.
//
//   1 request  number (4), arrival (8), id, model, tenant (texts), filler (4)
//   2 finish   number (4), time (8), tokens in (4), tokens out (4)
//   3 step     begin (8), end (8), device (4), count (4), then for each request: number, tokens,
//              context, cached, rejected, recomputed, flags (4 each; bit 0: prefill)
//   4 device   number (4), name (text): a UUID or "gpu0"
//   5 lost     steps (8), requests (8): so far, for which there was no room
//   6 view     flags (4; bit 0: steps are batches of the engine)
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "model/activity/activity.h"

namespace jouleprof::model {

// Numbers are a process's own and are never used again.
struct ServedRequest {
  std::uint32_t number = 0;
  HostTime arrival{};
  std::string id;
  std::string model;
  std::string tenant;
  std::uint32_t filler = kNone;  // the request that computed its cached prefix, where known

  bool operator==(const ServedRequest&) const = default;
};

struct FinishedRequest {
  std::uint32_t number = 0;
  HostTime at{};
  std::uint32_t tokens_in = 0;
  std::uint32_t tokens_out = 0;

  bool operator==(const FinishedRequest&) const = default;
};

// One request in one step.
struct StepShare {
  std::uint32_t number = 0;
  std::uint32_t tokens = 0;      // computed, those below included
  std::uint32_t context = 0;     // tokens before them, whose keys and values are read
  std::uint32_t cached = 0;      // of the context, taken from the prefix cache in this step
  std::uint32_t rejected = 0;    // of `tokens`: speculative, rejected afterwards
  std::uint32_t recomputed = 0;  // of `tokens`: computed before, and lost by a preemption
  bool prefill = false;

  bool operator==(const StepShare&) const = default;
};

// A step of the engine: one forward pass of a batch. `device`: a number of ServingDevice, or kNone:
// the recording's only GPU. A step on several devices is there once for each.
struct ServingStep {
  HostTime begin{};
  HostTime end{};
  std::uint32_t device = kNone;
  std::vector<StepShare> shares;

  bool operator==(const ServingStep&) const = default;
};

struct ServingDevice {
  std::uint32_t number = 0;
  std::string name;

  bool operator==(const ServingDevice&) const = default;
};

// Replaces the one before.
struct ServingLoss {
  std::uint64_t steps = 0;
  std::uint64_t requests = 0;

  bool operator==(const ServingLoss&) const = default;
};

// What the steps of the process are. Without this entry they are batches.
struct ServingView {
  bool batches = true;  // false: spans of time with the tokens in flight, as a proxy saw them

  bool operator==(const ServingView&) const = default;
};

using ServingEntry = std::variant<ServedRequest, FinishedRequest, ServingStep, ServingDevice,
                                  ServingLoss, ServingView>;

void append_serving(std::string& bytes, const ServingEntry& entry);

// Calls `take` for each entry. False where the bytes end within one or hold what cannot be: a step
// that ends before it begins or is longer than a day.
bool decode_serving(std::string_view bytes, const std::function<void(const ServingEntry&)>& take);

}  // namespace jouleprof::model
