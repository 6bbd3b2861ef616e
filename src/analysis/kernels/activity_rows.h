// The rows of an ActivityProfile: kernels, layers, ranges and phases with their energies.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/kernel_model.h"
#include "model/activity_profile.h"

namespace jouleprof::analysis {

// Energies of layers, ranges and phases sum exactly to the kernels': each class's energy is dealt
// to those that launched it by their busy time. Arguments outlive it. `gain`: the sensor's relative
// error at 95 %; `like`: the measurement whose sensor and provenance the rows have.
class ActivityRows {
 public:
  ActivityRows(const model::Recording& recording, const ActivityTable& table,
               const KernelModel& model, double gain, const model::Measurement& like);

  std::vector<model::ActivityRow> kernels() const;
  std::vector<model::ActivityRow> layers() const;
  std::vector<model::ActivityRow> ranges() const;
  std::vector<model::ActivityRow> phases() const;

 private:
  using Row = model::ActivityRow;
  // What one row used itself, or with all below it.
  struct Used {
    struct Seconds {
      double busy = 0;
      double overlapped = 0;  // of them, beside other launches

      void add(const Seconds& more) {
        busy += more.busy;
        overlapped += more.overlapped;
      }
    };
    // By class and variant (kNone: the class has none).
    std::map<std::pair<std::uint32_t, std::uint32_t>, Seconds> seconds;
    Energy energy;

    void add(const Used& other);
  };

  model::Measurement measurement(const Used& used) const;
  Used all_of(std::uint32_t kernel_class) const;
  // A part that is not used by any scope goes to `add` with scope model::kNone.
  template <class Add>
  void deal(Add add) const;
  bool in_part(const model::ActivityChunk& chunk) const;
  void fill(std::vector<Row>& rows, std::vector<Used>& own) const;
  static void judge(Row& row);

  const model::Recording& recording_;
  const ActivityTable& table_;
  const KernelModel& model_;
  double gain_;
  model::Measurement like_;
  std::vector<Energy> class_energy_;
};

}  // namespace jouleprof::analysis
