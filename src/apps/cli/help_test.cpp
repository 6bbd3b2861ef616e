#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "apps/cli/cli.h"
#include "apps/cli/verb.h"
#include "report/format/format.h"

namespace jouleprof::cli {
namespace {

using ::testing::HasSubstr;

// The long options that a verb's help describes, one at the begin of a line.
std::set<std::string> described_options(const std::string& help) {
  static const std::regex kOption(R"(\n {2}(?:-\w, | {4})(--[a-z][a-z.-]*))");
  std::set<std::string> options;
  for (std::sregex_iterator m(help.begin(), help.end(), kOption), end; m != end; ++m) {
    options.insert((*m)[1]);
  }
  options.erase("--help");  // of every verb
  return options;
}

TEST(Help, DescribesTheOptionsOfEachVerbAndNoOthers) {
  for (const auto& verb : make_verbs()) {
    CLI::App app;
    app.set_help_flag();
    verb->declare(app);
    std::set<std::string> declared;
    for (const CLI::Option* option : app.get_options()) {
      for (const auto& name : option->get_lnames()) declared.insert("--" + name);
    }
    const std::string help(help_block("jouleprof " + std::string(verb->name())));
    EXPECT_FALSE(help.empty()) << verb->name();
    EXPECT_EQ(described_options(help), declared) << verb->name();
  }
}

TEST(Help, OfTheToolNamesEachVerb) {
  for (const auto& verb : make_verbs()) {
    EXPECT_THAT(std::string(help_block("jouleprof")),
                HasSubstr(fmt::format("  {:<11}", verb->name())));
  }
}

TEST(Help, OfExportListsTheFormatsOfTheRegistry) {
  const std::string help(help_block("jouleprof export"));
  for (const report::Format* format : report::formats()) {
    EXPECT_THAT(help, HasSubstr(fmt::format("  {:<13}{:<19}{}\n", format->name, format->extension,
                                            format->shows)));
  }
}

TEST(Help, HasNoBlockForAnUnknownTitle) { EXPECT_EQ(help_block("jouleprof fly"), ""); }

}  // namespace
}  // namespace jouleprof::cli
