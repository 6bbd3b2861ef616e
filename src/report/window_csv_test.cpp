#include <gtest/gtest.h>

#include <sstream>

#include "report/export_samples.h"

namespace jouleprof::report {
namespace {

TEST(WindowCsv, HasARowForEachDomainOfAWindow) {
  model::Recording recording;
  model::Domain gpu;
  gpu.id = model::DomainId{3};
  gpu.device = "gpu0";
  recording.domains = {gpu};
  model::ImportedWindow window;
  window.name = "epoch, 1";
  window.begin = HostTime{std::chrono::seconds{2}};
  window.duration = std::chrono::milliseconds{1500};
  window.energies = {{gpu.id, Energy::microjoules(12345678)}};
  window.labels = {{"power_limit_watts", "150"}, {"batch_size", "32"}};
  recording.imported_windows = {window};

  std::ostringstream out;
  write_window_csv(out, recording);
  EXPECT_EQ(out.str(),
            "name,begin_unix_seconds,duration_seconds,device,domain,energy_joules,labels\n"
            "\"epoch, 1\",,1.500000000,gpu0,gpu,12.345678,power_limit_watts=150;batch_size=32\n");

  recording.clock_points = {{HostTime{}, RealTime{std::chrono::seconds{1000}}, {}}};
  std::ostringstream stamped;
  write_window_csv(stamped, recording);
  EXPECT_NE(stamped.str().find("\"epoch, 1\",1002.000000000,"), std::string::npos);
}

}  // namespace
}  // namespace jouleprof::report
