// jouleprof's C++ interface: a header over the C interface, so that it works with any compiler.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jouleprof/jouleprof.h"
#include "jouleprof/result.h"
#include "jouleprof/units.h"

namespace jouleprof {

inline std::string version() { return jouleprof_version(); }

// The energy of one domain of a recording.
struct DomainEnergy {
  std::string domain;  // "gpu", "cpu", "dram", ...
  std::string device;  // "gpu0"
  std::string name;    // "NVIDIA H100 80GB HBM3"
  jouleprof_provenance provenance = JOULEPROF_UNAVAILABLE_FIGURE;
  std::optional<Energy> energy;  // absent: see `reason`
  std::string reason;
  Energy error;          // half of the 95 % interval
  Energy repeatability;  // the same, without what is common to one device
};

// A recording, analysed.
class Report {
 public:
  // Errors: as jouleprof_report_open's.
  static Result<Report> open(const std::string& path) {
    std::array<char, 512> message{};
    jouleprof_report* report = nullptr;
    const auto status =
        jouleprof_report_open(path.c_str(), &report, message.data(), message.size());
    if (status != JOULEPROF_OK) {
      return tl::unexpected<Error>(Error{static_cast<Errc>(status - 1), message.data()});
    }
    return Report(report);
  }

  Duration duration() const { return duration_of(jouleprof_report_seconds(report_.get())); }

  std::vector<DomainEnergy> domains() const {
    std::vector<DomainEnergy> domains(jouleprof_report_domain_count(report_.get()));
    for (std::size_t i = 0; i < domains.size(); ++i) {
      jouleprof_domain_energy d{};
      jouleprof_report_domain(report_.get(), i, &d);
      domains[i] = {d.domain,     d.device, d.name,   d.provenance,
                    std::nullopt, d.reason, Energy{}, Energy{}};
      if (d.provenance == JOULEPROF_UNAVAILABLE_FIGURE) continue;
      domains[i].energy = Energy::microjoules(d.energy_microjoules);
      domains[i].error = Energy::microjoules(d.error_microjoules);
      domains[i].repeatability = Energy::microjoules(d.repeatability_microjoules);
    }
    return domains;
  }

  std::string json() const { return jouleprof_report_json(report_.get()); }

 private:
  struct Close {
    void operator()(jouleprof_report* r) const { jouleprof_report_close(r); }
  };
  explicit Report(jouleprof_report* report) : report_(report) {}
  std::unique_ptr<jouleprof_report, Close> report_;
};

}  // namespace jouleprof
