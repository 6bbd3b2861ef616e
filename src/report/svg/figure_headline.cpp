#include <fmt/format.h>

#include "report/cells.h"
#include "report/headline_text.h"
#include "report/markup_text.h"
#include "report/quantity.h"
#include "report/svg/run_figure.h"

namespace jouleprof::report {
namespace {

using model::Profile;

constexpr std::size_t kColumns = 150;  // of a line of small text

std::string facts(const Profile& profile, const Total& total) {
  std::string text;
  const auto add = [&](const std::string& fact) { text += (text.empty() ? "" : " · ") + fact; };
  if (profile.has_span()) add("duration " + duration_text(profile.duration()));
  if (total.energy && profile.duration() > Duration{}) {
    const Power mean = total.energy->energy / profile.duration();
    add(fmt::format("mean power of all devices {} W", number_text(mean.watts())));
  }
  if (const auto* highest = highest_peak(total)) {
    add(fmt::format("peak power, {}: {} W", highest->domain.device,
                    number_text(highest->peak_power->watts())));
  }
  return text;
}

// One text element, so that no width has to be known.
std::string energy_markup(double y, const std::optional<Quoted>& quote) {
  const auto provenance = quote ? quote->provenance : model::Provenance::kUnavailable;
  std::string markup =
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"energy\">", kFigureMargin, y);
  if (quote) {
    markup += fmt::format("{} <tspan class=\"error\">{}</tspan> ", energy_text(quote->energy),
                          interval_text(quote->energy, quote->error, quote->upper_error));
  } else {
    markup += "no energy ";
  }
  return markup + fmt::format("<tspan class=\"{}\">{}</tspan></text>\n", to_string(provenance),
                              provenance_word(provenance));
}

}  // namespace

double draw_headline(Drawing& drawing, double y, const Profile& profile, bool whole_machine) {
  const Total total = total_of(profile);
  const auto quote = quoted(total, whole_machine);
  const auto line = [&](std::string_view text, std::string_view attributes, double height) {
    y += height;
    drawing.text(kFigureMargin, y, text, attributes);
  };
  const std::string command = command_text(profile.run);
  line(fit_width(command.empty() ? "Energy report" : command, kFigureInner, 17), "class=\"title\"",
       18);
  line(fit_width(run_line(profile), kFigureInner, 12), "class=\"soft\"", 20);
  if (profile.simulated) line(kSimulatedText, "class=\"alert\"", 20);
  const auto incomplete = incomplete_text(profile);
  if (!incomplete.empty()) line(incomplete, "class=\"alert\"", 20);
  y += 40;
  drawing.markup(energy_markup(y, quote));
  if (quote) {
    line(quoted_interval_text(*quote), "", 22);
    if (const auto whose = whose_text(profile, total, *quote); !whose.empty()) {
      y += 4;
      for (const auto& text : wrap(whose, kColumns)) line(text, "", 16);
    }
  }
  if (const auto text = facts(profile, total); !text.empty()) line(text, "", 18);
  if (total.energy) {
    y += 4;
    for (const auto& text : wrap(coverage_text(profile, total), kColumns)) {
      line(text, "class=\"soft\"", 16);
    }
  }
  return y;
}

}  // namespace jouleprof::report
