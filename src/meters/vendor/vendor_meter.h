// GPUs through their vendors' libraries, where the kernel's files are not at hand: libamd_smi and
// Level Zero's Sysman.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meters/meter.h"

namespace jouleprof::meters {

struct VendorOptions {
  std::string library;  // a path or SONAME; empty: the usual one
  Demand demand = {};
};

// A GPU as a library shows it.
struct LibraryGpu {
  std::string device;  // model::Domain::device
  std::string name;
  model::DomainKind kind = model::DomainKind::kGpu;
  std::string sensor;
  bool in_processor = false;                // its energy is that of the package: no domain
  std::optional<Error> missing;             // why there is no counter
  std::function<Result<Energy>()> counter;  // else
};

// One domain a board, of kind kGpu (MI300A: kModule, for its CPU cores), with its energy counter:
// every 100 ms, or 10 ms for windows below a second. Partitions of a board, and processors of one
// socket, are counted once.
class VendorMeter : public Meter {
 public:
  // Errors of both: not_found without the library, or without a GPU; unavailable where it fails.
  // "amdsmi-0", ... Only Instinct's counters are used: the library states one unit for all boards,
  // which is wrong for others.
  static Result<std::unique_ptr<VendorMeter>> open_amd(const VendorOptions& options = {});
  // "ze-0", ...: the card; "ze-0-package" where its counter is absent or stands at 0.
  static Result<std::unique_ptr<VendorMeter>> open_intel(const VendorOptions& options = {});

  std::string name() const override { return name_; }
  HostTime read(std::size_t index, model::Readings& out) override;
  void set_demand(const Demand& demand) override;

 private:
  VendorMeter(std::string name, std::vector<LibraryGpu> gpus, bool simulated, const Demand& demand);

  std::string name_;
  std::vector<std::function<Result<Energy>()>> counters_;  // as sensors_ and probes_
};

}  // namespace jouleprof::meters
