#include "report/metrics/machine_metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "model/device/sensor.h"

namespace jouleprof::report {
namespace {

using analysis::EnergyAccounts;
using analysis::MachineState;
using analysis::Worker;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

HostTime at(int s) { return HostTime{seconds{s}}; }

// Two GPUs and a CPU without a sensor.
struct Machine {
  MachineState state;
  EnergyAccounts accounts{3, {}};

  Machine() {
    state.started = {at(100), RealTime{seconds{1'700'000'000}}, {}};
    state.now = at(105);
    state.ticks = 2;
    state.snapshot.time = RealTime{seconds{1'700'000'005}};
    state.domains.resize(3);
    for (int d = 0; d < 3; ++d) {
      model::DomainSnapshot s;
      const bool gpu = d < 2;
      s.domain.id = model::DomainId{static_cast<std::uint32_t>(d)};
      s.domain.kind = gpu ? model::DomainKind::kGpu : model::DomainKind::kCpu;
      s.domain.device = gpu ? fmt::format("gpu{}", d) : "package-0";
      s.domain.uuid = gpu ? fmt::format("GPU-{}", d) : "";
      s.domain.name = gpu ? "Board \"X\"" : "CPU";
      s.provenance = gpu ? model::Provenance::kMeasured : model::Provenance::kEstimated;
      s.power = Power::watts(100.5 + d);
      s.age = std::chrono::milliseconds{120};
      if (gpu) {
        s.gauges[std::string(model::gauge::kSmClock)] = 1.98e9;
        s.gauges[std::string(model::gauge::kClockEventReasons)] = 4;
      }
      state.snapshot.domains.push_back(s);
      state.domains[static_cast<std::size_t>(d)] = {s.provenance, true, true, d != 1, 0};
    }
    Worker a{1, 41, "train\n\xff\"", {}};
    a.owner.container = "abc";
    a.owner.runtime = "docker";
    a.owner.job = "7";
    a.owner.user = 1000;
    accounts.begin_tick(at(105), {a, Worker{2, 42, "sh", {}}});
    const double weights[] = {3, 1};
    accounts.charge(
        {0, Energy::microjoules(4'000'003), seconds{5}, Energy::microjoules(3), weights, 0});
    accounts.charge({2, Energy::joules(8), seconds{5}, {}, weights, 4});
    state.domains[0].between_services = Energy::joules(1);
    state.holders.push_back({0, a, 0.75, 1 << 20});
    state.allocations.push_back({0, 3, "7"});
  }
  std::string text(Dialect dialect = Dialect::kText, bool estimates = true,
                   ForeignNames names = {}) const {
    return machine_metrics(state, accounts, {"1.2", estimates, names, "node7", true}, dialect);
  }
};

TEST(MachineMetrics, EnergiesAreExactAndLabelled) {
  const auto text = Machine().text();
  const std::string measured =
      "domain=\"gpu\",device=\"gpu0\",uuid=\"GPU-0\",provenance=\"measured\"";
  EXPECT_THAT(text, HasSubstr("\njouleprof_energy_joules_total{" + measured +
                              ",level=\"rest\"} 0.000003\n"));
  EXPECT_THAT(text, HasSubstr("\njouleprof_energy_joules_total{" + measured +
                              ",level=\"dynamic\"} 4.000000\n"));
  // Where power at rest is unknown there are no levels.
  EXPECT_THAT(text, HasSubstr("{domain=\"cpu\",device=\"package-0\",provenance=\"estimated\"} 8."
                              "000000\n"));
  EXPECT_THAT(text,
              HasSubstr("jouleprof_job_energy_joules_total{hpc_job=\"7\",domain=\"gpu\","
                        "device=\"gpu0\",provenance=\"measured\",level=\"dynamic\"} 3.000000\n"));
  EXPECT_THAT(text,
              HasSubstr("jouleprof_job_energy_joules_total{reason=\"outside\",domain=\"gpu\","
                        "device=\"gpu0\",provenance=\"measured\",level=\"dynamic\"} 1.000000\n"));
  EXPECT_THAT(text, HasSubstr("jouleprof_process_energy_joules_total{pid=\"41\",domain=\"cpu\","
                              "device=\"package-0\",provenance=\"estimated\"} 3.000000\n"));
}

TEST(MachineMetrics, WhatIsUnavailableHasNoSeries) {
  Machine machine;
  machine.state.domains[1].counted = false;
  machine.state.snapshot.domains[1].power.reset();
  machine.state.snapshot.domains[1].age.reset();
  machine.state.snapshot.domains[1].gauges.clear();
  const auto text = machine.text();
  EXPECT_THAT(text, Not(HasSubstr("jouleprof_energy_joules_total{domain=\"gpu\",device=\"gpu1\"")));
  EXPECT_THAT(text, Not(HasSubstr("jouleprof_power_watts{domain=\"gpu\",device=\"gpu1\"")));
  EXPECT_THAT(text, Not(HasSubstr("jouleprof_temperature_celsius")));  // no device has one
  machine.state.snapshot.domains[0].gauges["temperature_celsius"] = 61;
  machine.state.snapshot.domains[2].gauges["temperature_celsius"] = 47.5;
  const auto warm = machine.text();
  EXPECT_THAT(warm,
              HasSubstr("jouleprof_temperature_celsius{domain=\"gpu\",device=\"gpu0\",uuid=\"GPU-"
                        "0\",part=\"gpu\"} 61\n"));
  EXPECT_THAT(warm, HasSubstr("jouleprof_temperature_celsius{domain=\"cpu\",device=\"package-0\","
                              "part=\"cpu\"} 47.5\n"));
  EXPECT_THAT(text,
              HasSubstr("jouleprof_sensor_available{domain=\"gpu\",device=\"gpu1\",uuid=\"GPU-"
                        "1\"} 0\n"));
}

TEST(MachineMetrics, EstimatesCanBeLeftOut) {
  const auto text = Machine().text(Dialect::kText, false);
  EXPECT_THAT(text, Not(HasSubstr("estimated")));
  EXPECT_THAT(text, Not(HasSubstr("energy_joules_total{pid=\"41\",domain=\"cpu\"")));
}

double sample(const std::string& text, const std::string& name) {
  const auto at = text.find("\n" + name + " ");
  if (at == std::string::npos) return -1;
  return std::stod(text.substr(at + name.size() + 2));
}

// The job's series begins with the tick at 105 s.
TEST(MachineMetrics, ASeriesBeginsAtZeroAndTheSumHolds) {
  Machine machine;
  const std::string tail =
      "domain=\"gpu\",device=\"gpu0\",provenance=\"measured\",level=\"dynamic\"}";
  MetricsOptions options{"1.2"};
  const auto text = [&] {
    return machine_metrics(machine.state, machine.accounts, options, Dialect::kText);
  };
  const auto sum = [&](const std::string& page) {
    double out = sample(page, "jouleprof_new_energy_joules{family=\"job\"," + tail);
    for (const char* part :
         {"hpc_job=\"7\",", "reason=\"outside\",", "reason=\"other\",", "reason=\"ended\","}) {
      out += sample(page, std::string("jouleprof_job_energy_joules_total{") + part + tail);
    }
    return out;
  };
  const std::string job = "jouleprof_job_energy_joules_total{hpc_job=\"7\"," + tail;
  for (const int seen : {104, 105}) {
    options.shown_until = at(seen);
    const auto page = text();
    EXPECT_DOUBLE_EQ(sample(page, job), seen < 105 ? 0 : 3);
    EXPECT_DOUBLE_EQ(sum(page), 4);
  }
  // Other exporters' names too.
  options.names.kepler = true;
  options.host = "node7";
  options.shown_until = at(104);
  EXPECT_THAT(text(),
              HasSubstr("kepler_process_gpu_joules_total{pid=\"42\",comm=\"sh\",state=\"running\","
                        "node_name=\"node7\"} 0.000000\n"));
}

TEST(MachineMetrics, OnlyTheChosenFamiliesAreShown) {
  const Machine machine;
  MetricsOptions options{"1.2"};
  options.families.fill(false);
  options.families[static_cast<std::size_t>(analysis::Family::kJob)] = true;
  const auto text = machine_metrics(machine.state, machine.accounts, options, Dialect::kText);
  EXPECT_THAT(text, HasSubstr("jouleprof_job_energy_joules_total"));
  for (const char* name : {"jouleprof_process_", "jouleprof_gpu_process_", "jouleprof_container_",
                           "family=\"user\""}) {
    EXPECT_THAT(text, Not(HasSubstr(name)));
  }
}

TEST(MachineMetrics, NamesOfDcgmExporter) {
  const auto text = Machine().text(Dialect::kText, true, {.dcgm = true});
  const std::string labels =
      "{gpu=\"0\",UUID=\"GPU-0\",device=\"nvidia0\",modelName=\"Board "
      "\\\"X\\\"\",Hostname=\"node7\",hostname=\"node7\","
      "hpc_job=\"7\"}";
  EXPECT_THAT(text, HasSubstr("\nDCGM_FI_DEV_POWER_USAGE" + labels + " 100.5\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"
                              "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" +
                              labels + " 4000.003\n"));
  EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_SM_CLOCK" + labels + " 1980\n"));
  EXPECT_THAT(Machine().text(Dialect::kOpenMetrics, true, {.dcgm = true}),
              HasSubstr("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown\n"));
  EXPECT_THAT(Machine().text(), Not(HasSubstr("DCGM")));
}

TEST(MachineMetrics, NamesOfKepler) {
  const auto text = Machine().text(Dialect::kText, true, {.kepler = true});
  EXPECT_THAT(text, HasSubstr("\nkepler_node_cpu_joules_total{zone=\"package\",path=\"package-0\","
                              "node_name=\"node7\"} 8.000000\n"));
  EXPECT_THAT(text, HasSubstr("\nkepler_node_gpu_joules_total{gpu=\"0\",gpu_uuid=\"GPU-0\","
                              "node_name=\"node7\"} 4.000003\n"));
  EXPECT_THAT(text, HasSubstr("\nkepler_container_cpu_joules_total{container_id=\"abc\",runtime="
                              "\"docker\",state=\"running\",zone=\"package\",node_name=\"node7\"} "
                              "3.000000\n"));
  EXPECT_THAT(text, HasSubstr("\nkepler_process_gpu_watts{pid=\"42\",comm=\"sh\",state=\"running\","
                              "node_name=\"node7\"} 0.2\n"));
  EXPECT_THAT(text, Not(HasSubstr("kepler_pod_")));  // there is none
}

TEST(MachineMetrics, NamesOfKubernetes) {
  Machine machine;
  Worker worker{3, 43, "python", {}};
  worker.owner.pod = "0d1d";
  worker.owner.container = "abc";
  const double weights[] = {1};
  machine.accounts.begin_tick(at(110), {worker});
  machine.accounts.charge({0, Energy::joules(1), seconds{5}, {}, weights, 0});
  machine.state.names.pods["ended"] = {"ml", "trainer-9"};
  EXPECT_THAT(machine.text(), Not(HasSubstr("jouleprof_pod_info{")));  // its name is unknown
  machine.state.names.pods["0d1d"] = {"ml", "trainer-0"};
  machine.state.names.containers["abc"] = "train";
  const auto text = machine.text(Dialect::kText, true, {.kepler = true});
  EXPECT_THAT(text, HasSubstr("\njouleprof_pod_info{pod_uid=\"0d1d\",namespace=\"ml\","
                              "pod=\"trainer-0\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("\"trainer-9\"")));
  EXPECT_THAT(text, HasSubstr("container_name=\"train\""));
  EXPECT_THAT(text, HasSubstr("pod_name=\"trainer-0\",pod_namespace=\"ml\",node_name="));
}

TEST(MachineMetrics, NamesOfAiPowerMeter) {
  Machine machine;
  machine.state.memory_used_bytes = 4096;
  const ForeignNames names{.aipowermeter = true};
  const auto text = machine.text(Dialect::kText, true, names);
  EXPECT_THAT(text, HasSubstr("# TYPE power_draw_cpu gauge\npower_draw_cpu 102.5\n"));
  EXPECT_THAT(text, HasSubstr("\nintel_power 102.5\n"));
  EXPECT_THAT(text, HasSubstr("\npower_draw_gpu 202\n"));
  EXPECT_THAT(text, HasSubstr("\nmem_used_cpu 4096\n"));
  EXPECT_THAT(text, Not(HasSubstr("mem_used_gpu")));  // of neither GPU
  EXPECT_THAT(machine.text(Dialect::kText, false, names), Not(HasSubstr("power_draw_cpu")));
  machine.state.snapshot.domains[1].power.reset();  // without one there is no sum
  EXPECT_THAT(machine.text(Dialect::kText, true, names), Not(HasSubstr("power_draw_gpu")));
  EXPECT_THAT(machine.text(), Not(HasSubstr("mem_used_cpu")));
}

TEST(MachineMetrics, LabelsAreEscaped) {
  EXPECT_THAT(Machine().text(), HasSubstr("comm=\"train\\n\xef\xbf\xbd\\\"\""));
  EXPECT_EQ(escaped_label("a\\b"), "a\\\\b");
  EXPECT_EQ(escaped_label("h\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "h\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(escaped_label("\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd");    // overlong
  EXPECT_EQ(escaped_label("\xed\xa0\x80").size(), 9u);                 // half a surrogate pair
  EXPECT_EQ(escaped_label("x\xe2\x82"), "x\xef\xbf\xbd\xef\xbf\xbd");  // cut off
}

TEST(MachineMetrics, OpenMetricsHasUnitsStartsAndAnEnd) {
  const auto text = Machine().text(Dialect::kOpenMetrics);
  EXPECT_THAT(text, testing::StartsWith("# TYPE jouleprof_energy_joules counter\n"
                                        "# UNIT jouleprof_energy_joules joules\n"
                                        "# HELP jouleprof_energy_joules "));
  EXPECT_THAT(text, HasSubstr("# TYPE jouleprof_device info\n"));
  EXPECT_THAT(text, HasSubstr("\njouleprof_device_info{"));
  EXPECT_THAT(text, HasSubstr("jouleprof_ticks_created 1700000000.000\n"));
  EXPECT_THAT(
      text,
      HasSubstr("jouleprof_process_energy_joules_created{pid=\"41\",domain=\"gpu\","
                "device=\"gpu0\",provenance=\"measured\",level=\"dynamic\"} 1700000005.000\n"));
  EXPECT_THAT(text, testing::EndsWith("\n# EOF\n"));
  EXPECT_THAT(Machine().text(), Not(HasSubstr("_created")));
}

// Every line of samples belongs to a metric of the table, with the labels that the table names.
TEST(MachineMetrics, EachSampleIsDocumented) {
  std::set<std::string> seen;
  std::string line;
  for (const char c : Machine().text()) {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (!line.starts_with("#")) {
      const std::string name = line.substr(0, line.find_first_of("{ "));
      const auto all = all_metrics();
      const auto found =
          std::find_if(all.begin(), all.end(), [&](const Metric& m) { return m.name == name; });
      ASSERT_NE(found, all.end()) << line;
      EXPECT_TRUE(line.find('{') == std::string::npos || !found->labels.empty()) << line;
      seen.insert(name);
    }
    line.clear();
  }
  EXPECT_GT(seen.size(), 20u);
  for (const auto& m : all_metrics()) {
    const bool is_counter = m.type == MetricType::kCounter;
    EXPECT_EQ(m.name.ends_with("_total"), is_counter) << m.name;
    EXPECT_EQ(m.name.ends_with("_info"), m.type == MetricType::kInfo) << m.name;
    if (m.unit.empty()) continue;
    const std::string end = fmt::format("_{}{}", m.unit, is_counter ? "_total" : "");
    EXPECT_TRUE(m.name.ends_with(end)) << m.name;
    EXPECT_EQ(&metric(m.name), &m);
  }
}

TEST(MachineMetrics, TheDocumentationListsThem) {
  const auto page = read_file(std::string(JOULEPROF_SOURCE_DIR) + "/docs/metrics.md");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_NE(page->find(metrics_table()), std::string::npos)
      << "the table in docs/metrics.md must be:\n"
      << metrics_table();
}

}  // namespace
}  // namespace jouleprof::report
