#include "apps/cli/compare/compare_outputs.h"

#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/terminal/terminal.h"
#include "report/results/pages.h"

namespace jouleprof::cli {

void CompareOutputs::declare(CLI::App& app) {
  app.add_option("--top", top, "");
  auto* as_json = app.add_flag("--json", json, "");
  app.add_flag("--github", github, "")->excludes(as_json);
  auto* page = app.add_option("--html", html, "");
  app.add_flag("--redact", redact, "")->needs(page);
  app.add_option("--markdown", markdown, "");
  app.add_option("--junit", junit, "");
  app.add_option("--benchmark", benchmark, "");
}

Result<void> CompareOutputs::check(const std::vector<std::string>& inputs) const {
  std::vector<std::string> others = inputs;
  for (const auto& path : {html, markdown, junit, benchmark}) {
    if (path.empty()) continue;
    if (auto possible = check_output({path, true, others}); !possible) return possible;
    others.push_back(path);
  }
  return {};
}

int CompareOutputs::write(report::ComparisonReport report,
                          const std::vector<std::string>& inputs) const {
  report.most_rows = top;
  int status = kDone;
  const auto to = [&](const std::string& path, const std::string& text) {
    const auto written = write_output({path, true, inputs}, text);
    if (!written) status = complain(written.error(), kCannotWrite);
  };
  std::string text = json ? report::comparison_to_json(report)
                          : report::comparison_to_text(report, text_options(STDOUT_FILENO));
  if (github) text += report::comparison_to_github(report);
  to("", text);
  if (!html.empty()) {
    const auto page = report::comparison_to_html(report, {JOULEPROF_VERSION, "", redact});
    if (!page) return complain(page.error(), kInternalError);
    to(html, *page);
  }
  if (!markdown.empty()) to(markdown, report::comparison_to_markdown(report));
  if (!junit.empty()) to(junit, report::comparison_to_junit(report));
  if (!benchmark.empty()) to(benchmark, report::comparison_to_benchmark(report));
  return status;
}

}  // namespace jouleprof::cli
