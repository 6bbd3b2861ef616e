#include "analysis/serving/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/activity/activity_table.h"
#include "analysis/kernels/kernel_evidence.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/serving/step_model.h"
#include "analysis/timeline/sensors/error_model.h"
#include "model/activity/serving.h"

namespace jouleprof::analysis {
namespace {

using Eigen::VectorXd;

constexpr double kSlice = 0.5;       // seconds over which steps are scaled to the measured energy
constexpr double kPoor = 0.5;        // of the variance of power, that steps explain
constexpr double kMostScale = 1.25;  // more is the work of others, and less a model that is wrong
// Relative standard error of what is divided by the tokens in flight: of simulated requests 95 %
// were within 37 % of what the batches cost them.
constexpr double kInFlight = 0.2;
constexpr double kAlone = 0.98;  // of the work on a board: observations are of the server alone
constexpr double kEnoughAlone = 0.3;  // of the observations, for a fit to them only

struct LoggedStep {
  HostTime begin{};
  HostTime end{};
  std::size_t first = 0;  // its shares go up to first + count
  std::size_t count = 0;
  std::size_t engine = 0;
};

struct LoggedShare {
  std::uint32_t request = 0;  // index into Log::requests
  model::StepShare share;
};

// The steps of one board, and the requests of all.
struct Log {
  std::vector<model::RequestEnergy> requests;
  std::vector<std::vector<LoggedStep>> steps;  // by board, in order of their begins
  std::vector<LoggedShare> shares;
  std::uint64_t without_device = 0;
  std::vector<std::uint64_t> steps_of;     // of each request, wherever and whenever they were
  std::vector<std::uint64_t> unplaced_of;  // of these: on no board
  model::ServingLoss lost;
  std::uint64_t impossible = 0;  // entries that were left out
  std::vector<std::string> problems;
  bool in_flight = false;
  bool has_proxy = false;  // whose requests are left out
};

// What part of a board's work the command's processes did, by the rule for processes: what others
// did, or can have done, is of no request.
class OwnPart {
 public:
  OwnPart(const model::Recording& recording, const model::Domain& domain, HostTime begin,
          HostTime end) {
    bool seen = false;
    double not_own = 0;
    for (const UseSlice& slice : recorded_use(recording, domain, begin, end)) {
      double own = 0;
      double all = 0;
      for (const Claim& claim : slice.claims) {
        if (claim.at_rest) continue;
        const Owner owner = owner_of(claim, recording.processes);
        all += claim.weight;
        if (owner == Owner::kProcess || owner == Owner::kCommand) own += claim.weight;
      }
      const double part = all > 0 ? own / all : 1;
      seen = seen || own > 0;
      not_own += (1 - part) * seconds(slice.end - slice.begin);
      parts_.push_back({slice.begin, slice.end, part});
    }
    // A server that the driver does not list as the command's, as in many containers.
    if (!seen) {
      is_unlisted_ = not_own > 0;
      parts_.clear();
    }
  }

  // Mean over [begin, end]; 1 where nothing is known.
  double of(HostTime begin, HostTime end) const {
    auto part =
        std::ranges::partition_point(parts_, [&](const Interval& p) { return p.end <= begin; });
    double sum = 0;
    double length = 0;
    for (; part != parts_.end() && part->begin < end; ++part) {
      const double time = seconds(std::min(part->end, end) - std::max(part->begin, begin));
      sum += part->own * time;
      length += time;
    }
    return length > 0 ? sum / length : 1;
  }
  bool is_unlisted() const { return is_unlisted_; }

 private:
  struct Interval {
    HostTime begin{};
    HostTime end{};
    double own = 1;
  };
  std::vector<Interval> parts_;  // in order
  bool is_unlisted_ = false;
};

class LogReader {
 public:
  LogReader(const model::Recording& recording, std::span<const ServingBoard> boards)
      : recording_(recording), boards_(boards) {
    log_.steps.resize(boards.size());
  }

  Result<Log> read() {
    // Where an engine recorded its batches, a proxy before it saw the same requests.
    const auto& traces = recording_.traces;
    const bool has_batches = std::ranges::any_of(
        traces, [](const auto& trace) { return has_step(trace) && !is_proxy(trace); });
    for (const auto& trace : traces) {
      if (has_batches && is_proxy(trace)) {
        log_.has_proxy = true;
        continue;
      }
      pid_ = trace.pid;
      known_.clear();
      engine_.reset();
      devices_.clear();
      model::ServingLoss lost;
      bool any = false;
      for (const auto& chunk : trace.chunks) {
        if (chunk.kind != model::ChunkKind::kServing) continue;
        const bool decoded = model::decode_serving(
            chunk.bytes,
            [&](const model::ServingEntry& e) {
              if (const auto* loss = std::get_if<model::ServingLoss>(&e)) lost = *loss;
              std::visit([this](const auto& entry) { take(entry); }, e);
            },
            &log_.impossible);
        any = true;
        if (!decoded) {
          return fail(Errc::kCorrupt,
                      "steps of an inference server in the recording cannot be read");
        }
      }
      if (any && !trace.status.problem.empty()) {
        log_.problems.push_back(
            fmt::format("{} (pid {}): {}", trace.program, trace.pid, trace.status.problem));
      }
      log_.lost.steps += lost.steps;
      log_.lost.requests += lost.requests;
    }
    for (auto& steps : log_.steps) {
      std::ranges::stable_sort(steps,
                               [](const auto& a, const auto& b) { return a.begin < b.begin; });
    }
    return std::move(log_);
  }

 private:
  template <typename Entry>
  static bool has(const model::Trace& trace, const std::function<bool(const Entry&)>& wanted) {
    return std::ranges::any_of(trace.chunks, [&](const auto& chunk) {
      bool found = false;
      if (chunk.kind == model::ChunkKind::kServing) {
        model::decode_serving(chunk.bytes, [&](const model::ServingEntry& e) {
          const auto* entry = std::get_if<Entry>(&e);
          found = found || (entry != nullptr && wanted(*entry));
        });
      }
      return found;
    });
  }
  static bool is_proxy(const model::Trace& trace) {
    return has<model::ServingView>(trace, [](const auto& view) { return !view.batches; });
  }
  static bool has_step(const model::Trace& trace) {
    return has<model::ServingStep>(trace, [](const auto&) { return true; });
  }

  std::uint32_t index_of(std::uint32_t number) {
    const auto [at, is_new] =
        known_.try_emplace(number, static_cast<std::uint32_t>(log_.requests.size()));
    if (is_new) {  // its begin was lost: it is there without a name
      auto& request = log_.requests.emplace_back();
      log_.steps_of.push_back(0);
      log_.unplaced_of.push_back(0);
      request.pid = pid_;
      request.id = fmt::format("#{}", number);
    }
    return at->second;
  }

  void take(const model::ServedRequest& r) {
    auto& request = log_.requests[index_of(r.number)];
    request.id = r.id;
    request.model = r.model;
    request.tenant = r.tenant;
    request.arrival = r.arrival;
    if (const auto filler = known_.find(r.filler); filler != known_.end()) {
      request.filler = log_.requests[filler->second].id;
    }
  }
  void take(const model::FinishedRequest& f) {
    auto& request = log_.requests[index_of(f.number)];
    request.finish = f.at;
    request.tokens_in = f.tokens_in;
    request.tokens_out = f.tokens_out;
  }
  void take(const model::ServingDevice& d) { devices_[d.number] = d.name; }
  void take(const model::ServingLoss&) {}
  void take(const model::ServingView& view) { log_.in_flight = log_.in_flight || !view.batches; }
  void take(const model::ServingStep& s) {
    if (s.end <= s.begin) return;
    const auto board = board_of(s.device);
    for (const auto& share : s.shares) {
      const std::uint32_t request = index_of(share.number);
      ++log_.steps_of[request];
      if (!board) ++log_.unplaced_of[request];
    }
    if (!board) {
      ++log_.without_device;
      return;
    }
    if (!engine_ && !s.shares.empty()) engine_ = engine_of(s.shares.front().number);
    log_.steps[*board].push_back(
        {s.begin, s.end, log_.shares.size(), s.shares.size(), engine_.value_or(0)});
    for (const auto& share : s.shares) log_.shares.push_back({index_of(share.number), share});
  }

  // Programs that serve one model are one engine: a restart has the costs of before.
  std::size_t engine_of(std::uint32_t number) {
    const std::string& model = log_.requests[index_of(number)].model;
    const auto key = model.empty() ? fmt::format("pid {}", pid_) : "model " + model;
    return engines_.try_emplace(key, engines_.size()).first->second;
  }

  std::optional<std::size_t> board_of(std::uint32_t device) const {
    if (device == model::kNone)
      return boards_.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;
    const auto name = devices_.find(device);
    if (name == devices_.end()) return std::nullopt;
    for (std::size_t i = 0; i < boards_.size(); ++i) {
      const auto& domain = *boards_[i].domain;
      if (name->second == domain.uuid || name->second == domain.device) return i;
    }
    return std::nullopt;
  }

  const model::Recording& recording_;
  std::span<const ServingBoard> boards_;
  Log log_;
  pid_t pid_ = 0;
  std::map<std::string, std::size_t> engines_;
  std::optional<std::size_t> engine_;                       // of the trace
  std::unordered_map<std::uint32_t, std::uint32_t> known_;  // of the trace, by number
  std::unordered_map<std::uint32_t, std::string> devices_;
};

// Joules of one request, or of a tenant's, on one board.
struct Sum {
  double energy = 0;
  double fixed = 0;    // of the energy: parts of what is fixed in steps that were not its own alone
  double prefill = 0;  // of the energy
  double recomputed = 0;
  double rejected = 0;
  double idle_share = 0;
  double idle_time = 0;  // seconds of its own time: what an error of the idle power moves
  VectorXd factor;       // by the model's watts
};

// Divides the energy of one board.
class Board {
 public:
  Board(const model::Recording& recording, const ServingBoard& board, const Log& log,
        const std::vector<LoggedStep>& steps, const std::vector<std::uint32_t>& tenant_of,
        std::size_t tenants)
      : recording_(recording),
        board_(board),
        log_(log),
        logged_(steps),
        tenant_of_(tenant_of),
        tenants_(tenants),
        own_(recording, *board.domain, steps.empty() ? HostTime{} : steps.front().begin,
             last_end(steps)) {
    if (!logged_.empty()) time_.origin = logged_.front().begin;
    for (const LoggedStep& s : logged_) {
      BoardStep step{time_.seconds_of(s.begin),
                     time_.seconds_of(s.end),
                     {},
                     false,
                     engines_.try_emplace(s.engine, engines_.size()).first->second};
      for (std::size_t i = 0; i < s.count; ++i) {
        const auto& share = log.shares[s.first + i].share;
        const StepWork work = work_of(share);
        for (std::size_t k = 0; k < kWorkKinds; ++k) step.work[k] += work[k];
        step.prefill = step.prefill || (share.prefill && share.tokens > 0);
      }
      steps_.push_back(step);
    }
  }

  // False: its energy is not known.
  bool measure(HostTime begin, HostTime end) {
    EnergyTimeline& timeline = *board_.timeline;
    const auto extent = timeline.extent();
    if (!extent) return false;
    begin = std::max(begin, extent->begin);
    end = std::min(end, extent->end);
    if (end <= begin) return false;
    const auto measured = timeline.energy(begin, end);
    if (!measured) return false;
    out.domain = *board_.domain;
    out.measured = *measured;
    fit(*extent);
    const auto levels = board_.levels->split(*measured, begin, end);
    if (levels.rest) out.rest = levels.rest->energy;
    if (levels.held) out.held = levels.held->energy;
    idle_power_ = model_ ? model_->idle_watts() : 0;
    has_levels_ = levels.idle.has_value();
    out.idle_levels = levels.idle;
    if (!has_levels_) {
      out.held.reset();
      if (model_) {
        out.idle_levels = std::clamp(Energy::joules(idle_power_ * seconds(end - begin)), Energy{},
                                     measured->energy);
      } else {
        out.rest.reset();  // a part of what is unattributed
      }
    }
    out.unattributed = measured->energy - out.idle_levels.value_or(Energy{});
    out.steps = steps_.size();
    begin_ = begin;
    end_ = end;
    return true;
  }

  // Divides what was measured; parts of requests in `without` are unattributed.
  void divide(std::vector<bool> without = {}) {
    by_request.assign(log_.requests.size(), {});
    by_tenant.assign(tenants_, {});
    divided_.assign(steps_.size(), false);
    if (!model_) return;
    without_ = std::move(without);
    out.steps = 0;
    out.busy = {};
    beyond_ = fixed_sum_ = fixed_steps_ = 0;
    out.is_divided = true;
    divide_all(begin_, end_);
  }

  // Calls `take` with the request of each share of a step in [begin, end] that was not divided.
  template <typename Take>
  void for_each_undivided(HostTime begin, HostTime end, Take take) const {
    for (std::size_t i = 0; i < logged_.size(); ++i) {
      const LoggedStep& s = logged_[i];
      if (divided_[i] || s.end <= begin || s.begin >= end) continue;
      for (std::size_t k = s.first; k < s.first + s.count; ++k) take(log_.shares[k].request);
    }
  }

  double gain() const { return board_.timeline->sensor_scale().gain_most(); }

  // Half of a 95 % interval, without the sensor's gain.
  double regression_of(const Sum& sum) const {
    if (!model_ || sum.factor.size() == 0) return 0;
    const double of_model = log_.in_flight ? kInFlight : kErrors.kernel_power;
    return kErrors.normal95 *
           std::sqrt(std::max(model_->variance(sum.factor), 0.0) +
                     std::pow(of_model * sum.energy, 2) + std::pow(idle_sigma_ * sum.idle_time, 2));
  }
  bool is_fixed_part_known() const { return !model_ || model_->is_fixed_part_known(); }
  bool has_model() const { return model_.has_value(); }
  bool has_steps() const { return !steps_.empty(); }
  bool is_idle_unseen() const { return idle_unseen_; }
  bool is_unlisted() const { return own_.is_unlisted(); }
  double others_joules() const { return beyond_; }

  model::ServedBoard out;

 private:
  const model::Recording& recording_;
  const ServingBoard& board_;
  const Log& log_;
  const std::vector<LoggedStep>& logged_;
  const std::vector<std::uint32_t>& tenant_of_;
  std::size_t tenants_;
  OwnPart own_;

 public:
  std::vector<Sum> by_request;
  std::vector<Sum> by_tenant;

 private:
  void fit(const EnergyTimeline::Extent& extent) {
    std::vector<BoardStep> known;  // with readings
    const double first = time_.seconds_of(extent.begin);
    const double last = time_.seconds_of(extent.end);
    for (const BoardStep& s : steps_) {
      if (s.begin >= first && s.end <= last) known.push_back(s);
    }
    if (known.empty()) return;
    ActivityTable around;  // what kernel_evidence() needs
    around.time = time_;
    for (const BoardStep& s : known) {
      const double begin = std::max(
          s.begin,
          around.bins.empty() ? s.begin : around.bins.back().begin + around.bins.back().width);
      if (s.end <= begin) continue;
      around.bins.push_back({begin, s.end - begin, around.entries.size()});
      around.entries.push_back({0, static_cast<float>(s.end - begin)});
    }
    around.classes.resize(1);
    around.begin = known.front().begin;
    around.end = around.bins.back().begin + around.bins.back().width;
    auto evidence = kernel_evidence(recording_, *board_.timeline, around, *board_.levels, {});
    without_others(evidence);
    idle_unseen_ = evidence.idle_unseen;
    const auto fit_to = [&](std::span<const BoardStep> steps) {
      return StepModel::fit(steps, engines_.size(), time_, evidence.observed, evidence.idle,
                            board_.timeline->time_constant());
    };
    // Steps that overlap run together, or take turns: the power says which.
    model_ = fit_to(known);
    if (auto turns = known; model_ && take_turns(turns)) {
      auto other = fit_to(turns);
      if (other && other->explained() > model_->explained()) {
        model_ = std::move(other);
        known = std::move(turns);
        take_turns(steps_);
      }
    }
    if (!model_) return;
    idle_sigma_ = model_->idle_sigma();
    out.explained = model_->explained();
    // Means over the engines.
    double time = 0;
    StepWork work{}, joules{};
    for (const BoardStep& s : known) {
      time += s.own_time();
      out.step_watts += model_->step_watts(s.engine) * s.own_time();
      for (std::size_t k = 0; k < 2; ++k) {
        StepWork alone{};
        work[k] += alone[k] = s.work[k];
        joules[k] += model_->joules_of(model_->own_factor(s.engine, alone));
      }
    }
    out.step_watts /= time;
    out.joules_per_prefill_token = work[0] > 0 ? joules[0] / work[0] : 0;
    out.joules_per_decode_token = work[1] > 0 ? joules[1] / work[1] : 0;
  }

  static HostTime last_end(const std::vector<LoggedStep>& steps) {
    HostTime end{};
    for (const LoggedStep& s : steps) end = std::max(end, s.end);
    return end;
  }

  // The server's part of observed power: of the times that it had for itself where they are enough,
  // else in proportion to its use.
  void without_others(KernelEvidence& evidence) const {
    const auto part_of = [this](const ObservedPower& s) {
      return own_.of(time_.host_of(s.begin), time_.host_of(s.end));
    };
    double alone = 0;
    double all = 0;
    for (const ObservedPower& s : evidence.observed) {
      all += s.end - s.begin;
      if (part_of(s) >= kAlone) alone += s.end - s.begin;
    }
    if (alone == all) return;
    // Others worked between the steps, too.
    if (board_.levels->held) {
      evidence.idle = {board_.levels->held->power.watts(),
                       std::max(board_.levels->held->error.watts(), kErrors.other_run)};
      evidence.idle_unseen = true;
    }
    if (alone >= kEnoughAlone * all) {
      std::erase_if(evidence.observed, [&](const auto& s) { return part_of(s) < kAlone; });
      return;
    }
    const double idle = evidence.idle.watts;
    for (ObservedPower& s : evidence.observed) s.watts = idle + (s.watts - idle) * part_of(s);
  }

  // Of [begin, end]: above rest and held; absent where the energy is not known.
  std::optional<std::pair<double, double>> active_and_idle(HostTime begin, HostTime end) const {
    const auto energy = board_.timeline->energy(begin, end);
    if (!energy) return std::nullopt;
    const double all = energy->energy.joules();
    double idle = idle_power_ * seconds(end - begin);
    if (has_levels_) {
      const auto levels = board_.levels->split(*energy, begin, end);
      if (levels.idle) idle = levels.idle->joules();
    }
    return std::pair{all - idle, idle};
  }

  void divide_all(HostTime begin, HostTime end) {
    double between = 0;
    double others = 0;
    for (std::size_t first = 0; first < steps_.size();) {
      std::size_t last = first + 1;
      while (last < steps_.size() && steps_[last].begin < steps_[first].begin + kSlice) ++last;
      divide_slice(first, last, begin, end, between, others);
      first = last;
    }
    out.between = Energy::joules(between);
    out.others = Energy::joules(others);
    const Energy active = out.measured.energy - out.idle_levels.value_or(Energy{});
    out.requests = Energy{};
    for (const Sum& sum : by_request) out.requests += Energy::joules(sum.energy);
    out.unattributed = active - out.between - out.requests;
  }

  void divide_slice(std::size_t first, std::size_t last, HostTime begin, HostTime end,
                    double& between, double& others) {
    const HostTime from = std::max(logged_[first].begin, begin);
    const bool is_last = last == steps_.size();
    HostTime to = is_last ? HostTime::min() : logged_[last].begin;
    for (std::size_t i = first; i < last; ++i) to = std::max(to, is_last ? logged_[i].end : to);
    to = std::min(to, end);
    if (to <= from) return;
    const auto known = active_and_idle(from, to);
    if (!known) return;
    const auto [measured, idle] = *known;
    const double of_others = std::max(measured, 0.0) * (1 - own_.of(from, to));
    const double active = measured - of_others;
    others += of_others;
    const double length = seconds(to - from);
    double busy = 0;      // seconds in steps
    double covered = 0;   // up to here
    double modelled = 0;  // joules above the model's idle power
    double reached = time_.seconds_of(from);
    for (std::size_t i = first; i < last; ++i) {
      const double part = part_within(i, from, to);
      modelled += part * model_->joules_of(model_->factor_of(steps_[i]));
      busy += part * steps_[i].time();
      const double a = std::max(reached, time_.seconds_of(from));
      const double b = std::min(steps_[i].end, time_.seconds_of(to));
      if (b > std::max(a, steps_[i].begin)) covered += b - std::max(a, steps_[i].begin);
      reached = std::max(reached, b);
    }
    if (busy <= 0) return;
    covered = std::min(covered, length);
    const double above = std::max(idle_power_ - idle / length, 0.0);  // of idle over the levels
    const double gap = std::clamp(above * (length - covered), 0.0, std::max(active, 0.0));
    between += gap;
    const double expected = modelled + above * covered;
    if (expected <= 0) return;
    const double scale = std::clamp((active - gap) / expected, 1 / kMostScale, kMostScale);
    beyond_ += std::abs(active - gap - scale * expected);
    const double idle_watts = idle / length;
    for (std::size_t i = first; i < last; ++i) {
      const double part = part_within(i, from, to);
      if (part <= 0) continue;
      const double of_time = covered / busy;  // of steps that overlap
      divide_step(i, part, scale, above * of_time * part * steps_[i].time(),
                  idle_watts * of_time * part * steps_[i].time());
    }
  }

  double part_within(std::size_t i, HostTime from, HostTime to) const {
    const double a = std::max(steps_[i].begin, time_.seconds_of(from));
    const double b = std::min(steps_[i].end, time_.seconds_of(to));
    return steps_[i].time() > 0 ? std::max(b - a, 0.0) / steps_[i].time() : 0;
  }

  // `idle_above`: joules of the step that are idle power above the levels; `idle_levels`: at the
  // levels.
  void divide_step(std::size_t i, double part, double scale, double idle_above,
                   double idle_levels) {
    const BoardStep& step = steps_[i];
    const LoggedStep& logged = logged_[i];
    divided_[i] = true;
    ++out.steps;
    out.busy += duration_of(part * step.time());
    if (logged.count == 0) return;  // unattributed
    const auto shares = std::span(log_.shares).subspan(logged.first, logged.count);
    const auto count = static_cast<double>(logged.count);
    double prefills = 0;
    for (const auto& s : shares) prefills += s.share.prefill && s.share.tokens > 0 ? 1 : 0;
    const VectorXd whole_all = model_->factor_of(step);
    VectorXd own_all = model_->own_factor(step.engine, step.work);
    VectorXd prefill_all = model_->prefill_factor(step.engine);
    if (prefills == 0) prefill_all.setZero();
    const double whole = model_->joules_of(whole_all);
    double own = model_->joules_of(own_all);
    double of_prefill = model_->joules_of(prefill_all);
    // A step that was shorter than its work suggests has no fixed part.
    const double fits = own + of_prefill > whole ? whole / (own + of_prefill) : 1;
    own *= fits;
    of_prefill *= fits;
    const double fixed = whole - own - of_prefill;
    const double times = part * scale;
    own_all *= fits;
    prefill_all *= fits;
    const VectorXd fixed_all = whole_all - own_all - prefill_all;

    bool one_tenant = true;
    bool one_prefill_tenant = true;
    std::optional<std::uint32_t> prefill_tenant;
    const std::uint32_t tenant = tenant_of_[shares.front().request];
    for (const auto& s : shares) {
      const std::uint32_t own_tenant = tenant_of_[s.request];
      one_tenant = one_tenant && own_tenant == tenant;
      if (!s.share.prefill || s.share.tokens == 0) continue;
      one_prefill_tenant = one_prefill_tenant && prefill_tenant.value_or(own_tenant) == own_tenant;
      prefill_tenant = own_tenant;
    }
    for (const auto& s : shares) {
      const StepWork work = work_of(s.share);
      const bool prefill = s.share.prefill && s.share.tokens > 0;
      const VectorXd own_factor = model_->own_factor(step.engine, work);
      const double mine = times * fits * model_->joules_of(own_factor);
      const double of_fixed = times * fixed / count + scale * idle_above / count;
      const double of_prefills = prefill ? times * of_prefill / prefills : 0;
      const double energy = mine + of_fixed + of_prefills;
      VectorXd factor = times * (own_factor * fits + fixed_all / count);
      if (prefill) factor += times / prefills * prefill_all;
      const auto tokens = static_cast<double>(std::max(s.share.tokens, 1U));
      const auto add = [&](Sum& sum, bool alone, bool prefills_alone) {
        sum.energy += energy;
        if (!alone) sum.fixed += of_fixed;
        if (!prefills_alone) sum.fixed += of_prefills;
        if (s.share.prefill) sum.prefill += energy;
        sum.recomputed += (mine + of_prefills) * s.share.recomputed / tokens;
        sum.rejected += mine * s.share.rejected / tokens;
        sum.idle_share += idle_levels / count;
        sum.idle_time += part * step.time() / count;
        if (sum.factor.size() == 0) sum.factor = VectorXd::Zero(factor.size());
        sum.factor += factor;
      };
      fixed_sum_ += of_fixed;
      if (!without_.empty() && without_[s.request]) continue;
      add(by_request[s.request], logged.count == 1, prefills == 1);
      add(by_tenant[tenant_of_[s.request]], one_tenant, one_prefill_tenant);
    }
    fixed_steps_ += part;
    out.fixed_joules = fixed_sum_ / fixed_steps_;
  }

  TimeBase time_;
  HostTime begin_{};
  HostTime end_{};
  std::vector<BoardStep> steps_;
  std::map<std::size_t, std::size_t> engines_;  // numbers of those on the board, by the log's
  std::vector<bool> divided_;                   // of the steps
  std::vector<bool> without_;  // by request: its parts are unattributed; empty: of none
  std::optional<StepModel> model_;
  bool idle_unseen_ = false;
  bool has_levels_ = false;
  double idle_power_ = 0;  // watts, of the regression
  double idle_sigma_ = 0;
  double beyond_ = 0;  // joules that steps do not explain
  double fixed_sum_ = 0;
  double fixed_steps_ = 0;
};

// Adds the figures of one board, whose energies become whole microjoules.
void add_sum(model::ServedEnergy& to, const Sum& sum, Energy energy, const Board& board) {
  if (sum.factor.size() == 0) return;
  const double joules = sum.energy;
  to.energy += energy;
  to.calibration += Energy::joules(board.gain() * joules);
  to.regression = Energy::joules(std::hypot(to.regression.joules(), board.regression_of(sum)));
  to.marginal += Energy::joules(std::max(joules - sum.fixed, 0.0));
  const Energy prefill =
      std::clamp(Energy::joules(sum.prefill), Energy{}, std::max(energy, Energy{}));
  to.prefill += prefill;
  to.decode += energy - prefill;
  to.recomputed += Energy::joules(sum.recomputed);
  to.rejected += Energy::joules(sum.rejected);
  to.idle_share += Energy::joules(sum.idle_share);
}

// Counts of each request over its steps in [begin, end]; a step on several boards counts once.
void count_steps(const Log& log, HostTime begin, HostTime end,
                 std::vector<model::RequestEnergy>& requests) {
  std::vector<double> others(requests.size());
  std::vector<double> time(requests.size());
  std::set<std::pair<HostTime, HostTime>> counted;
  for (std::size_t board = 0; board < log.steps.size(); ++board) {
    for (const LoggedStep& s : log.steps[board]) {
      if (s.begin < begin || s.begin > end) continue;
      if (log.steps.size() > 1 && !counted.emplace(s.begin, s.end).second) continue;
      const double length = seconds(s.end - s.begin);
      for (std::size_t i = s.first; i < s.first + s.count; ++i) {
        const auto& [r, share] = log.shares[i];
        others[r] += length * static_cast<double>(s.count - 1);
        time[r] += length;
        ++requests[r].steps;
        requests[r].computed += share.tokens;
        requests[r].cached += share.cached;
      }
    }
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (time[i] > 0) requests[i].shared_with = others[i] / time[i];
  }
}

// Why the energy of a request is not known: steps of it, of which nothing is.
struct Missing {
  std::uint64_t outside = 0;  // of the readings
  std::uint64_t unknown = 0;  // the energy of their time is not known, or not divided

  bool any() const { return outside + unknown > 0; }
};

std::string reason_of(std::uint64_t steps, std::uint64_t unplaced, const Missing& missing) {
  const auto steps_text = [](std::uint64_t n) { return fmt::format("{} of its steps", n); };
  if (steps == 0) return "no step of it was recorded";
  if (unplaced > 0) return steps_text(unplaced) + " name no GPU of the recording";
  if (missing.outside > 0) return steps_text(missing.outside) + " lie outside of the recording";
  if (missing.unknown > 0) return "the energy is not known of " + steps_text(missing.unknown);
  return "";
}

// Where the steps of a request lie.
struct Placed {
  bool inside = false;   // one in the chosen part of the recording, or in a part of it
  bool outside = false;  // one outside, or in a part outside
};

std::vector<Placed> placed_requests(const Log& log, HostTime begin, HostTime end) {
  std::vector<Placed> out(log.steps_of.size());
  for (const auto& steps : log.steps) {
    for (const LoggedStep& s : steps) {
      for (std::size_t i = s.first; i < s.first + s.count; ++i) {
        Placed& placed = out[log.shares[i].request];
        placed.inside |= s.end > begin && s.begin < end;
        placed.outside |= s.begin < begin || s.end > end;
      }
    }
  }
  return out;
}

// Of a request whose steps are nowhere, its own times decide.
bool is_within(const Placed& placed, const model::RequestEnergy& request, HostTime begin,
               HostTime end) {
  if (placed.inside || placed.outside) return placed.inside;
  return request.arrival < end && request.finish.value_or(end) > begin;
}

// Takes the steps out that have no readings over their whole time. Returns how many.
std::uint64_t remove_outside(const std::optional<EnergyTimeline::Extent>& extent, const Log& log,
                             std::vector<LoggedStep>& steps, std::vector<Missing>& missing) {
  if (!extent) return 0;
  return std::erase_if(steps, [&](const LoggedStep& s) {
    if (s.begin >= extent->begin && s.end <= extent->end) return false;
    for (std::size_t i = s.first; i < s.first + s.count; ++i) {
      ++missing[log.shares[i].request].outside;
    }
    return true;
  });
}

// What a tenant has of a request, but for energy.
void count(const model::RequestEnergy& request, model::TenantEnergy& tenant) {
  tenant.is_cut |= request.is_cut;
  const double before = static_cast<double>(tenant.steps);
  const double more = static_cast<double>(request.steps);
  if (before + more > 0) {
    tenant.shared_with =
        (tenant.shared_with * before + request.shared_with * more) / (before + more);
  }
  ++tenant.requests;
  if (request.is_known()) {
    tenant.paid_tokens += request.tokens_out;
  } else {
    ++tenant.without_energy;
  }
  tenant.steps += request.steps;
  tenant.tokens_in += request.tokens_in;
  tenant.tokens_out += request.tokens_out;
  tenant.computed += request.computed;
  tenant.cached += request.cached;
}

// Of a board that was divided: what keeps its energies from being the requests' alone.
void warn_of(const Board& board, std::vector<std::string>& warnings) {
  const auto& name = board.out.domain.device;
  if (board.is_idle_unseen() && board.has_model()) {
    warnings.push_back(fmt::format(
        "{}: idle power was not observed between steps; the intervals of requests include this",
        name));
  }
  if (!board.is_fixed_part_known()) {
    warnings.push_back(fmt::format(
        "{}: all steps were alike, so what is fixed in a step and what is a request's own cannot "
        "be separated: marginal energies are a guess, shares are not",
        name));
  }
  if (board.has_model() && board.out.explained < kPoor) {
    warnings.push_back(fmt::format(
        "{}: steps explain only {:.0f} % of the variance of power: another program may have used "
        "the GPU, or power was nearly constant",
        name, 100 * board.out.explained));
  }
  const double active = (board.out.requests + board.out.between + board.out.unattributed).joules();
  if (board.out.others.joules() > 0.01 * std::abs(active)) {
    warnings.push_back(fmt::format(
        "{}: {:.3g} J of the time of steps are of other programs, or can be: they are of no "
        "request; requests have what the command's processes used, in proportion to their "
        "utilisation",
        name, board.out.others.joules()));
  }
  if (board.is_unlisted()) {
    warnings.push_back(fmt::format(
        "{}: the driver lists no process of the command on it, so what other programs used is in "
        "the energy of requests",
        name));
  }
  if (board.others_joules() > 0.05 * std::abs(active)) {
    warnings.push_back(
        fmt::format("{}: {:.3g} J of the time of steps do not fit what the steps computed: "
                    "another program may "
                    "have used it",
                    name, board.others_joules()));
  }
}

}  // namespace

Result<model::ServingProfile> attribute_serving(const model::Recording& recording,
                                                std::span<const ServingBoard> boards,
                                                HostTime begin, HostTime end, bool is_part) {
  model::ServingProfile out;
  auto read = LogReader(recording, boards).read();
  if (!read) return forward_error(read);
  Log log = std::move(*read);
  out.requests = std::move(log.requests);
  log.requests.resize(out.requests.size());
  out.simulated = model::is_simulated(recording);
  if (out.requests.empty()) return out;

  std::map<std::string, std::uint32_t> tenants;
  std::vector<std::uint32_t> tenant_of;
  for (const auto& request : out.requests) {
    const auto [at, is_new] =
        tenants.try_emplace(request.tenant, static_cast<std::uint32_t>(tenants.size()));
    if (is_new) out.tenants.emplace_back().tenant = request.tenant;
    tenant_of.push_back(at->second);
  }
  count_steps(log, begin, end, out.requests);
  std::vector<Missing> missing(out.requests.size());
  std::vector<std::unique_ptr<Board>> divided;
  for (std::size_t i = 0; i < boards.size(); ++i) {
    const auto& name = boards[i].domain->device;
    const std::uint64_t outside =
        remove_outside(boards[i].timeline->extent(), log, log.steps[i], missing);
    if (outside > 0) {
      out.warnings.push_back(fmt::format(
          "{}: {} steps lie outside of the recording: their requests have no energy. The times of "
          "steps are those of Recorder.now(), CLOCK_MONOTONIC",
          name, outside));
    }
    // A board without steps is listed where steps may have been on it.
    if (log.steps[i].empty() && outside == 0 && log.without_device == 0) continue;
    auto board = std::make_unique<Board>(recording, boards[i], log, log.steps[i], tenant_of,
                                         out.tenants.size());
    if (board->measure(begin, end)) {
      if (board->has_steps() && !board->has_model()) {
        out.warnings.push_back(fmt::format(
            "{}: no sensor reports power over known times; its energy is of no request", name));
      }
      board->divide();
      board->for_each_undivided(begin, end, [&](std::uint32_t r) { ++missing[r].unknown; });
      divided.push_back(std::move(board));
      continue;
    }
    if (board->has_steps()) {
      out.warnings.push_back(fmt::format(
          "{}: no energy is known of the time of its steps; requests are without it", name));
    }
    for (const LoggedStep& s : log.steps[i]) {
      if (s.end <= begin || s.begin >= end) continue;
      for (std::size_t k = s.first; k < s.first + s.count; ++k) {
        ++missing[log.shares[k].request].unknown;
      }
    }
  }
  const std::vector<Placed> placed = placed_requests(log, begin, end);
  std::vector<bool> without(out.requests.size());
  for (std::size_t r = 0; r < out.requests.size(); ++r) {
    auto& reason = out.requests[r].reason;
    reason = reason_of(log.steps_of[r], log.unplaced_of[r], missing[r]);
    if (reason.empty() && placed[r].outside && !placed[r].inside) {
      reason = "its steps ran before the command or after it";
    }
    without[r] = !out.requests[r].is_known();
    out.requests[r].is_cut = placed[r].inside && placed[r].outside;
  }
  const bool any_without = std::ranges::find(without, true) != without.end();
  for (const auto& owned : divided) {
    Board& board = *owned;
    if (any_without) board.divide(without);  // the others have what they had
    for (std::size_t r = 0; r < out.requests.size(); ++r) {
      const Energy energy = Energy::joules(board.by_request[r].energy);
      add_sum(out.requests[r], board.by_request[r], energy, board);
    }
    // The parts of a tenant are whole microjoules already.
    std::vector<Energy> of_tenants(out.tenants.size());
    for (std::size_t r = 0; r < out.requests.size(); ++r) {
      of_tenants[tenant_of[r]] += Energy::joules(board.by_request[r].energy);
    }
    for (std::size_t t = 0; t < out.tenants.size(); ++t) {
      add_sum(out.tenants[t], board.by_tenant[t], of_tenants[t], board);
    }
    warn_of(board, out.warnings);
    out.provenance = combine(out.provenance, board.out.measured.provenance);
    out.boards.push_back(std::move(board.out));
  }
  const ClockMap clocks(recording.clock_points);
  std::vector<model::RequestEnergy> kept;
  for (std::size_t r = 0; r < out.requests.size(); ++r) {
    auto& request = out.requests[r];
    if (!recording.clock_points.empty()) request.arrived = clocks.to_real(request.arrival);
    if (is_part && !is_within(placed[r], request, begin, end)) continue;
    kept.push_back(request);
    count(request, out.tenants[tenant_of[r]]);
  }
  out.requests = std::move(kept);
  std::erase_if(out.tenants, [](const auto& tenant) { return tenant.requests == 0; });
  std::uint64_t without_energy = 0;
  for (auto& tenant : out.tenants) {
    without_energy += tenant.without_energy;
    if (tenant.without_energy == tenant.requests) {
      tenant.reason = "the energy of none of its requests is known";
    }
  }
  if (without_energy > 0) {
    out.warnings.push_back(fmt::format(
        "the energy of {} of {} requests is not known, and is unattributed; `--json` has the "
        "reason of each",
        without_energy, out.requests.size()));
  }
  std::ranges::stable_sort(out.requests,
                           [](const auto& a, const auto& b) { return a.arrival < b.arrival; });
  std::ranges::stable_sort(out.tenants,
                           [](const auto& a, const auto& b) { return a.energy > b.energy; });
  if (log.without_device > 0) {
    out.warnings.push_back(fmt::format(
        "{} steps name no GPU of this recording: their requests have no energy. With several GPUs "
        "give the recorder those of its steps: Recorder(devices=[\"gpu0\"])",
        log.without_device));
  }
  if (log.has_proxy) {
    out.warnings.push_back(
        "an engine recorded its batches, and a proxy the tokens in flight: requests and steps are "
        "the engine's, and the proxy's are left out");
  }
  out.in_flight = log.in_flight;
  if (log.in_flight) {
    out.warnings.push_back(
        "a proxy saw the tokens of requests and no batches: energy is divided by the tokens in "
        "flight; requests that did not pass by the proxy are in it");
  }
  for (const auto& problem : log.problems) out.warnings.push_back(problem);
  if (log.impossible > 0) {
    out.warnings.push_back(fmt::format(
        "{} steps cannot be, and are left out: they end before they begin, are longer than a day, "
        "or have more tokens rejected or recomputed than computed; their energy is unattributed or "
        "of other requests",
        log.impossible));
  }
  if (log.lost.steps + log.lost.requests > 0) {
    out.warnings.push_back(fmt::format(
        "{} steps and {} requests were not recorded, because they came faster than they could be "
        "written; their energy is unattributed or of other requests",
        log.lost.steps, log.lost.requests));
  }
  return out;
}

}  // namespace jouleprof::analysis
