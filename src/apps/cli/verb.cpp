#include "apps/cli/verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "apps/cli/options/checks.h"
#include "apps/cli/options/config_file.h"
#include "base/say.h"

namespace jouleprof::cli {

std::vector<std::unique_ptr<Verb>> make_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  verbs.push_back(make_doctor());
  verbs.push_back(make_run());
  verbs.push_back(make_monitor());
  verbs.push_back(make_serve());
  verbs.push_back(make_report());
  verbs.push_back(make_merge());
  verbs.push_back(make_export());
  verbs.push_back(make_import());
  verbs.push_back(make_annotate());
  verbs.push_back(make_bench());
  verbs.push_back(make_compare());
  verbs.push_back(make_sweep());
  verbs.push_back(make_recommend());
  verbs.push_back(make_apply());
  verbs.push_back(make_restore());
  return verbs;
}

namespace {

bool is_option_of_any_verb(const std::string& name) {
  const auto verbs = make_verbs();
  return std::any_of(verbs.begin(), verbs.end(), [&name](const auto& verb) {
    CLI::App app;
    verb->declare(app);
    return app.get_option_no_throw("--" + name) != nullptr;
  });
}

}  // namespace

Result<void> parse(Verb& verb, std::vector<std::string> arguments) {
  CLI::App app;
  app.set_help_flag();
  verb.declare(app);
  check_all_options(app);

  const auto settings = read_config_file();
  if (!settings) return tl::unexpected(settings.error());
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
    for (const auto& [name, value] : *settings) {
      CLI::Option* option = app.get_option_no_throw("--" + name);
      if (option == nullptr && !is_option_of_any_verb(name)) {
        say("jouleprof: the configuration file sets '{}', which no verb has as an option; see "
            "jouleprof --help\n",
            name);
      }
      if (option == nullptr || option->count() > 0) continue;
      option->add_result(value);
      option->run_callback();
    }
  } catch (const CLI::Error& e) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{}\nTry 'jouleprof {} --help'.", e.what(), verb.name()));
  }
  return {};
}

}  // namespace jouleprof::cli
