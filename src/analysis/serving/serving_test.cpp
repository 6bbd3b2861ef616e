#include "model/activity/serving.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "analysis/serving/toy_engine_test.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using simulated::Owed;
using simulated::Server;

model::ServingProfile profile_of(const Server& server) {
  const Run run(server.recording());
  const auto& made = run.serving();
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? *made : model::ServingProfile{};
}

class Serving : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server = std::make_unique<Server>(5);
    server->run(40);
    profile = std::make_unique<model::ServingProfile>(profile_of(*server));
  }
  static void TearDownTestSuite() {
    server.reset();
    profile.reset();
  }
  static inline std::unique_ptr<Server> server;
  static inline std::unique_ptr<model::ServingProfile> profile;
};

TEST_F(Serving, PartsSumToTheCounter) {
  ASSERT_EQ(profile->boards.size(), 1U);
  const auto& b = profile->boards[0];
  EXPECT_EQ(b.idle_levels.value() + b.between + b.requests + b.unattributed, b.measured.energy);
  Energy requests;
  for (const auto& r : profile->requests) {
    requests += r.energy;
    EXPECT_EQ(r.prefill + r.decode, r.energy) << r.id;
  }
  Energy tenants;
  for (const auto& t : profile->tenants) tenants += t.energy;
  EXPECT_EQ(requests, b.requests);
  EXPECT_EQ(tenants, b.requests);
  EXPECT_LT(std::abs(b.unattributed.joules()), 0.01 * b.requests.joules());
}

TEST_F(Serving, EveryTenantsTruthIsInside) {
  ASSERT_EQ(profile->tenants.size(), 3U);
  for (const auto& t : profile->tenants) {
    const Owed& owed = server->of_tenant[t.tenant];
    EXPECT_NEAR(t.energy.joules(), owed.energy, t.regression.joules()) << t.tenant;
    EXPECT_NEAR(t.energy.joules() / owed.energy, 1, 0.03) << t.tenant;
    EXPECT_NEAR(t.marginal.joules() / owed.marginal, 1, 0.05) << t.tenant;
    EXPECT_LE(t.marginal, t.energy);
  }
}

TEST_F(Serving, RequestsTruthsAreInside) {
  std::size_t inside = 0;
  for (const auto& r : profile->requests) {
    const Owed& owed = server->of_request[r.id];
    inside += std::abs(r.energy.joules() - owed.energy) <= r.regression.joules() ? 1 : 0;
  }
  EXPECT_GE(static_cast<double>(inside), 0.95 * static_cast<double>(profile->requests.size()));
}

TEST_F(Serving, NamesWhatWasLostAndWhoFilledTheCache) {
  double recomputed = 0;
  double rejected = 0;
  std::size_t reusers = 0;
  for (const auto& r : profile->requests) {
    const Owed& owed = server->of_request[r.id];
    EXPECT_NEAR(r.rejected.joules(), owed.rejected, 0.1 * owed.rejected + 0.05) << r.id;
    EXPECT_NEAR(r.recomputed.joules(), owed.recomputed, 0.1 * owed.recomputed + 0.05) << r.id;
    recomputed += r.recomputed.joules();
    rejected += r.rejected.joules();
    if (r.cached > 0) {
      ++reusers;
      EXPECT_FALSE(r.filler.empty()) << r.id;
    }
    EXPECT_TRUE(r.finish) << r.id;
  }
  EXPECT_GT(recomputed, 0);
  EXPECT_GT(rejected, 0);
  EXPECT_GT(reusers, 0U);
}

// Mixes on a server that always has as many requests in flight: a step's fixed part goes to as many
// in each mix, so that a class has one mean energy. Then least squares on what the counter shows
// above idle finds the class means that the shares have; tests/gpu/serving_proof.py does the same
// on a GPU.
TEST(ServingMixes, ClassMeansAreWhatLeastSquaresOnTheCounterFinds) {
  const std::map<std::string, double> about{{"long_prefill", 37}, {"long_decode", 10}, {"chat", 6}};
  std::mt19937 random(11);
  std::vector<std::map<std::string, double>> mixes(12);
  for (auto& mix : mixes) {
    for (const auto& [tenant, joules] : about) {
      mix[tenant] = std::exponential_distribution<double>(1)(random) / joules;
    }
  }
  Server server(12);
  server.saturate(16, mixes, 8);
  const auto profile = profile_of(server);
  std::map<std::string, const model::RequestEnergy*> by_id;
  for (const auto& r : profile.requests) by_id[r.id] = &r;

  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, 3>;
  Matrix rows = Matrix::Zero(static_cast<Eigen::Index>(mixes.size()), 3);
  std::map<std::string, Eigen::Index> column;
  for (const auto& [tenant, joules] : about) column.emplace(tenant, column.size());
  Eigen::Array3d owed = Eigen::Array3d::Zero();
  Eigen::Array3d found = Eigen::Array3d::Zero();
  Eigen::Array3d count = Eigen::Array3d::Zero();
  std::map<std::uint32_t, double> begin;
  for (const auto& entry : server.entries) {
    const auto* step = std::get_if<model::ServingStep>(&entry);
    if (step == nullptr) continue;
    for (const auto& s : step->shares) begin.emplace(s.number, seconds(step->begin - at(0)));
  }
  for (const auto& f : server.flights) {
    const auto& r = *by_id.at("r" + std::to_string(f.number));
    const Eigen::Index k = column.at(r.tenant);
    for (std::size_t i = 0; i < mixes.size(); ++i) {
      const double from = i == 0 ? 1.0 : server.mix_ends[i - 1];
      const double first = begin.at(f.number);
      const double part = std::min(f.end, server.mix_ends[i]) - std::max(first, from);
      rows(static_cast<Eigen::Index>(i), k) += std::max(part, 0.0) / (f.end - first);
    }
    owed[k] += server.of_request[r.id].energy;
    found[k] += r.energy.joules();
    count[k] += 1;
  }
  for (std::size_t i = 0; i < mixes.size(); ++i) {
    const double from = i == 0 ? 1.0 : server.mix_ends[i - 1];
    const double to = server.mix_ends[i];
    rows.row(static_cast<Eigen::Index>(i)) /=
        server.truth.joules(from, to) - simulated::kIdle * (to - from);
  }
  const Eigen::Matrix3d inverse = rows.transpose().lazyProduct(rows).eval().inverse();
  const Eigen::Vector3d fitted = inverse * rows.colwise().sum().transpose();
  const auto freedom = static_cast<double>(rows.rows() - 3);
  const double variance = (rows.lazyProduct(fitted).array() - 1).square().sum() / freedom;
  for (const auto& [tenant, k] : column) {
    const double truth = owed[k] / count[k];
    const double half = 2.26 * std::sqrt(variance * inverse(k, k)) / truth;
    EXPECT_LT(half, 0.03) << tenant;
    EXPECT_NEAR(fitted[k] / truth, 1, 0.03) << tenant;
    EXPECT_NEAR(found[k] / owed[k], 1, 0.03) << tenant;
    EXPECT_NEAR(found[k] / count[k] / fitted[k], 1, 0.03) << tenant;
    RecordProperty(tenant,
                   fmt::format("{:.0f} requests, truth {:.3f} J, least squares {:.3f} +- {:.1f} %, "
                               "shares {:.3f}",
                               count[k], truth, fitted[k], 100 * half, found[k] / count[k]));
  }
}

// What a proxy before the server sees, as python/jouleprof/serving/_flight.py records it: spans of
// at most 50 ms, with the tokens of each request spread evenly over its prefill and its decoding.
model::Recording seen_by_a_proxy(const Server& server) {
  const auto& flights = server.flights;
  std::vector<double> edges;
  for (const auto& f : flights) edges.insert(edges.end(), {f.begin, f.first, f.end});
  const double last = *std::max_element(edges.begin(), edges.end());
  for (double t = flights.front().begin; t < last; t += 0.05) edges.push_back(t);
  std::sort(edges.begin(), edges.end());
  model::Recording r = server.recording();
  auto& bytes = r.traces.front().chunks.front().bytes;
  bytes.clear();
  model::append_serving(bytes, model::ServingView{false});
  model::append_serving(bytes, model::ServingDevice{0, "GPU-1"});
  for (const auto& entry : server.entries) {
    if (std::holds_alternative<model::ServedRequest>(entry)) model::append_serving(bytes, entry);
  }
  const auto part = [](double tokens, double begin, double end, double t) {
    const double done = end > begin ? std::clamp((t - begin) / (end - begin), 0.0, 1.0) : 1;
    return static_cast<std::uint32_t>(done * tokens);
  };
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const double a = edges[i];
    const double b = edges[i + 1];
    if (b - a < 1e-6) continue;
    model::ServingStep span{at(a), at(b), 0, {}};
    for (const auto& f : flights) {
      if (f.begin >= b || f.end <= a) continue;
      const bool prefill = b <= f.first + 1e-9;
      const double from = prefill ? f.begin : f.first;
      const double to = prefill ? f.first : f.end;
      const double tokens = prefill ? f.prompt - f.cached : f.answer - 1;
      const std::uint32_t before = part(tokens, from, to, a);
      span.shares.push_back({f.number, part(tokens, from, to, b) - before,
                             before + (prefill ? f.cached : f.prompt), 0, 0, 0, prefill});
    }
    if (!span.shares.empty()) model::append_serving(bytes, span);
  }
  for (const auto& entry : server.entries) {
    if (std::holds_alternative<model::FinishedRequest>(entry)) model::append_serving(bytes, entry);
  }
  return r;
}

TEST(ServingProxy, TenantsHaveAboutWhatTheirTokensCost) {
  Server server(11);
  server.run(40);
  const analysis::Run run(seen_by_a_proxy(server));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->in_flight);
  const auto& b = made->boards[0];
  EXPECT_EQ(b.idle_levels.value() + b.between + b.requests + b.unattributed, b.measured.energy);
  double truth = 0;
  for (const auto& [name, owed] : server.of_tenant) truth += owed.energy;
  EXPECT_NEAR(b.requests.joules() / truth, 1, 0.05);
  for (const auto& t : made->tenants) {
    const double owed = server.of_tenant[t.tenant].energy;
    EXPECT_NEAR(t.energy.joules() / owed, 1, 0.25) << t.tenant;
    RecordProperty(t.tenant, fmt::format("{:.3f}", t.energy.joules() / owed));
  }
  std::size_t inside = 0;
  for (const auto& r : made->requests) {
    const double owed = server.of_request[r.id].energy;
    inside += std::abs(r.energy.joules() - owed) <= r.regression.joules() ? 1 : 0;
  }
  EXPECT_GE(static_cast<double>(inside), 0.93 * static_cast<double>(made->requests.size()));
}

// The regression has one power for all times; each half second has its own.
TEST(ServingDrift, StepsAreScaledToTheMeasuredEnergy) {
  Server server(10);
  server.drift = 0.15;
  server.run(40);
  const auto profile = profile_of(server);
  ASSERT_FALSE(profile.requests.empty());
  std::size_t inside = 0;
  for (const auto& r : profile.requests) {
    const double owed = server.of_request[r.id].energy;
    inside += std::abs(r.energy.joules() - owed) <= 0.06 * owed + 0.3 ? 1 : 0;
  }
  EXPECT_GE(static_cast<double>(inside), 0.9 * static_cast<double>(profile.requests.size()));
}

// Two boards that do the same, as those of tensor-parallel ranks: each step is there for both.
model::Recording two_boards(const Server& server) {
  model::Recording r = server.recording();
  model::Domain second = r.domains.front();
  second.id = model::DomainId{1};
  second.device = "gpu1";
  second.uuid = "GPU-2";
  r.domains.push_back(second);
  const auto other = [](model::SensorId id) {
    return model::SensorId{static_cast<std::uint32_t>(id) + 10};
  };
  for (auto sensor : std::vector(r.sensors)) {
    sensor.id = other(sensor.id);
    sensor.domain = second.id;
    r.sensors.push_back(sensor);
  }
  for (auto reading : std::vector(r.readings.counters)) {
    reading.sensor = other(reading.sensor);
    r.readings.counters.push_back(reading);
  }
  for (auto reading : std::vector(r.readings.powers)) {
    reading.sensor = other(reading.sensor);
    r.readings.powers.push_back(reading);
  }
  auto& bytes = r.traces.front().chunks.front().bytes;
  model::append_serving(bytes, model::ServingDevice{1, "gpu1"});  // by its name
  for (const auto& entry : server.entries) {
    if (auto* step = std::get_if<model::ServingStep>(&entry)) {
      model::ServingStep same = *step;
      same.device = 1;
      model::append_serving(bytes, same);
    }
  }
  return r;
}

TEST(ServingRanks, TheEnergyOfARequestIsTheSumOverItsBoards) {
  Server server(9);
  server.run(12);
  const auto alone = profile_of(server);
  const analysis::Run run(two_boards(server));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->boards.size(), 2U);
  Energy requests;
  for (const auto& b : made->boards) {
    EXPECT_EQ(b.idle_levels.value() + b.between + b.requests + b.unattributed, b.measured.energy);
    EXPECT_EQ(b.requests, alone.boards[0].requests);
    requests += b.requests;
  }
  ASSERT_EQ(made->requests.size(), alone.requests.size());
  Energy sum;
  for (std::size_t i = 0; i < alone.requests.size(); ++i) {
    const auto& both = made->requests[i];
    const auto& one = alone.requests[i];
    EXPECT_EQ(both.energy, one.energy + one.energy) << one.id;
    EXPECT_EQ(both.prefill + both.decode, both.energy) << one.id;
    // The gain of the sensors of one kind is the same; the models of the boards are not.
    EXPECT_EQ(both.calibration, one.calibration + one.calibration) << one.id;
    EXPECT_NEAR(both.regression.joules(), std::sqrt(2) * one.regression.joules(), 1e-5) << one.id;
    // A step counts once, however many boards it has.
    EXPECT_EQ(both.steps, one.steps) << one.id;
    EXPECT_EQ(both.computed, one.computed) << one.id;
    EXPECT_DOUBLE_EQ(both.shared_with, one.shared_with) << one.id;
    sum += both.energy;
  }
  EXPECT_EQ(sum, requests);
}

// Two engines on one board: steps that overlap take turns, as contexts do, or run together (MPS).
class TwoEngines {
 public:
  TwoEngines(Server& first, Server& second, bool take_turns, double later)
      : take_turns_(take_turns) {
    read(first, queues_[0]);
    read(second, queues_[1]);
    queues_[1].front().gap += later;
    run();
    write(first, queues_[0]);
    write(second, queues_[1]);
    recording = first.recording_of(truth_);
    auto& trace = recording.traces.emplace_back(recording.traces.front());
    trace.pid = 72;
    trace.chunks.front().bytes.clear();
    for (auto entry : second.entries) {
      if (auto* request = std::get_if<model::ServedRequest>(&entry)) {
        request->model = "small";
        request->arrival = at(0);
      }
      model::append_serving(trace.chunks.front().bytes, entry);
    }
  }

  model::Recording recording;

 private:
  struct Turn {
    double gap = 0;  // since the step before
    double work = 0;
    double watts = 0;
    double begin = 0;
    double end = 0;
  };

  static void read(const Server& server, std::vector<Turn>& queue) {
    double before = 0;
    for (const auto& entry : server.entries) {
      const auto* step = std::get_if<model::ServingStep>(&entry);
      if (step == nullptr) continue;
      const double begin = seconds(step->begin - at(0));
      const double end = seconds(step->end - at(0));
      const double joules = server.truth.joules(begin, end);
      queue.push_back({begin - before, end - begin, joules / (end - begin) - simulated::kIdle});
      before = end;
    }
  }
  static void write(Server& server, const std::vector<Turn>& queue) {
    auto turn = queue.begin();
    for (auto& entry : server.entries) {
      auto* step = std::get_if<model::ServingStep>(&entry);
      if (step == nullptr) continue;
      step->begin = at(turn->begin);
      step->end = at(turn++->end);
    }
  }
  void run() {
    double now = 0;
    std::size_t next[2] = {0, 0};
    double left[2] = {queues_[0].front().gap, queues_[1].front().gap};
    bool works[2] = {false, false};
    const auto is_over = [&](int e) { return next[e] == queues_[e].size(); };
    while (!is_over(0) || !is_over(1)) {
      const double rate = take_turns_ && works[0] && works[1] ? 0.5 : 1;
      double length = 1e9;
      double watts = simulated::kIdle;
      for (const int e : {0, 1}) {
        if (!is_over(e)) length = std::min(length, left[e] / (works[e] ? rate : 1));
        if (works[e]) watts += rate * queues_[e][next[e]].watts;
      }
      truth_.hold(watts, length);
      now += length;
      for (const int e : {0, 1}) {
        if (is_over(e)) continue;
        left[e] -= length * (works[e] ? rate : 1);
        if (left[e] > 1e-9) continue;
        Turn& turn = queues_[e][next[e]];
        (works[e] ? turn.end : turn.begin) = now;
        if (works[e]) ++next[e];
        works[e] = !works[e];
        if (!is_over(e)) left[e] = works[e] ? turn.work : queues_[e][next[e]].gap;
      }
    }
    truth_.hold(simulated::kIdle, 1);
  }

  bool take_turns_ = false;
  std::vector<Turn> queues_[2];
  simulated::Truth truth_;
};

TEST(ServingEngines, OfTwoModelsOnABoardEachHasItsOwnCosts) {
  for (const auto& [take_turns, later] :
       {std::pair(true, 0.0), std::pair(false, 0.0), std::pair(true, 40.0)}) {
    SCOPED_TRACE(fmt::format("take turns: {}, later by {} s", take_turns, later));
    Server large(3);
    Server small(103);
    for (double* cost : {&small.cost.token_joules, &small.cost.decode_joules,
                         &small.cost.context_joules, &small.cost.token_time,
                         &small.cost.decode_time, &small.cost.context_time, &small.cost.watts})
      *cost *= 0.4;
    large.run(25);
    small.run(25);
    const analysis::Run run(TwoEngines(large, small, take_turns, later).recording);
    const auto& made = run.serving();
    ASSERT_TRUE(made) << made.error().message;
    double inside[2] = {0, 0};
    double count[2] = {0, 0};
    double found[2] = {0, 0};
    double truth[2] = {0, 0};
    for (const auto& r : made->requests) {
      const bool is_small = r.model == "small";
      const double owed = (is_small ? small : large).of_request[r.id].energy;
      inside[is_small] += std::abs(r.energy.joules() - owed) <= r.regression.joules() ? 1 : 0;
      ++count[is_small];
      found[is_small] += r.energy.joules();
      truth[is_small] += owed;
    }
    for (const int e : {0, 1}) {
      EXPECT_GE(inside[e], 0.9 * count[e]) << e;
      EXPECT_NEAR(found[e] / truth[e], 1, 0.03) << e;
    }
    const auto& b = made->boards.front();
    EXPECT_EQ(b.idle_levels.value() + b.between + b.requests + b.unattributed, b.measured.energy);
    EXPECT_THAT(made->warnings, testing::Not(testing::Contains(testing::HasSubstr("do not fit"))));
  }
}

// What another program draws in the time of steps is not the requests'.
TEST(ServingTroubles, AnotherProgramIsNotCharged) {
  Server server(6);
  server.run(30);
  model::Recording r = server.recording();
  const HostTime begin = at(7);
  const HostTime end = at(8.5);
  for (auto& reading : r.readings.powers) {
    if (reading.at > begin && reading.at < end) reading.power = reading.power + Power::watts(400);
  }
  const Energy others = Power::watts(400) * (end - begin);
  for (auto& reading : r.readings.counters) {
    reading.total +=
        Power::watts(400) * std::clamp(reading.before - begin, Duration{}, end - begin);
  }
  const analysis::Run run(std::move(r));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  const auto& b = made->boards[0];
  EXPECT_EQ(b.idle_levels.value() + b.between + b.requests + b.unattributed, b.measured.energy);
  EXPECT_GT(b.unattributed, Energy::joules(0.7 * others.joules()));
  EXPECT_FALSE(made->warnings.empty());
}

// Another program that uses half of the board's time from `begin` to the end, with the power that
// the server draws for as much time. The driver lists both once a second.
struct Foreign {
  double begin = 0;
  double watts = 0;
  double use = 0.5;
};

model::Recording shared_recording(const Server& server, const Foreign& foreign, bool listed) {
  model::Recording r = server.recording();
  const HostTime begin = at(foreign.begin);
  for (auto& reading : r.readings.powers) {
    if (reading.at > begin) reading.power = reading.power + Power::watts(foreign.watts);
  }
  for (auto& reading : r.readings.counters) {
    reading.total +=
        Power::watts(foreign.watts) * std::max<Duration>(reading.before - begin, Duration{});
  }
  for (const bool own : {true, false}) {
    model::Process process;
    process.id = model::ProcessId{own ? 0U : 1U};
    process.pid = own ? 71 : 90;
    process.start = own ? at(0) : begin;
    process.in_tree = own;
    r.processes.push_back(process);
  }
  for (double t = 0.9; t < server.truth.end(); t += 1) {
    if (listed) {
      const double busy = server.busy(t) - server.busy(t - 1);
      r.process_readings.gpu_processes.push_back(
          {model::ProcessId{0}, simulated::kGpu0, at(t), std::round(100 * busy) / 100, {}});
    }
    if (t > foreign.begin) {
      const double use = t - foreign.begin > 1 ? foreign.use : foreign.use * (t - foreign.begin);
      r.process_readings.gpu_processes.push_back(
          {model::ProcessId{1}, simulated::kGpu0, at(t), std::round(100 * use) / 100, {}});
    }
  }
  return r;
}

class SharedBoard : public testing::TestWithParam<double> {};

TEST_P(SharedBoard, RequestsHaveWhatTheServerUsed) {
  Server server(6);
  server.run(30);
  double truth = 0;
  for (const auto& [name, owed] : server.of_tenant) truth += owed.energy;
  const Foreign foreign{GetParam(), 0.5 * truth / server.busy(server.truth.end())};
  const double others = foreign.watts * (server.truth.end() - 0.3 - foreign.begin);
  const analysis::Run run(shared_recording(server, foreign, true));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  const auto& b = made->boards[0];
  EXPECT_EQ(b.idle_levels.value() + b.between + b.requests + b.unattributed, b.measured.energy);
  EXPECT_NEAR(b.requests.joules() / truth, 1, 0.1);
  EXPECT_NEAR(b.others.joules() / others, 1, 0.15);
  EXPECT_LE(b.others, b.unattributed);
  for (const auto& t : made->tenants) {
    EXPECT_NEAR(t.energy.joules() / server.of_tenant[t.tenant].energy, 1, 0.15) << t.tenant;
  }
  EXPECT_THAT(made->warnings, testing::Contains(testing::HasSubstr("are of other programs")));
}

INSTANTIATE_TEST_SUITE_P(FromThen, SharedBoard, testing::Values(4.0, 20.0));

TEST(ServingTroubles, AServerThatTheDriverDoesNotListIsNamed) {
  Server server(6);
  server.run(8);
  const Foreign foreign{2, 100};
  const analysis::Run run(shared_recording(server, foreign, false));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->boards[0].others, Energy{});
  EXPECT_THAT(made->warnings,
              testing::Contains(testing::HasSubstr("lists no process of the command")));
}

TEST(ServingTroubles, AProxysStepsAreSaidToBeSpans) {
  Server server(7);
  server.run(3);
  server.entries.push_back(model::ServingView{false});
  const auto profile = profile_of(server);
  EXPECT_TRUE(profile.in_flight);
  ASSERT_FALSE(profile.warnings.empty());
  EXPECT_NE(profile.warnings.back().find("tokens in flight"), std::string::npos);
}

TEST(ServingTroubles, RequestsOfAnEngineBehindAProxyCountOnce) {
  Server server(7);
  server.run(3);
  const auto alone = profile_of(server);
  model::Recording r = server.recording();
  auto proxy = r.traces.front();
  proxy.pid = 72;
  std::string bytes;
  model::append_serving(bytes, model::ServingView{false});
  auto& chunk = proxy.chunks.front();
  chunk.bytes = bytes + chunk.bytes;
  r.traces.insert(r.traces.begin(), proxy);
  const analysis::Run run(std::move(r));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->in_flight);
  ASSERT_EQ(made->requests.size(), alone.requests.size());
  for (std::size_t i = 0; i < alone.requests.size(); ++i) {
    EXPECT_EQ(made->requests[i].energy, alone.requests[i].energy);
  }
  EXPECT_THAT(made->warnings, testing::Contains(testing::HasSubstr("the proxy's are left out")));
}

Energy sum_of_parts(const model::ServedBoard& b) {
  return b.idle_levels.value_or(Energy{}) + b.between + b.requests + b.unattributed;
}

TEST(ServingTroubles, StepsOfNoKnownBoardHaveNoEnergy) {
  Server server(7);
  server.run(3);
  server.entries.front() = model::ServingDevice{0, "GPU-of-another-machine"};
  const auto profile = profile_of(server);
  ASSERT_EQ(profile.boards.size(), 1U);
  EXPECT_FALSE(profile.boards[0].is_divided);
  EXPECT_EQ(profile.boards[0].requests, Energy{});
  EXPECT_EQ(sum_of_parts(profile.boards[0]), profile.boards[0].measured.energy);
  for (const auto& r : profile.requests) {
    EXPECT_THAT(r.reason, testing::HasSubstr("name no GPU of the recording")) << r.id;
    EXPECT_FALSE(r.per_token());
  }
  for (const auto& t : profile.tenants) EXPECT_FALSE(t.is_known()) << t.tenant;
  EXPECT_THAT(profile.warnings,
              testing::Contains(testing::HasSubstr("name no GPU of this recording")));
}

// One step of each fifth request has the times of another clock.
TEST(ServingTroubles, ARequestWithAStepOutsideOfTheRecordingHasNoEnergy) {
  Server server(5);
  server.run(10);
  const auto before = profile_of(server);
  std::set<std::string> moved;
  for (auto& entry : server.entries) {
    auto* const step = std::get_if<model::ServingStep>(&entry);
    if (step == nullptr || step->shares.size() != 1 || moved.size() == 5) continue;
    if (!moved.insert("r" + std::to_string(step->shares[0].number)).second) continue;
    step->begin += std::chrono::hours{400'000};
    step->end += std::chrono::hours{400'000};
  }
  ASSERT_EQ(moved.size(), 5U);
  const auto profile = profile_of(server);
  const auto& b = profile.boards.at(0);
  EXPECT_EQ(sum_of_parts(b), b.measured.energy);
  Energy requests;
  for (const auto& r : profile.requests) {
    EXPECT_EQ(r.is_known(), !moved.contains(r.id)) << r.id;
    EXPECT_EQ(r.reason, r.is_known() ? "" : "1 of its steps lie outside of the recording");
    requests += r.energy;
  }
  EXPECT_EQ(requests, b.requests);
  EXPECT_LT(b.requests, before.boards.at(0).requests);
  Energy tenants;
  std::uint64_t without = 0;
  for (const auto& t : profile.tenants) {
    tenants += t.energy;
    without += t.without_energy;
    EXPECT_EQ(t.prefill + t.decode, t.energy);
    EXPECT_LT(t.paid_tokens, t.tokens_out + 1);
  }
  EXPECT_EQ(tenants, b.requests);
  EXPECT_EQ(without, moved.size());
  EXPECT_THAT(profile.warnings,
              testing::Contains(testing::HasSubstr("steps lie outside of the recording")));
}

TEST(ServingTroubles, ARequestWithoutStepsHasNoEnergy) {
  Server server(7);
  server.run(3);
  server.entries.push_back(
      model::ServedRequest{900, at(1.5), "waits", "toy", "lone", model::kNone});
  const auto profile = profile_of(server);
  for (const auto& r : profile.requests) {
    EXPECT_EQ(r.reason, r.id == "waits" ? "no step of it was recorded" : "") << r.id;
  }
  for (const auto& t : profile.tenants) EXPECT_EQ(t.is_known(), t.tenant != "lone");
}

TEST(ServingPart, HasItsRequestsAndNoJoulesOfATokenOfOthers) {
  Server server(5);
  server.run(12);
  const analysis::Run run(server.recording());
  const auto& whole = run.serving();
  ASSERT_TRUE(whole) << whole.error().message;
  const auto& made = run.serving({std::chrono::seconds{2}, std::chrono::seconds{4}});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_GT(made->requests.size(), 3U);
  EXPECT_LT(made->requests.size(), whole->requests.size() - 5);
  std::size_t cut = 0;
  std::map<std::string, std::uint64_t> requests;
  Energy sum;
  for (const auto& r : made->requests) {
    EXPECT_GT(r.energy, Energy{}) << r.id;
    EXPECT_LT(r.arrival, at(4.2)) << r.id;
    EXPECT_GT(r.finish.value(), at(2.2)) << r.id;
    EXPECT_EQ(r.per_token().has_value(), !r.is_cut) << r.id;
    cut += r.is_cut ? 1 : 0;
    ++requests[r.tenant];
    sum += r.energy;
  }
  EXPECT_GT(cut, 0U);
  EXPECT_LT(cut, made->requests.size());
  EXPECT_EQ(sum, made->boards.at(0).requests);
  for (const auto& t : made->tenants) EXPECT_EQ(t.requests, requests[t.tenant]);
  for (const auto& r : whole->requests) EXPECT_TRUE(r.per_token()) << r.id;
}

// A server that the command left running, or one that ran before.
TEST(ServingPart, ARequestOutsideOfTheCommandsTimeHasNoEnergyOfZero) {
  Server server(1);
  server.run(10);
  auto recording = server.recording();
  recording.run.work_begin = at(4.2);
  recording.run.work_end = at(8.2);
  const analysis::Run run(std::move(recording));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  std::map<std::string, double> joules, tokens;
  for (const auto& r : made->requests) {
    const bool is_outside = r.finish.value() < at(4.2) || r.arrival > at(8.2);
    if (is_outside) {
      EXPECT_EQ(r.reason, "its steps ran before the command or after it") << r.id;
      EXPECT_FALSE(r.per_token()) << r.id;
    }
    if (!r.per_token()) continue;
    EXPECT_GT(r.energy, Energy{}) << r.id;
    joules[r.tenant] += server.of_request[r.id].energy;
    tokens[r.tenant] += static_cast<double>(r.tokens_out);
  }
  std::size_t with_tokens = 0;
  for (const auto& t : made->tenants) {
    if (!t.per_token()) continue;
    ++with_tokens;
    EXPECT_NEAR(*t.per_token(), joules[t.tenant] / tokens[t.tenant], 0.02 * *t.per_token());
  }
  EXPECT_GT(with_tokens, 0U);
}

// A step that cannot be costs no other step.
TEST(ServingTroubles, ImpossibleStepsAreLeftOutAloneAndNamed) {
  Server server(8);
  server.run(3);
  const auto before = profile_of(server);
  const model::StepShare share{0, 1, 5, 0, 2, 0, false};
  const auto place = server.entries.begin() + 20;
  server.entries.insert(place, {model::ServingStep{at(1.1), at(1.2), 0, {share}},
                                model::ServingStep{at(1.2), at(1.1), 0, {{0, 1, 5}}},
                                model::ServingStep{at(1.2), at(99'000), 0, {{0, 1, 5}}}});
  auto recording = server.recording();
  recording.traces[0].status.problem = "the disk was full";
  const analysis::Run run(std::move(recording));
  const auto& made = run.serving();
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->requests.size(), before.requests.size());
  for (std::size_t i = 0; i < before.requests.size(); ++i) {
    EXPECT_EQ(made->requests[i].energy, before.requests[i].energy);
  }
  EXPECT_THAT(made->warnings, testing::Contains(testing::HasSubstr("3 steps cannot be")));
  EXPECT_THAT(made->warnings, testing::Contains(testing::HasSubstr("the disk was full")));
}

TEST(ServingTroubles, LostStepsAreNamed) {
  Server server(8);
  server.run(3);
  server.entries.push_back(model::ServingLoss{12, 3});
  const auto profile = profile_of(server);
  ASSERT_FALSE(profile.warnings.empty());
  EXPECT_NE(profile.warnings.back().find("12 steps and 3 requests"), std::string::npos);
}

TEST(ServingCodec, EntriesAreReadAsWritten) {
  const std::vector<model::ServingEntry> all{
      model::ServedRequest{7, at(1), "id", "model", "tenant", 3},
      model::FinishedRequest{7, at(2), 5, 6},
      model::ServingStep{at(1), at(2), 0, {{7, 8, 9, 1, 2, 3, true}, {8, 1, 0, 0, 0, 0, false}}},
      model::ServingDevice{0, "GPU-1"},
      model::ServingLoss{4, 5},
      model::ServingView{false}};
  std::string bytes;
  for (const auto& entry : all) model::append_serving(bytes, entry);
  std::vector<model::ServingEntry> read;
  const auto take = [&](const auto& entry) { read.push_back(entry); };
  EXPECT_TRUE(model::decode_serving(bytes, take));
  EXPECT_EQ(read, all);
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    read.clear();
    const bool whole = model::decode_serving(std::string_view(bytes).substr(0, size), take);
    EXPECT_TRUE(!whole || read.size() < all.size()) << size;
  }
  bytes[0] = 99;  // of a newer version
  read.clear();
  EXPECT_TRUE(model::decode_serving(bytes, take));
  EXPECT_EQ(read.size(), all.size() - 1);
}

}  // namespace
}  // namespace jouleprof::analysis
