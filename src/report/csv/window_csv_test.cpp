#include <gtest/gtest.h>

#include <sstream>

#include "report/csv/readings_csv.h"

namespace jouleprof::report {
namespace {

const std::string kHeader =
    "name,begin_unix_seconds,begin_seconds,duration_seconds,device,domain,energy_joules,"
    "interval_low_joules,interval_high_joules,repeatability_joules,provenance,reason,labels\n";

model::Recording with_gpu() {
  model::Recording recording;
  model::Domain gpu;
  gpu.id = model::DomainId{3};
  gpu.device = "gpu0";
  recording.domains = {gpu};
  return recording;
}

Result<model::Measurement> nothing(const model::Window&, std::size_t) {
  return fail(Errc::kUnavailable, "no \"sensor\"");
}

TEST(WindowCsv, AnImportedWindowHasNeitherIntervalNorProvenance) {
  model::Recording recording = with_gpu();
  model::ImportedWindow window;
  window.name = "epoch, 1";
  window.begin = HostTime{std::chrono::seconds{2}};
  window.duration = std::chrono::milliseconds{1500};
  window.energies = {{recording.domains[0].id, Energy::microjoules(12345678)}};
  window.labels = {{"power_limit_watts", "150"}, {"batch_size", "32"}};
  recording.imported_windows = {window};

  std::ostringstream out;
  write_window_csv(out, recording, nothing);
  EXPECT_EQ(out.str(), kHeader +
                           "\"epoch, 1\",,,1.500000000,gpu0,gpu,12.345678,,,,,,"
                           "power_limit_watts=150;batch_size=32\n");

  recording.clock_points = {{HostTime{}, RealTime{std::chrono::seconds{1000}}, {}}};
  recording.run.work_begin = HostTime{std::chrono::seconds{1}};
  std::ostringstream stamped;
  write_window_csv(stamped, recording, nothing);
  EXPECT_NE(stamped.str().find("\"epoch, 1\",1002.000000000,1.000000000,"), std::string::npos);
}

TEST(WindowCsv, AWindowHasTheDevicesOfItsMonitor) {
  model::Recording recording = with_gpu();
  model::Domain other;
  other.id = model::DomainId{4};
  other.device = "gpu1";
  recording.domains.push_back(other);
  recording.windows = {{"step", HostTime{}, HostTime{std::chrono::seconds{1}}, 11, 11, false,
                        model::DeviceSet({other.id})}};
  std::ostringstream out;
  write_window_csv(out, recording, nothing);
  EXPECT_EQ(out.str().find("gpu0"), std::string::npos);
  EXPECT_NE(out.str().find(",gpu1,gpu,"), std::string::npos);
}

TEST(WindowCsv, AWindowOfThisRecordingHasBoth) {
  model::Recording recording = with_gpu();
  recording.run.work_begin = HostTime{};
  recording.windows = {
      {"step", HostTime{std::chrono::seconds{2}}, HostTime{std::chrono::seconds{3}}, 11, 12, true}};
  std::ostringstream out;
  write_window_csv(out, recording, [](const model::Window& w, std::size_t domain) {
    EXPECT_EQ(domain, 0u);
    model::Measurement m;
    m.energy = w.name == "step" ? Energy::joules(100) : Energy{};
    m.error = Energy::joules(5);
    m.repeatability = Energy::joules(2);
    return Result<model::Measurement>(m);
  });
  EXPECT_EQ(out.str(),
            kHeader +
                "step,,2.000000000,1.000000000,gpu0,gpu,100.000000,95.000000,105.000000,2.000000,"
                "measured,,pid=11;thread=12;edges=device\n");

  std::ostringstream without;
  write_window_csv(without, recording, nothing);
  EXPECT_EQ(without.str(), kHeader +
                               "step,,2.000000000,1.000000000,gpu0,gpu,,,,,unavailable,"
                               "\"no \"\"sensor\"\"\",pid=11;thread=12;edges=device\n");
}

}  // namespace
}  // namespace jouleprof::report
