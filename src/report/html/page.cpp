#include "report/html/page.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "report/cells.h"
#include "report/html/markup.h"
#include "report/html/template.h"
#include "report/markup_text.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

// A percentage stays on one line.
std::string unbroken(std::string text) {
  for (auto at = text.find(" %"); at != std::string::npos; at = text.find(" %", at)) {
    text.replace(at, 1, "\u00a0");
  }
  return text;
}

}  // namespace

Result<std::string> assemble_page(const PageParts& parts) {
  const std::array<std::pair<std::string_view, std::string>, 4> marks{
      {{"<!--jouleprof:title-->", markup_text(parts.title)},
       {"<!--jouleprof:headline-->", parts.headline},
       {"<!--jouleprof:provenance-->", parts.provenance},
       {"<!--jouleprof:data-->", script_json(parts.data)}}};
  std::string page;
  std::string_view rest = kTemplate;
  for (const auto& [mark, text] : marks) {
    const auto at = rest.find(mark);
    if (at == std::string_view::npos) {
      return fail(Errc::kInternal, "the page's template lacks " + std::string(mark));
    }
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

Json page_head(const PageOptions& options) {
  Json j = Json::object();
  j["schema"] = "jouleprof.page/1";
  j["version"] = options.version;
  j["redacted"] = options.redact;
  return j;
}

std::string page_foot(const PageOptions& options) {
  std::string html =
      fmt::format("<p>Made by jouleprof {}. This file is complete and makes no requests.",
                  markup_text(options.version));
  if (!options.again.empty() && !options.redact) {
    html += fmt::format(" The same figures: <code>{}</code>", markup_text(options.again));
  }
  if (options.redact) {
    html += " Names of files, hosts and jobs, commands, paths and UUIDs were left out (--redact).";
  }
  return html + "</p>\n";
}

std::string element(std::string_view tag, std::string_view kind, std::string_view text) {
  return fmt::format("<{0} class=\"{1}\">{2}</{0}>\n", tag, kind, markup_text(text));
}

std::string badge(std::string_view kind, std::string_view word) {
  return fmt::format(R"(<span class="badge {0}">{1}</span>)", kind, word);
}

std::string badge(model::Provenance provenance) {
  return badge(to_string(provenance), provenance_word(provenance));
}

std::string hero(std::string_view figure, std::string_view error, std::string_view badge_html,
                 std::string_view line) {
  return fmt::format(
      "<div class=\"hero\">\n<p class=\"energy\"><strong>{}</strong> <span class=\"error\">{}"
      "</span> {}</p>\n<p class=\"interval\">{}</p>\n</div>\n",
      unbroken(markup_text(figure)), unbroken(markup_text(error)), badge_html,
      unbroken(markup_text(line)));
}

std::string figure_table(std::string_view name, const std::vector<std::string>& headings,
                         const std::vector<std::vector<std::string>>& rows) {
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">"
      "<table class=\"devices\">\n<thead><tr>",
      markup_text(name));
  for (const auto& heading : headings) {
    html += fmt::format("<th scope=\"col\">{}</th>", markup_text(heading));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto cell = markup_text(row[i]);
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", cell)
                     : fmt::format("<td>{}</td>", cell);
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace jouleprof::report
