#include <fmt/format.h>

#include "apps/cli/control/settings.h"
#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/verb.h"
#include "base/say.h"

namespace jouleprof::cli {
namespace {

class RestoreVerb : public Verb {
 public:
  std::string_view name() const override { return "restore"; }
  void declare(CLI::App&) override {}

  int run(const std::vector<std::string>&) override {
    const auto outcome = restore_settings(meters::control::Leftovers::kSettle);
    if (outcome.restored + outcome.failed == 0) {
      say("jouleprof: nothing to restore: no killed sweep has left a setting\n");
    }
    return outcome.failed > 0 ? kNotPermitted : kDone;
  }
};

}  // namespace

std::unique_ptr<Verb> make_restore() { return std::make_unique<RestoreVerb>(); }

}  // namespace jouleprof::cli
