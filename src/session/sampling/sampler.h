// All meters together: one set of ids, one thread each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "session/sampling/lane.h"

namespace jouleprof::session {

// Thread safety: one thread calls everything.
class Sampler {
 public:
  // Domains for which `keep` says no are left out. `process_period`: as Lane's.
  Sampler(std::vector<std::unique_ptr<meters::Meter>> meters, Duration process_period,
          const std::function<bool(const model::Domain&)>& keep = nullptr);

  // Of all meters, numbered from zero in their order.
  const std::vector<model::Domain>& domains() const { return domains_; }
  const std::vector<model::Sensor>& sensors() const { return sensors_; }

  // As Lane's, for every lane. Before start().
  void on_news(const std::function<void()>& reported);
  bool has_buffer() const;
  bool has_new_process() const;

  void start();
  void take(Sampled& out);  // appends

  // Has every probe read now, due or not, so that an interval that begins or ends here has a
  // reading close to its edge. Returns at once: numbers for has_read(), one a meter.
  std::vector<std::uint64_t> read_soon();
  // Whether these reads have ended; take() has their readings then.
  bool has_read(const std::vector<std::uint64_t>& numbers) const;

  // As Lane's, for every lane.
  void set_pace(const meters::Demand& demand, Duration process_period);

  // Reads every probe a last time. Waits up to `patience` for all meters together; a meter that
  // hangs longer is given up with a warning. Appends what was read.
  void stop(Duration patience, Sampled& out);

 private:
  std::vector<model::Domain> domains_;
  std::vector<model::Sensor> sensors_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

// The domains of several meters in one numbering, as a Sampler of the same meters would number
// them.
std::vector<model::Domain> joined_domains(
    const std::vector<std::unique_ptr<meters::Meter>>& meters);

}  // namespace jouleprof::session
