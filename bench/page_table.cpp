// Size of the page of long and large recordings, and how long it takes to write, as a Markdown
// table.
//
//     page_table [--minutes M] [--folder DIR]
//
// Recordings are synthetic: a GPU whose kernels run in bursts, in layers of a model, with 50 power
// samples a second. Each is written to a file and read back, as `jouleprof report --html` does.
// Both are kept in DIR, where it is given.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run.h"
#include "analysis/synthetic_run_test.h"
#include "recording/reader.h"
#include "recording/writer.h"
#include "report/format/format.h"
#include "report/html/page.h"

namespace {

using namespace jouleprof;
namespace fs = std::filesystem;
namespace simulated = analysis::simulated;

struct Case {
  std::string name;
  double seconds = 60;
  std::size_t kernels = 40;
  bool together = false;
  int windows = 0;
};

template <typename T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "page_table: {}\n", result.error().message);
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Twelve blocks of a model, with the layers of the trace in them. A parent comes before its parts.
void nest_layers(model::Trace& trace) {
  constexpr std::uint32_t kBlocks = 12;
  std::vector<model::Layer> layers{simulated::a_layer("Model")};
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    layers.push_back(simulated::a_layer(fmt::format("blocks.{}", block), 0));
  }
  for (std::uint32_t i = 0; i < trace.layers.size(); ++i) {
    layers.push_back(simulated::a_layer(fmt::format("blocks.{}.linear{}", i % kBlocks, i / kBlocks),
                                        1 + i % kBlocks));
  }
  trace.layers = std::move(layers);
  for (auto& scope : trace.scopes) scope.layer += 1 + kBlocks;
}

model::Recording recording_of(const Case& c) {
  simulated::SyntheticRun run;
  run.kernels = simulated::various_kernels(c.kernels);
  run.seconds = c.seconds;
  run.together = c.together;
  auto recording = simulated::synthesise(run).recording;
  recording.run.command = {"python", "train.py"};
  recording.run.work_begin = recording.readings.powers.front().at + std::chrono::seconds{1};
  recording.run.work_end = *recording.run.work_begin + duration_of(c.seconds);
  nest_layers(recording.traces.front());
  const Duration each = duration_of(c.seconds) / std::max(c.windows, 1);
  for (int i = 0; i < c.windows; ++i) {
    const HostTime begin = *recording.run.work_begin + i * each;
    recording.windows.push_back(
        {fmt::format("step {}", i % 10), begin, begin + each * 8 / 10, 7, 7, false});
  }
  return recording;
}

// CPU time, which other programs do not change much.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void row(const Case& c, const fs::path& folder) {
  const fs::path file = folder / (c.name + ".jprof");
  fs::remove(file);
  must(recording::write_recording(file, recording_of(c)));
  const double begin = cpu_seconds();
  const analysis::Run run(must(recording::read_recording(file)));
  must(run.activity_slices(report::kMostSliceCells));  // first, as the page does
  must(run.profile());
  const auto& activity = run.activity();
  const double analysed = cpu_seconds() - begin;
  if (!activity) std::exit(1);
  std::uint64_t launches = 0;
  for (const auto& kernel : activity->front().by_kernel) launches += kernel.launches;
  std::ostringstream page;
  must(report::find_format("html")->write(run, {}, {}, page));
  const double all = cpu_seconds() - begin;
  fmt::print("| {}: {} launches, recording {:.1f} MB | {} kB | {:.2f} s | {:.2f} s |\n", c.name,
             launches, static_cast<double>(fs::file_size(file)) / 1e6,
             (page.view().size() + 999) / 1000, analysed, all - analysed);
  std::ofstream(folder / (c.name + ".html")) << page.view();
}

}  // namespace

int main(int argc, char** argv) {
  double minutes = 60;
  fs::path folder = fs::temp_directory_path();
  bool keeps = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--minutes") minutes = std::atof(argv[i + 1]);
    if (option == "--folder") {
      folder = argv[i + 1];
      keeps = true;
    }
  }
  fmt::print("| recording | page | CPU time to read and analyse | to write |\n|---|---|---|---|\n");
  const std::vector<Case> cases{
      {fmt::format("{:g} minutes, 100 kernels, 113 layers", minutes), 60 * minutes, 100, false, 0},
      {fmt::format("{:g} minutes, 40 kernels in each burst", minutes), 60 * minutes, 40, true, 0},
      {"10,000 windows", 600, 40, false, 10'000},
      {"1,000 kernels", 120, 1000, false, 0},
  };
  for (const auto& c : cases) {
    row(c, folder);
    if (keeps) continue;
    fs::remove(folder / (c.name + ".html"));
    fs::remove(folder / (c.name + ".jprof"));
  }
  return 0;
}
