// What an inference server with continuous batching did, its steps and the requests in each, and
// the energy of each request.
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

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/activity/activity.h"
#include "model/domain.h"
#include "model/profile.h"

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

// A step lies within a day, at times whose differences cannot overflow.
inline bool is_possible_step(HostTime begin, HostTime end) {
  constexpr HostTime kLast{Duration{std::int64_t{1} << 62}};
  return begin.time_since_epoch() > -kLast.time_since_epoch() && end < kLast && end >= begin &&
         end - begin <= std::chrono::hours{24};
}
inline bool is_possible(const StepShare& share) {
  return share.rejected <= share.tokens && share.recomputed <= share.tokens;
}

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

// In the order of their types.
using ServingEntry = std::variant<ServedRequest, FinishedRequest, ServingStep, ServingDevice,
                                  ServingLoss, ServingView>;

void append_serving(std::string& bytes, const ServingEntry& entry);

// Calls `take` for each entry. False where the bytes end within one. Entries that hold what cannot
// be are left out, and added to `impossible`: a step that ends before it begins, is longer than a
// day, or has more tokens rejected or recomputed than computed.
bool decode_serving(std::string_view bytes, const std::function<void(const ServingEntry&)>& take,
                    std::uint64_t* impossible = nullptr);

// --- The energy of each request, and what of a board's energy is of none ---

// The active energy of requests: above rest and held. Half-widths are of 95 % intervals.
struct ServedEnergy {
  std::string reason;  // why the energy is not known, and no other figure in joules; empty: it is
  // The energy is of a part of its steps only, since others lie outside of the chosen part of the
  // recording. Its tokens are those of all steps.
  bool is_cut = false;
  Energy energy;       // the fair share: own part, and equal parts of what is fixed in each step
  Energy calibration;  // half-width: the sensor's gain, the same for all requests
  Energy regression;   // half-width: the model of a step's energy
  // Without the request this would be saved: its own part, and what is fixed in the steps that were
  // its own alone. From here to `energy` reaches the choice of a rule of division.
  Energy marginal;
  Energy prefill;  // prefill + decode == energy
  Energy decode;
  Energy recomputed;  // of the energy: computed again after a preemption
  Energy rejected;    // of the energy: speculative tokens that were rejected
  Energy idle_share;  // not of the energy: rest and held during its steps, in equal parts

  std::uint64_t tokens_in = 0;
  std::uint64_t tokens_out = 0;
  std::uint64_t computed = 0;  // tokens, those that were rejected or computed again included
  std::uint64_t cached = 0;    // tokens taken from the prefix cache: their filler paid for them
  std::uint64_t steps = 0;
  double shared_with = 0;  // other requests in its steps, mean over time

  bool is_known() const { return reason.empty(); }
  // Joules; absent where the energy is not known.
  std::optional<Energy> known(Energy part) const {
    return is_known() ? std::optional(part) : std::nullopt;
  }
  Energy error() const {
    return Energy::joules(std::hypot(calibration.joules(), regression.joules()));
  }
  Energy low() const { return std::max(energy - error(), Energy{}); }
  Energy high() const { return energy + error(); }
};

inline std::optional<double> joules_per_token(const ServedEnergy& e, std::uint64_t tokens) {
  if (!e.is_known() || e.is_cut || tokens == 0) return std::nullopt;
  return e.energy.joules() / static_cast<double>(tokens);
}

struct RequestEnergy : ServedEnergy {
  std::string id;
  std::string model;
  std::string tenant;
  std::string filler;  // the id of the request that filled the prefix cache for it; empty: unknown
  pid_t pid = 0;
  HostTime arrival{};
  std::optional<HostTime> finish;   // absent: it had not finished when the recording ended
  std::optional<RealTime> arrived;  // absent: the recording has no wall clock

  // Absent: no token came out, or the energy is not known.
  std::optional<double> per_token() const { return joules_per_token(*this, tokens_out); }
};

// The sums of the requests whose energy is known.
struct TenantEnergy : ServedEnergy {
  std::string tenant;
  std::uint64_t requests = 0;
  std::uint64_t without_energy = 0;  // of the requests: their energy is not known
  std::uint64_t paid_tokens = 0;     // of the tokens out: of requests whose energy is known

  std::optional<double> per_token() const { return joules_per_token(*this, paid_tokens); }
};

// One board: energy == idle_levels + between + requests + unattributed, exactly.
struct ServedBoard {
  Domain domain;
  Measurement measured;
  std::optional<Energy> rest;  // rest + held == idle_levels where both are known
  std::optional<Energy> held;
  std::optional<Energy> idle_levels;
  // Its energy is divided among requests. False: `between`, `requests` and the model of a step are
  // not known, and what is above `idle_levels` is unattributed.
  bool is_divided = false;
  Energy between;  // above held, between steps: of no request
  Energy requests;
  Energy unattributed;  // before the first and after the last step, and what no step explains
  Energy others;        // of the unattributed: other programs used it, or can have used it
  std::uint64_t steps = 0;
  Duration busy{};       // in steps
  double explained = 0;  // R^2 of the regression
  // The model of a step: what its parts cost. Active watts of a step's time; joules.
  double step_watts = 0;
  double joules_per_prefill_token = 0;
  double joules_per_decode_token = 0;
  double fixed_joules = 0;  // of a step of mean length
};

struct ServingProfile {
  std::vector<ServedBoard> boards;
  std::vector<RequestEnergy> requests;  // in order of their arrival
  std::vector<TenantEnergy> tenants;    // most energy first
  bool in_flight = false;  // a proxy saw tokens, and no batches: its spans of time are the steps
  bool simulated = false;
  Provenance provenance = Provenance::kUnavailable;
  std::vector<std::string> warnings;
};

}  // namespace jouleprof::model
