#include "importers/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>

#include "importers/builder.h"
#include "importers/importers_fixture.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::importers {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kDmon = "# gpu pwr\n# Idx W\n 0 61\n 0 62\n";
const std::string kJson =
    "{\"date\": \"2026-11-21 03:00:00\", \"metrics\": {\"cpu\": {\"intel_power\": 10.5}}}\n"
    "{\"date\": \"2026-11-21 03:00:01\", \"metrics\": {\"cpu\": {\"intel_power\": 10.5}}}\n";

Error error_of(const std::vector<std::filesystem::path>& files, const ImportOptions& options = {}) {
  const auto recording = import_files(files, options);
  EXPECT_FALSE(recording);
  return recording ? Error{} : recording.error();
}

TEST(Import, FormatsAreListed) {
  std::vector<std::string> names;
  for (const Format& format : formats()) {
    names.emplace_back(format.name);
    EXPECT_FALSE(format.description.empty());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(
                         "jouleprof", "perun", "tegrastats", "nvidia-smi", "dmon", "pmon", "dcgmi",
                         "omegawatt", "codecarbon", "gpupp", "aipowermeter", "zeus-monitor",
                         "zeus-windows", "zeus-sweep", "zeus-profile", "gpu-tune"));
}

TEST(Import, TheContentDecidesTheFormatNotTheName) {
  const TempTree tree{{"power_metrics.json", kDmon}, {"dmon.csv", kJson}};
  EXPECT_EQ(import_files({tree / "power_metrics.json"})->run.source, "import:dmon");
  EXPECT_EQ(import_files({tree / "dmon.csv"})->run.source, "import:aipowermeter");
}

TEST(Import, OfATraceTheMessageNamesTheVerb) {
  const TempTree tree{{"trace.json", "{\"schemaVersion\": 1, \"traceEvents\": []}"}};
  EXPECT_THAT(error_of({tree / "trace.json"}).message, HasSubstr("jouleprof annotate"));
}

TEST(Import, WindowsLineEndsAndAByteOrderMarkDoNoHarm) {
  std::string text = "\xEF\xBB\xBF" + kDmon;
  for (std::size_t i = 0; (i = text.find('\n', i)) != std::string::npos; i += 2) {
    text.replace(i, 1, "\r\n");
  }
  const auto recording = import_text(text);
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->readings.powers.size(), 2u);
}

TEST(Import, FilesThatCannotBeRead) {
  const TempTree tree{{"empty", ""},
                      {"blank", " \n\n"},
                      {"binary", std::string("\x7F\0ELF\n", 6)},
                      {"recording", std::string("SQLite format 3\0\x10", 17)},
                      {"text", "Dear reader,\n"}};
  Error error = error_of({tree / "none"});
  EXPECT_EQ(error.code, Errc::kNotFound);
  EXPECT_THAT(error.message, HasSubstr((tree / "none").string()));
  EXPECT_EQ(error_of({tree.root()}).code, Errc::kUnsupported);
  for (const char* name : {"empty", "blank"}) {
    error = error_of({tree / name});
    EXPECT_EQ(error.code, Errc::kUnavailable);
    EXPECT_THAT(error.message, AllOf(HasSubstr(name), HasSubstr("empty")));
  }
  error = error_of({tree / "binary"});
  EXPECT_EQ(error.code, Errc::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("not a text file"));
  error = error_of({tree / "recording"});
  EXPECT_THAT(error.message, HasSubstr("needs no import: jouleprof report"));
  error = error_of({tree / "text"});
  EXPECT_EQ(error.code, Errc::kUnsupported);
  EXPECT_THAT(error.message, AllOf(HasSubstr("dmon"), HasSubstr("--format")));
  EXPECT_EQ(error_of({}).code, Errc::kInvalidArgument);
}

TEST(Import, TheWrongFormatIsNamedByTheUser) {
  const TempTree tree{{"a", kDmon}};
  EXPECT_THAT(error_of({tree / "a"}, {.format = "xml", .interval = {}}).message,
              AllOf(HasSubstr("'xml'"), HasSubstr("zeus-windows")));
  EXPECT_EQ(error_of({tree / "a"}, {.format = "aipowermeter", .interval = {}}).code,
            Errc::kCorrupt);
  EXPECT_EQ(error_of({tree / "a"}, {.format = "", .interval = Duration{0}}).code,
            Errc::kInvalidArgument);
}

TEST(Import, FilesThatDoNotGoTogether) {
  const TempTree tree{{"a", kDmon}, {"b", kJson}, {"c", std::string(kDmon) + "\n"}};
  EXPECT_THAT(error_of({tree / "a", tree / "b"}).message, HasSubstr("no date and time"));
  EXPECT_THAT(error_of({tree / "a", tree / "c"}).message, HasSubstr("import it by itself"));
}

TEST(Import, ADecimalCommaChangesNothing) {
  const char* set = std::setlocale(LC_ALL, "de_DE.UTF-8");
  const auto recording = import_text(kJson);
  std::setlocale(LC_ALL, "C");
  if (!set) GTEST_SKIP() << "no locale with a decimal comma is installed";
  ASSERT_TRUE(recording);
  EXPECT_EQ(recording->readings.powers[0].power.watts(), 10.5);
}

using namespace std::chrono_literals;

TEST(LaunchLimit, AnHourTogetherAndASecondForEach) {
  LaunchLimit limit;
  for (int i = 0; i < 3600; ++i) EXPECT_TRUE(limit.add(2s));
  EXPECT_TRUE(limit.add(1s));
  EXPECT_FALSE(limit.add(2s));
  EXPECT_EQ(limit.message(), "3602 launches run for 2.0 h: check the unit of the times");
}

TEST(LaunchLimit, OneAmongMany) {
  LaunchLimit limit;
  for (int i = 0; i < 100'000; ++i) EXPECT_TRUE(limit.add(1ms));
  EXPECT_TRUE(limit.add(1h));
  EXPECT_FALSE(limit.add(1h + 1s));  // the others would leave room for 27 hours
}

using std::chrono::seconds;

HostTime host(Duration d) { return HostTime{d}; }

TEST(Timeline, KeepsDistancesAndBeginsAtZero) {
  const auto layout = lay_out(std::vector<Stamp>{{seconds{100}}, {seconds{101}}, {seconds{103}}});
  EXPECT_EQ(layout.times, (std::vector{host(seconds{0}), host(seconds{1}), host(seconds{3})}));
  ASSERT_EQ(layout.segments.size(), 1u);
  EXPECT_EQ(layout.segments[0].end, host(seconds{3}));
  EXPECT_EQ(layout.segments[0].stamp_end, seconds{103});
  EXPECT_EQ(layout.cut, Duration::zero());
}

TEST(Timeline, CutsOutPauses) {
  const auto layout = lay_out(std::vector<Stamp>{
      {seconds{0}}, {seconds{1}}, {seconds{2}}, {seconds{13}}, {seconds{14}, true}, {seconds{15}}});
  const Duration ns{1};
  EXPECT_EQ(layout.times, (std::vector{host(seconds{0}), host(seconds{1}), host(seconds{2}),
                                       host(seconds{2} + ns), host(seconds{2} + 2 * ns),
                                       host(seconds{3} + 2 * ns)}));
  EXPECT_EQ(layout.segments.size(), 3u);
  EXPECT_EQ(layout.cut, seconds{12} - 2 * ns);
}

TEST(Timeline, ASeamIsLeftOfAPause) {
  const auto layout =
      lay_out(std::vector<Stamp>{{seconds{0}}, {seconds{1}}, {seconds{99}, true}}, seconds{1});
  EXPECT_EQ(layout.times, (std::vector{host(seconds{0}), host(seconds{1}), host(seconds{2})}));
  EXPECT_EQ(layout.cut, seconds{97});
}

TEST(Timeline, ARareStampIsNoPause) {
  const auto layout = lay_out(std::vector<Stamp>{{seconds{0}}, {seconds{60}}, {seconds{360}}});
  EXPECT_EQ(layout.segments.size(), 1u);
}

TEST(Timeline, AClockThatGoesBackBeginsASegment) {
  const auto layout = lay_out(std::vector<Stamp>{{seconds{10}}, {seconds{11}}, {seconds{5}}});
  EXPECT_EQ(layout.backward_steps, 1u);
  EXPECT_EQ(layout.segments.size(), 2u);
  EXPECT_LT(layout.times[1], layout.times[2]);
}

TEST(Timeline, EqualStampsStayApart) {
  const auto layout = lay_out(std::vector<Stamp>{{seconds{1}}, {seconds{1}}});
  EXPECT_EQ(layout.times[1], host(Duration{1}));
}

TEST(Timeline, HugeStepsDoNotOverflow) {
  std::vector<Stamp> stamps;
  for (int i = 0; i < 100; ++i) stamps.push_back({i % 2 ? seconds{7'000'000'000} : seconds{0}});
  const auto layout = lay_out(stamps);
  for (std::size_t i = 1; i < layout.times.size(); ++i) {
    EXPECT_LT(layout.times[i - 1], layout.times[i]);
  }
}

TEST(Timeline, UsualDistanceIsTheMedian) {
  EXPECT_EQ(
      usual_distance(std::vector<Stamp>{{seconds{0}}, {seconds{1}}, {seconds{2}}, {seconds{50}}}),
      seconds{1});
  EXPECT_EQ(usual_distance(std::vector<Stamp>{{seconds{3}}}), Duration::zero());
}

}  // namespace
}  // namespace jouleprof::importers
