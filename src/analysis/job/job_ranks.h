// Which ranks of a job its recordings have, and whether the wall clocks of its machines agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/recording.h"

namespace jouleprof::analysis {

// The processes that one launcher numbered together.
struct RankGroup {
  std::string launcher;  // as in model::Rank, and the next two
  std::string job;
  std::string step;
  std::uint32_t world_size = 0;
  std::size_t present = 0;             // different numbers below world_size in the recordings
  std::vector<std::uint32_t> missing;  // ascending, and the next
  // On several machines, or at the same time in several recordings of one.
  std::vector<std::uint32_t> repeated;

  bool is_whole() const { return missing.empty(); }
};

// Takes recordings one after the other and keeps their ranks and times only.
class RankCensus {
 public:
  struct Found {
    std::vector<RankGroup> groups;      // the largest first
    std::vector<std::string> warnings;  // sentences
  };

  // `name`: of its file.
  void add(const std::string& name, const model::Recording& recording);

  // `aligned`: boot ids of machines whose clocks were compared by events that they have in common.
  // Their wall clocks are compared there and not here.
  Found finish(const std::set<std::string>& aligned = {}) const;

 private:
  struct Times {
    HostTime begin{};
    HostTime end{};
    std::optional<RealTime> real_begin;
    std::optional<RealTime> real_end;
  };
  struct Seen {
    std::size_t machine = 0;  // of machines_
    std::string name;
    Times times;
  };
  using Key = std::tuple<std::string, std::string, std::string, std::uint32_t>;
  using Ranks = std::map<std::uint32_t, std::vector<Seen>>;

  std::size_t machine_of(const model::RunInfo& run);
  std::vector<std::string> machine_names() const;
  std::string repeated_text(const RankGroup& group, const Ranks& ranks,
                            const std::vector<std::string>& names) const;
  std::string clocks_text(const RankGroup& group, const Ranks& ranks,
                          const std::vector<std::string>& names,
                          const std::set<std::string>& aligned) const;

  std::vector<std::pair<std::string, std::string>> machines_;  // name and boot id
  std::map<Key, Ranks> groups_;
};

}  // namespace jouleprof::analysis
