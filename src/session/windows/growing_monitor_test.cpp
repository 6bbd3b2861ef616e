#include <gmock/gmock.h>

#include "session/windows/live_monitor.h"

namespace jouleprof::session {
namespace {

using testing::Contains;
using testing::HasSubstr;

HostTime first_second{};  // of a test

// Answers with 10 W of each measured domain since `from`.
class FixedSource final : public EnergySource {
 public:
  FixedSource(std::vector<model::Domain> domains, HostTime from)
      : domains_(std::move(domains)), from_(from) {}
  const std::vector<model::Domain>& domains() const override { return domains_; }
  const std::vector<model::DomainId>& visible_boards() const override { return boards_; }
  std::string_view kind() const override { return "own"; }
  std::uint32_t name(std::string_view text) override {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == text) return static_cast<std::uint32_t>(i + 1);
    }
    names.emplace_back(text);
    return static_cast<std::uint32_t>(names.size());
  }
  void begin(const spans::OpenWindow&) noexcept override {}
  void forget(const spans::OpenWindow&) noexcept override {}
  void add(const spans::WindowRecord& window) noexcept override { added.push_back(window); }
  Result<Energies> energy(HostTime begin, HostTime end, Duration) override {
    Energies out;
    for (const auto& d : domains_) {
      if (!d.unavailable_reason.empty()) {
        out.push_back(fail(Errc::kUnavailable, d.unavailable_reason));
      } else if (begin < from_) {
        out.push_back(fail(Errc::kUnavailable, "readings begin later"));
      } else {
        model::Measurement m;
        m.energy = Power::watts(10) * (end - begin);
        m.error = m.repeatability = Energy::joules(1);
        m.provenance = model::Provenance::kMeasured;
        out.push_back(m);
      }
    }
    return out;
  }
  Result<analysis::WindowTotal> total(std::uint32_t name, Duration) override {
    analysis::WindowTotal sum;
    for (const auto& d : domains_) {
      sum.energies.push_back(d.unavailable_reason.empty()
                                 ? Result<model::Measurement>(model::Measurement{})
                                 : fail(Errc::kUnavailable, d.unavailable_reason));
    }
    for (const auto& w : added) {
      if (w.name != name) continue;
      ++sum.count;
      const HostTime begin{Duration{w.begin}}, end{Duration{w.end}};
      if (begin < from_) continue;
      ++sum.resolved_count;
      for (auto& e : sum.energies) {
        if (e) e->energy += Power::watts(10) * (end - begin);
      }
    }
    return sum;
  }
  Result<model::Snapshot> snapshot() override {
    model::Snapshot now;
    for (const auto& d : domains_) {
      auto& s = now.domains.emplace_back();
      s.domain = d;
      s.reason = d.unavailable_reason;
      if (!d.unavailable_reason.empty()) continue;
      s.provenance = model::Provenance::kMeasured;
      s.energy = model::Measurement{};
      s.energy->energy = Energy::joules(7);
      s.power = Power::watts(10);
    }
    return now;
  }
  std::vector<std::string> warnings() override { return {}; }

  std::vector<std::string> names;
  std::vector<spans::WindowRecord> added;

 private:
  std::vector<model::Domain> domains_;
  std::vector<model::DomainId> boards_;
  HostTime from_;
};

model::Domain domain(std::uint32_t id, model::DomainKind kind, std::string device,
                     std::string uuid = "", std::string reason = "") {
  model::Domain d;
  d.id = model::DomainId{id};
  d.kind = kind;
  d.device = std::move(device);
  d.uuid = std::move(uuid);
  d.unavailable_reason = std::move(reason);
  return d;
}

// After the monitor's own clock, which decides when boards were opened.
HostTime second(int s) { return first_second + std::chrono::seconds{s}; }

struct Grown {
  Grown() {
    // Boards appear at second 8 at the earliest, and before 11.
    first_second = HostClock::now() - std::chrono::seconds{8};
    auto source = std::make_unique<FixedSource>(
        std::vector{domain(0, model::DomainKind::kGpu, "gpu", "", "no driver"),
                    domain(1, model::DomainKind::kCpu, "package-0")},
        second(0));
    first = source.get();
    monitor = std::make_unique<GrowingMonitor>(
        std::move(source),
        [this](const auto& names) -> Result<std::unique_ptr<EnergySource>> {
          opened = names;
          if (!trouble.empty()) return fail(Errc::kUnavailable, trouble);
          auto memory = domain(2, model::DomainKind::kGpuMemory, "gpu0");
          memory.parent = model::DomainId{0};
          auto made = std::make_unique<FixedSource>(
              std::vector{domain(0, model::DomainKind::kGpu, "gpu0", "GPU-0"),
                          domain(1, model::DomainKind::kGpu, "gpu1", "GPU-1"), memory},
              second(10));
          boards = made.get();
          return made;
        },
        true);
  }
  void window(int from, int to, const char* name) const {
    monitor->add({second(from).time_since_epoch().count(), second(to).time_since_epoch().count(),
                  monitor->name(name), 0});
  }
  FixedSource* first = nullptr;
  FixedSource* boards = nullptr;
  std::string trouble;
  std::vector<std::string> opened;
  std::unique_ptr<GrowingMonitor> monitor;
};

TEST(GrowingMonitor, BoardsThatAppearHaveTheEnergyOfTheDomainThatHadNone) {
  Grown grown;
  grown.window(1, 2, "before");
  auto found = grown.monitor->energy(second(1), second(2), {});
  EXPECT_EQ((*found)[0].error().message, "no driver");

  grown.monitor->add_appeared({"GPU-0", "GPU-1", "powercap intel-rapl:0"});
  ASSERT_NE(grown.boards, nullptr);
  EXPECT_EQ(grown.monitor->domains().size(), 2u);
  found = grown.monitor->energy(second(11), second(13), {});
  EXPECT_EQ((*found)[0]->energy, Energy::joules(40));  // both boards, not their memory again
  EXPECT_EQ((*found)[1]->energy, Energy::joules(20));
  found = grown.monitor->energy(second(5), second(13), {});
  EXPECT_EQ((*found)[0].error().message, "readings begin later");
  EXPECT_EQ(grown.monitor->snapshot()->domains[0].energy->energy, Energy::joules(14));
  EXPECT_EQ(grown.monitor->snapshot()->domains[0].power->watts(), 20);

  grown.window(11, 12, "before");
  grown.window(5, 13, "across");  // its end alone is measured
  grown.window(12, 13, "after");
  const auto mixed = grown.monitor->total(grown.monitor->name("before"), {});
  EXPECT_THAT(mixed->energies[0].error().message, HasSubstr("1 of 2 windows"));
  EXPECT_EQ(mixed->energies[1]->energy, Energy::joules(20));
  const auto across = grown.monitor->total(grown.monitor->name("across"), {});
  EXPECT_THAT(across->energies[0].error().message, HasSubstr("1 of 1 windows"));
  const auto later = grown.monitor->total(grown.monitor->name("after"), {});
  EXPECT_EQ(later->energies[0]->energy, Energy::joules(20));

  EXPECT_THAT(grown.monitor->warnings(), Contains(HasSubstr("GPU-0, GPU-1; their energy is")));
  EXPECT_THAT(grown.monitor->warnings(), Contains(HasSubstr("powercap intel-rapl:0")));
}

TEST(GrowingMonitor, BoardsThatCannotBeOpenedAreNamed) {
  Grown grown;
  grown.trouble = "the driver hangs";
  grown.monitor->add_appeared({"GPU-0"});
  EXPECT_THAT(grown.monitor->warnings(), Contains(HasSubstr("(the driver hangs)")));
  EXPECT_FALSE((*grown.monitor->energy(second(11), second(12), {}))[0]);
  grown.trouble.clear();  // it was gone, and came back
  grown.monitor->add_appeared({"GPU-0"});
  EXPECT_TRUE((*grown.monitor->energy(second(11), second(12), {}))[0]);
}

TEST(GrowingMonitor, ALogHasEachBoardThatAppears) {
  Grown grown;
  grown.monitor->add_appeared({"GPU-0", "GPU-1"});
  auto* const measured = grown.boards;
  grown.monitor->add_appeared({"GPU-2", "powercap intel-rapl:0"});  // next to others
  EXPECT_THAT(grown.opened, testing::ElementsAre("GPU-2"));
  EXPECT_NE(grown.boards, measured);
  EXPECT_THAT(grown.monitor->warnings(), Contains(testing::AllOf(HasSubstr("GPU-2; the log has"),
                                                                 testing::Not(HasSubstr("rapl")))));
  const auto found = grown.monitor->energy(second(11), second(13), {});
  EXPECT_EQ((*found)[0]->energy, Energy::joules(40));  // those of the monitor
}

TEST(GrowingMonitor, ABoardNextToOthersIsNamedOnly) {
  GrowingMonitor monitor(
      std::make_unique<FixedSource>(
          std::vector{domain(0, model::DomainKind::kGpu, "gpu0", "GPU-0")}, second(0)),
      [](const auto&) -> Result<std::unique_ptr<EnergySource>> {
        ADD_FAILURE();
        return fail(Errc::kInternal, "");
      },
      false);
  monitor.add_appeared({"GPU-1"});
  EXPECT_THAT(monitor.warnings(), Contains(HasSubstr("GPU-1; a monitor that is opened now")));
}

}  // namespace
}  // namespace jouleprof::session
