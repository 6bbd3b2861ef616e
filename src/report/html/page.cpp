#include "report/html/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "report/cells.h"
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
  std::string_view rest = parts.data.contains("profile") ? kTemplate : kResultsTemplate;
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

std::string script_json(const Json& document) {
  const std::string json = write_json(document, -1);
  std::string out;
  out.reserve(json.size() + json.size() / 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view next = std::string_view(json).substr(i, 3);
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (next == "\xe2\x80\xa8" || next == "\xe2\x80\xa9") {
      out += next.back() == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

Json packed_rows(const Json& rows, const std::vector<std::string_view>& dropped) {
  Json packed = Json::object();
  packed["keys"] = Json::array();
  packed["rows"] = Json::array();
  if (rows.empty()) return packed;
  for (const auto& [key, value] : rows.front().items()) {
    if (std::ranges::find(dropped, key) == dropped.end()) {
      packed["keys"].push_back(key);
    }
  }
  for (const Json& row : rows) {
    Json cells = Json::array();
    for (const Json& key : packed["keys"])
      cells.push_back(row.value(key.get<std::string>(), Json()));
    packed["rows"].push_back(std::move(cells));
  }
  return packed;
}

}  // namespace jouleprof::report
