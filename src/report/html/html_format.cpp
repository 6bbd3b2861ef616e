#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/profile.h"
#include "report/cells.h"
#include "report/costs/costs.h"
#include "report/format/format.h"
#include "report/headline_text.h"
#include "report/html/page.h"
#include "report/quantity.h"
#include "report/results/redaction.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using model::DomainProfile;
using model::Profile;
using model::Provenance;

std::string watts_text(const std::optional<Power>& power) {
  return power ? number_text(power->watts()) : "";
}

std::string alerts(const Profile& profile, const Total& total) {
  std::string html;
  if (profile.simulated) {
    html += element("p", "alert", kSimulatedText);
  }
  for (const std::string& text :
       {std::string(incomplete_text(profile)), partial_text(profile, total)}) {
    if (!text.empty()) html += element("p", "alert", text);
  }
  return html;
}

std::string peak_html(const Total& total) {
  const DomainProfile* highest = highest_peak(total);
  if (highest == nullptr) return "";
  return fmt::format("<div><dt>peak power, {}</dt><dd>{} <small>W</small></dd></div>\n",
                     markup_text(highest->domain.device), watts_text(highest->peak_power));
}

// What is quoted, by whether it was estimated: an estimate of a CPU makes one of no GPU.
struct QuotedParts {
  std::optional<Quoted> sensors;  // measured or simulated
  std::optional<Quoted> estimates;
  std::vector<std::string> sensor_names;
  std::vector<std::string> estimate_names;
};

// Of a machine with many GPUs the table has all.
std::string names_text(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 4;
  return names.size() <= kMost ? fmt::format("{}", fmt::join(names, " + "))
                               : fmt::format("{} and {} more", names[0], names.size() - 1);
}

QuotedParts parts_of(const Profile& profile, const Total& total, const Quoted& whole) {
  QuotedParts parts;
  for (const DomainProfile* d : whole.is_command ? total.counted : total.summed) {
    const auto& m = whole.is_command ? d->command->energy : *d->known();
    const bool is_estimate = m.provenance == Provenance::kEstimated;
    auto& sum = is_estimate ? parts.estimates : parts.sensors;
    auto& names = is_estimate ? parts.estimate_names : parts.sensor_names;
    if (!sum) {
      sum = Quoted{};
      sum->is_command = whole.is_command;
    }
    const Energy undivided = whole.is_command ? d->command->undivided : Energy{};
    sum->energy += m.energy;
    sum->error += m.below();
    sum->upper_error += m.above() + undivided;
    sum->repeatability += m.repeatability;
    sum->provenance = combine(sum->provenance, m.provenance);
    names.push_back(label_of(profile, *d));
  }
  if (parts.sensors) parts.sensors->is_partial = whole.is_partial;
  return parts;
}

std::string quoted_html(const Profile& profile, const Total& total, const Quoted& whole) {
  if (!whole.has_interval) {
    return fmt::format(
        "<p class=\"energy\"><strong>{}</strong> <span class=\"error\">{}</span></p>\n"
        "<p class=\"interval\">{}</p>\n",
        quoted_energy_text(whole), quoted_error_text(whole), quoted_interval_text(whole));
  }
  const auto parts = parts_of(profile, total, whole);
  // Of sensors that have nothing of the command's, "0 J" is no headline: the whole is.
  const bool is_mixed = parts.sensors && parts.estimates && parts.sensors->high() > Energy{};
  const Quoted& q = is_mixed ? *parts.sensors : whole;
  std::string html =
      fmt::format("<p class=\"energy\"><strong>{}</strong> <span class=\"error\">{}</span> {}{}",
                  quoted_energy_text(q), quoted_error_text(q), badge(q.provenance),
                  q.is_partial ? " " + badge("estimated", "PARTIAL") : "");
  if (is_mixed) {
    html += fmt::format(
        " <small>{}</small></p>\n<p class=\"energy more\">+ <strong>{}</strong> <span "
        "class=\"error\">{}</span> {} <small>{}</small>",
        markup_text(names_text(parts.sensor_names)), quoted_energy_text(*parts.estimates),
        quoted_error_text(*parts.estimates), badge(parts.estimates->provenance),
        markup_text(names_text(parts.estimate_names)));
  }
  html += fmt::format("</p>\n<p class=\"interval\">{}", quoted_interval_text(q));
  if (is_mixed) {
    html += fmt::format(" · in all {} {}", quoted_energy_text(whole), quoted_error_text(whole));
  }
  return html + "</p>\n";
}

std::string figures(const Profile& profile, const Total& total, bool whole_machine) {
  std::string html = "<div class=\"hero\">\n";
  if (const auto q = quoted(total, whole_machine)) {
    html += quoted_html(profile, total, *q);
    if (const auto whose = whose_text(profile, total, *q); !whose.empty()) {
      html += element("p", "interval whose", whose);
    }
  } else {
    html +=
        "<p class=\"energy\"><strong>no energy</strong> " + badge(Provenance::kUnavailable) +
        "</p>\n<p class=\"interval\">No domain's energy is known; the table has the reasons.</p>\n";
  }
  html += "<dl class=\"facts\">\n";
  if (profile.has_span()) {
    html +=
        fmt::format("<div><dt>duration</dt><dd>{}</dd></div>\n", duration_text(profile.duration()));
    if (const auto mean = mean_watts_text(profile, total); !mean.empty()) {
      html +=
          fmt::format("<div><dt>mean power, all</dt><dd>{} <small>W</small></dd></div>\n", mean);
    }
  }
  html += peak_html(total);
  return html + "</dl>\n</div>\n";
}

std::string domain_row(const DomainProfile& d, const std::string& label) {
  std::string html = fmt::format("<tr{}><th scope=\"row\">{} <small>{}</small></th>",
                                 d.domain.parent ? " class=\"part\"" : "", markup_text(label),
                                 markup_text(d.domain.name));
  const auto cell = [&](std::string_view text) {
    html += fmt::format("<td>{}</td>", markup_text(text));
  };
  if (d.reported) {
    return html +
           fmt::format("<td>{}{}</td><td colspan=\"6\" class=\"reason\"><div>{}</div></td></tr>\n",
                       d.reported_lacks_windows ? "at least " : "", energy_text(*d.reported),
                       kNoInterval);
  }
  if (!d.energy) {
    return html + fmt::format("<td colspan=\"7\" class=\"reason\"><div>{} {}</div></td></tr>\n",
                              badge(Provenance::kUnavailable), markup_text(d.reason));
  }
  cell(energy_text(d.energy->energy));
  cell(error_text(*d.energy));
  const auto energy_cell = [&](const std::optional<Energy>& e) { cell(e ? energy_text(*e) : ""); };
  energy_cell(rest_of(d));
  energy_cell(dynamic_of(d));
  cell(watts_text(d.mean_power));
  cell(watts_text(d.peak_power));
  return html + "<td>" + badge(d.energy->provenance) + "</td></tr>\n";
}

std::string device_table(const Profile& profile) {
  if (profile.domains.empty()) return "";
  const auto labels = labels_of(profile);
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Energy by device\">"
      "<table class=\"devices\">\n<thead><tr><th scope=\"col\">device</th>"
      "<th scope=\"col\">energy</th><th scope=\"col\">95 %</th><th scope=\"col\">rest</th>"
      "<th scope=\"col\">dynamic</th><th scope=\"col\">mean W</th><th scope=\"col\">peak W</th>"
      "<th scope=\"col\">provenance</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < profile.domains.size(); ++i) {
    html += domain_row(profile.domains[i], labels[i]);
  }
  return html + "</tbody></table></div>\n";
}

// A sentence begins with a capital and ends with one full stop; `code` is marked as such. A line
// does not end within an option of it, such as after the first dash of "--".
std::string sentence_html(std::string_view text) {
  while (text.ends_with('.')) text.remove_suffix(1);
  std::string html = markup_text(text);
  if (!html.empty() && html[0] >= 'a' && html[0] <= 'z') html[0] = static_cast<char>(html[0] - 32);
  std::string out;
  bool code = false;
  bool option = false;
  for (const char c : html) {
    if (option && (c == ' ' || c == '`')) {
      out += "</span>";
      option = false;
    } else if (code && !option && c == '-' && out.ends_with(' ')) {
      out += "<span class=\"option\">";
      option = true;
    }
    if (c == '`') {
      out += code ? "</code>" : "<code>";
      code = !code;
    } else {
      out += c;
    }
  }
  if (option) out += "</span>";
  return out + (code ? "</code>." : ".");
}

std::string findings(const Profile& profile) {
  if (profile.findings.empty()) return "";
  std::string html =
      "<section class=\"findings\" aria-labelledby=\"findings\"><h2 id=\"findings\">Findings</h2>\n"
      "<ol>\n";
  for (const auto& f : profile.findings) {
    html += fmt::format(
        "<li><p><strong>{}{}</strong> <span class=\"soft\">{}{}, {}</span></p>"
        "<p>{}</p><p class=\"step\">{}</p></li>\n",
        f.device.empty() ? "" : markup_text(f.device) + ": ", energy_text(f.energy.energy),
        error_text(f.energy), f.estimated ? ", ESTIMATED" : "", percent_text(f.share),
        sentence_html(f.text), sentence_html(f.next_step));
  }
  return html + "</ol></section>\n";
}

std::string warnings(const Profile& profile) {
  if (profile.warnings.empty()) return "";
  std::string html =
      fmt::format("<details class=\"warnings\"{}><summary>{} warning{}</summary><ul>\n",
                  profile.warnings.size() <= 3 ? " open" : "", profile.warnings.size(),
                  profile.warnings.size() > 1 ? "s" : "");
  for (const auto& warning : profile.warnings) {
    html += fmt::format("<li>{}</li>\n", markup_text(warning));
  }
  return html + "</ul></details>\n";
}

// What ran, its energy with interval and provenance, its costs where `costs` is not null, a table
// of the devices, findings with their next steps, warnings. Every name is escaped.
std::string headline_html(const Profile& profile, const FormatOptions& options,
                          const Costs* costs) {
  const Total total = total_of(profile);
  const std::string command = command_text(profile.run);
  std::string html = alerts(profile, total);
  if (!command.empty()) {
    html += fmt::format("<h1><code>{}</code></h1>\n", markup_text(command));
  } else {
    html += fmt::format("<h1>{}</h1>\n",
                        options.redact ? "Energy report (command left out)" : "Energy report");
  }
  html += element("p", "soft", run_line(profile));
  html += figures(profile, total, options.text.whole_machine);
  if (total.energy || total.reported)
    html += element("p", "coverage total", coverage_text(profile, total));
  if (costs != nullptr) {
    for (const auto& line : cost_lines(*costs, false)) {
      html += element("p", "coverage", line.label + ": " + line.words);
    }
  }
  return html + device_table(profile) + findings(profile) + warnings(profile);
}

// What made the page, from which file, and the command that prints the same figures.
std::string provenance_html(const Profile& profile, const FormatOptions& options) {
  std::string html = fmt::format("<p>Made by jouleprof {}", markup_text(options.version));
  if (!profile.run.tool_version.empty() && profile.run.tool_version != options.version) {
    html += fmt::format(" from a recording of jouleprof {}", markup_text(profile.run.tool_version));
  }
  html += ". This file is complete and makes no requests.";
  if (!options.text.recording_path.empty()) {
    html += fmt::format(" The same figures: <code>jouleprof report {}</code>",
                        markup_text(shell_word(options.text.recording_path)));
  }
  if (options.redact) {
    html += " Command line, host, folders, names of processes and UUIDs were left out (--redact).";
  }
  return html + "</p>\n";
}

// The document's title, as text.
std::string page_title(const Profile& profile, bool redact) {
  const std::string command = redact ? "" : command_text(profile.run);
  return command.empty() ? "jouleprof report" : fit(printable(command), 60) + " · jouleprof";
}

Result<std::string> run_page(const analysis::Run& run, const analysis::Part& part,
                             const FormatOptions& options) {
  run.process_slices(kMostSliceCells, part);  // first: attribution is then made once
  const auto& whole = run.profile(part);
  if (!whole) return tl::unexpected(whole.error());
  const model::Profile profile = options.redact ? redacted(*whole) : *whole;
  auto costs = requested_costs(run, part, options);
  if (!costs) return forward_error(costs);
  Costs* const shown = *costs ? &**costs : nullptr;
  if (options.redact && shown && shown->factors.series) shown->factors.series->file = "(redacted)";
  auto data = page_data(run, part, options, profile, shown);
  if (!data) return tl::unexpected(data.error());
  return assemble_page({page_title(profile, options.redact), headline_html(profile, options, shown),
                        provenance_html(profile, options), std::move(*data)});
}

}  // namespace

extern constinit const Format html_format{
    .name = "html",
    .extension = ".html",
    .shows = "a page with balance, timeline, flame graph and tables, for a browser",
    .write = write_made<run_page>};

}  // namespace jouleprof::report
