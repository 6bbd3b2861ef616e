// The rows of an ActivityProfile: kernels, layers, ranges and phases with their energies.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/kernel_model.h"
#include "model/activity/activity_profile.h"

namespace jouleprof::analysis {

// Energies of layers, ranges, phases and stacks sum exactly to the kernels': each kernel
// signature's energy is divided among those that launched it by their busy time. Only processes
// that used the device have rows. Arguments outlive it. `gain`: the sensor's relative error at 95
// %; `like`: the measurement whose sensor and provenance the rows have.
class ActivityRows {
 public:
  ActivityRows(const model::Recording& recording, const ActivityTable& table,
               const KernelModel& model, const model::ScaleError& scale,
               const model::Measurement& like);

  // by_kernel, by_layer, by_range, by_phase, stacks, and by_process without idle_between.
  void fill(model::ActivityProfile& out);

  // Indices into the lists that fill() made; kNone: outside of all.
  std::uint32_t kernel_row(std::uint32_t kernel_class) const { return kernel_rows_[kernel_class]; }
  std::uint32_t layer_row(const ActivityTable::ScopeTotal& total) const;
  std::uint32_t range_row(const ActivityTable::ScopeTotal& total) const;
  std::uint32_t phase_row(const ActivityTable::ScopeTotal& total,
                          const std::vector<model::ActivityRow>& phases) const;

 private:
  using Row = model::ActivityRow;
  // The time and energy of one row itself, or with all rows below it.
  struct Used {
    struct Seconds {
      double busy = 0;
      double overlapped = 0;  // of `busy`, while other launches ran

      void add(const Seconds& more) {
        busy += more.busy;
        overlapped += more.overlapped;
      }
    };
    // By kernel signature and variant (kNone: the signature has none).
    std::map<std::pair<std::uint32_t, std::uint32_t>, Seconds> seconds;
    Energy energy;

    void add(const Used& other);
    Seconds sum() const;
  };
  // The energy of one scope and signature.
  struct Portion {
    const ActivityTable::ScopeTotal* total = nullptr;
    Used used;
  };

  std::vector<KernelModel::Use> uses_of(const Used& used) const;
  model::Measurement measurement(const Used& used) const;
  Used all_of(std::uint32_t kernel_class) const;
  std::vector<Portion> portions() const;
  bool uses_device(std::size_t trace) const { return uses_device_[trace]; }
  const model::Scope* scope_of(const ActivityTable::ScopeTotal& total) const;
  bool in_part(const model::ActivityChunk& chunk) const;
  // Fills a list's rows with energies; totals without a row go to the last one.
  using RowOf = std::function<std::uint32_t(const ActivityTable::ScopeTotal&)>;
  std::vector<Row> filled(std::vector<Row> rows, const RowOf& row_of) const;
  void mark_unresolvable(Row& row) const;

  std::vector<Row> kernels();
  std::vector<Row> layers();
  std::vector<Row> ranges();
  std::vector<Row> phases() const;
  void add_layers(std::size_t trace, std::vector<Row>& rows);
  model::Phase phase_of(const ActivityTable::ScopeTotal& total) const;
  std::vector<model::ActivityStack> stacks() const;
  std::vector<model::ActivityProcess> processes() const;

  const model::Recording& recording_;
  const ActivityTable& table_;
  const KernelModel& model_;
  double gain_;
  double shift_;
  model::Measurement like_;
  std::vector<Energy> class_energy_;
  std::vector<Portion> portions_;
  std::vector<bool> uses_device_;                       // by trace
  std::vector<std::uint32_t> kernel_rows_;              // by kernel signature
  std::vector<std::uint32_t> first_layer_;              // by trace; kNone: it has none
  std::vector<std::vector<std::uint32_t>> range_rows_;  // by trace and range
};

}  // namespace jouleprof::analysis
