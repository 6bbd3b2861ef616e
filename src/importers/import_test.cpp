#include "importers/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>

#include "importers/testing.h"
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
  const TempTree tree{{"a", kDmon}, {"b", kJson}, {"c", kDmon}};
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

}  // namespace
}  // namespace jouleprof::importers
