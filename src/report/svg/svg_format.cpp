#include "report/svg/svg_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/cells.h"
#include "report/figures.h"
#include "report/headline_text.h"
#include "report/quantity.h"
#include "report/results/redaction.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using model::Profile;

constexpr const char* kStyles =
    ".title{font-weight:bold;font-size:15px}.heading{font-weight:bold;font-size:14px}"
    ".soft{fill:#5b6470}.alert{fill:#a4262c;font-weight:bold}.energy{font-weight:bold;"
    "font-size:30px}.error{font-size:18px}.measured{font-size:13px;fill:#1b6e3c}"
    ".estimated,.simulated,.unavailable{font-size:13px;fill:#a4262c}.grid{stroke:#ddd}"
    ".edge{stroke:#5b6470;stroke-dasharray:4 3}.whisker{stroke:#1a1d21;stroke-width:1.6}";
constexpr const char* kHatch =
    "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"#fff\" "
    "stroke-opacity=\"0.55\" stroke-width=\"2.4\"/></pattern></defs>\n";
// Two pixels a step.
constexpr std::size_t kSteps = 420;

constexpr std::size_t kColumns = 150;  // of a line of small text

std::string facts(const Profile& profile, const Total& total) {
  std::string text;
  const auto add = [&](const std::string& fact) { text += (text.empty() ? "" : " · ") + fact; };
  if (profile.has_span()) add("duration " + duration_text(profile.duration()));
  if (const auto mean = mean_watts_text(profile, total); !mean.empty()) {
    add(fmt::format("mean power of all devices {} W", mean));
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
    markup += fmt::format("{} <tspan class=\"error\">{}</tspan> ", quoted_energy_text(*quote),
                          quoted_error_text(*quote));
  } else {
    markup += "no energy ";
  }
  return markup + fmt::format("<tspan class=\"{}\">{}</tspan></text>\n", to_string(provenance),
                              quote ? quoted_provenance_text(*quote) : provenance_word(provenance));
}

}  // namespace

Result<std::string> run_svg(const analysis::Run& run, const analysis::Part& part,
                            const FormatOptions& options) {
  const auto& whole = run.profile(part);
  if (!whole) return tl::unexpected(whole.error());
  const model::Profile profile = options.redact ? redacted(*whole) : *whole;
  Drawing drawing(kStyles);
  drawing.markup(kHatch);
  double y = draw_headline(drawing, 16, profile, options.text.whole_machine);
  y = draw_balance(drawing, y + 14, profile);
  if (const auto span = run.span(part)) {
    const HostTime origin = run.recording().run.work_begin.value_or(span->begin);
    y = draw_timeline(drawing, y + 16, profile, power_tracks(run, part, origin, kSteps), origin);
  }
  std::string source = "jouleprof " + options.version;
  if (!options.text.recording_path.empty() && !options.redact) {
    source += " · " + options.text.recording_path;
  }
  drawing.text(kFigureMargin, y += 28, fit_width(source, kFigureInner, 12), "class=\"soft\"");
  const std::string command = command_text(profile.run);
  return drawing.document(kFigureWidth, y + 18,
                          fit(command.empty() ? "Energy report" : command, 200), 12);
}

extern constinit const Format svg_format{
    .name = "svg",
    .extension = ".svg",
    .shows = "headline, balance and power over time as one figure",
    .write = write_made<run_svg>};

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
  if (const auto text = partial_text(profile, total); !text.empty()) {
    line(fit_width(text, kFigureInner, 12), "class=\"alert\"", 20);
  }
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
  if (total.energy || total.reported) {
    y += 4;
    for (const auto& text : wrap(coverage_text(profile, total), kColumns)) {
      line(text, "class=\"soft\"", 16);
    }
  }
  return y;
}

namespace {

using model::DomainProfile;
using model::Measurement;

constexpr double kBarHeight = 22;
constexpr double kText = 12;

struct Bar {
  const DomainProfile* domain = nullptr;
  std::string label;
  std::vector<BalancePart> parts;
};

Energy drawn(const Bar& bar) {
  Energy sum;
  for (const auto& part : bar.parts) sum += std::max(part.energy, Energy{});
  return sum;
}

std::string part_title(const Bar& bar, const BalancePart& part) {
  std::string text = fmt::format("{}, {}: {}", bar.label, part.label, energy_text(part.energy));
  if (part.level) text += ", 95 % interval " + energy_interval_text(*part.level);
  return text;
}

void draw_parts(Drawing& drawing, double y, const Bar& bar, const Axis& axis) {
  double x = axis.from;
  for (const auto& part : bar.parts) {
    if (part.energy <= Energy{}) continue;  // without a width; the list has it
    const double width = axis.at(part.energy.joules()) - axis.from;
    drawing.rect(x, y, width, kBarHeight,
                 fmt::format("fill=\"{}\" stroke=\"white\" stroke-width=\"0.5\"{}{}{}", part.colour,
                             attribute("data-device", bar.domain->domain.device),
                             attribute("data-part", part.label),
                             attribute("data-joules", joules_decimal(part.energy))),
                 part_title(bar, part));
    x += width;
  }
  if (bar.domain->energy->provenance != model::Provenance::kMeasured) {
    drawing.rect(axis.from, y, x - axis.from, kBarHeight, "fill=\"url(#hatch)\"");
  }
}

void draw_whisker(Drawing& drawing, double y, const Measurement& m, const Axis& axis) {
  const double low = axis.at(m.low().joules());
  const double high = axis.at(m.high().joules());
  drawing.line(
      low, y, high, y,
      fmt::format("class=\"whisker\"{}{}", attribute("data-low-joules", joules_decimal(m.low())),
                  attribute("data-high-joules", joules_decimal(m.high()))));
  for (const double x : {low, high}) drawing.line(x, y - 4, x, y + 4, "class=\"whisker\"");
}

// The parts with their figures, in as many lines as they need.
double draw_list(Drawing& drawing, double y, const Bar& bar) {
  double x = kFigureMargin;
  y += 18;
  for (const auto& part : bar.parts) {
    const double ratio = part.energy.joules() / bar.domain->energy->energy.joules();
    const std::string text = fmt::format("{} {} ({}{})", part.label, energy_text(part.energy),
                                         ratio < 0 ? "-" : "", percent_text(std::abs(ratio)));
    const double width = 16 + text_width(text, kText) + 18;
    if (x > kFigureMargin && x + width > kFigureMargin + kFigureInner) {
      x = kFigureMargin;
      y += 17;
    }
    drawing.rect(x, y - 9, 10, 10, fmt::format("fill=\"{}\"", part.colour));
    drawing.text(x + 15, y, text);
    x += width;
  }
  return y;
}

double draw_bar(Drawing& drawing, double y, const Bar& bar, const Axis& axis) {
  const Measurement& m = *bar.domain->energy;
  y += 28;
  drawing.text(kFigureMargin, y,
               fit_width(fmt::format("{} {}", bar.label, bar.domain->domain.name), 560, kText),
               "font-weight=\"bold\"");
  std::string sum = energy_text(m.energy) + " " + error_text(m);
  if (m.provenance != model::Provenance::kMeasured) sum += " " + provenance_word(m.provenance);
  drawing.text(kFigureMargin + kFigureInner, y, sum, "text-anchor=\"end\"");
  y += 8;
  draw_parts(drawing, y, bar, axis);
  y += kBarHeight + 7;
  draw_whisker(drawing, y, m, axis);
  return draw_list(drawing, y + 4, bar);
}

}  // namespace

double draw_balance(Drawing& drawing, double y, const model::Profile& profile) {
  const auto labels = labels_of(profile);
  std::vector<Bar> bars;
  std::vector<std::string> absent;
  Energy most;
  for (std::size_t i = 0; i < profile.domains.size(); ++i) {
    const auto& d = profile.domains[i];
    if (d.domain.parent) continue;
    if (!d.energy) {
      absent.push_back(labels[i] + ": " + d.reason);
      continue;
    }
    bars.push_back({&d, labels[i], balance_parts(profile, d)});
    most = std::max({most, d.energy->high(), drawn(bars.back())});
  }
  if (most <= Energy{} && absent.empty()) return y;
  drawing.text(kFigureMargin, y += 20, "Balance", "class=\"heading\"");
  const Axis axis{0, std::max(most.joules(), 1e-6), kFigureMargin, kFigureMargin + kFigureInner};
  for (const auto& bar : bars) y = draw_bar(drawing, y, bar, axis);
  if (!absent.empty()) y += 8;
  for (const auto& text : absent) {
    for (const auto& line : wrap("UNAVAILABLE " + text, 150)) {
      drawing.text(kFigureMargin, y += 16, line, "class=\"soft\"");
    }
  }
  return y;
}

namespace {

using Step = std::optional<PowerTrack::Step>;

constexpr double kChartHeight = 96;
constexpr double kLeft = 62;  // room of the numbers
// Of a device, as on the page: orange is a GPU, blue all else; and of the domains within it.
constexpr const char* kGpuColour = "#b35c00";
constexpr const char* kOtherColour = "#0b63a8";
constexpr std::array<const char*, 3> kPartColours{"#56b4e9", "#009e73", "#cc79a7"};

struct Line {
  const PowerTrack* track = nullptr;
  std::string label;
  const char* colour = nullptr;
};

struct TimeUnit {
  double seconds;
  const char* name;
};
TimeUnit unit_of(Duration length) {
  if (length > std::chrono::hours{3}) return {3600, "h"};
  if (length > std::chrono::minutes{10}) return {60, "min"};
  return {1, "s"};
}

// The last step may be shorter.
HostTime begin_of(const PowerTrack& track, std::size_t step) {
  return std::min(track.begin + static_cast<std::int64_t>(step) * track.step, track.end);
}

// Means of short steps beat with a load of about their own period: the line would swing and settle
// where the power does neither. Where the extremes of steps are known, it is the mean of some.
constexpr std::int64_t kMeanSteps = 8;

struct Mean {
  HostTime begin{}, end{};
  double watts = 0, low = 0, high = 0;  // and the ends of the 95 % interval
};

// One after the other; time between two of them is not known.
std::vector<Mean> means_of(const PowerTrack& track) {
  const std::size_t joined = track.extremes.empty() ? 1 : std::size_t{kMeanSteps};
  std::vector<Mean> means;
  for (std::size_t i = 0; i < track.steps.size();) {
    Energy energy, error;
    std::size_t end = i;
    for (; end < track.steps.size() && end < i + joined && track.steps[end]; ++end) {
      energy += track.steps[end]->energy;
      error += track.steps[end]->error;
    }
    const Duration length = begin_of(track, end) - begin_of(track, i);
    if (length > Duration{}) {
      const auto watts = [&](Energy e) { return std::max(e.joules(), 0.0) / seconds(length); };
      means.push_back({begin_of(track, i), begin_of(track, end), watts(energy),
                       watts(energy - error), watts(energy + error)});
    }
    i = std::max(end, i + 1);
  }
  return means;
}

double most_watts(const std::vector<Line>& lines) {
  double most = 1;
  for (const auto& [track, label, colour] : lines) {
    for (const auto& mean : means_of(*track)) most = std::max(most, mean.high);
    for (const auto& extremes : track->extremes) {
      if (extremes) most = std::max(most, extremes->second);
    }
  }
  return most;
}

class Chart {
 public:
  Chart(Drawing& drawing, Axis across, Axis up, HostTime origin, double unit)
      : drawing_(drawing), across_(across), up_(up), origin_(origin), unit_(unit) {}

  void draw(const PowerTrack& track, const char* colour) const {
    std::string extremes, band, line;
    for (std::size_t i = 0; i < track.extremes.size(); ++i) {
      if (!track.extremes[i]) continue;
      extremes += box(begin_of(track, i), begin_of(track, i + 1), track.extremes[i]->first,
                      track.extremes[i]->second);
    }
    HostTime last = HostTime::min();
    for (const auto& m : means_of(track)) {
      band += box(m.begin, m.end, m.low, m.high);
      line += fmt::format("{}{:.1f} {:.2f}H{:.1f}", m.begin == last ? "L" : "M", x(m.begin),
                          up_.at(m.watts), x(m.end));
      last = m.end;
    }
    fill(extremes, colour, 0.2);
    fill(band, colour, 0.32);
    drawing_.path(line, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.1\" "
                                    "data-domain=\"{}\"",
                                    colour, static_cast<std::uint32_t>(track.id)));
  }

 private:
  double x(HostTime t) const { return across_.at(seconds(t - origin_) / unit_); }

  std::string box(HostTime begin, HostTime end, double low, double high) const {
    return fmt::format("M{:.1f} {:.2f}H{:.1f}V{:.2f}H{:.1f}Z", x(begin), up_.at(high), x(end),
                       up_.at(low), x(begin));
  }

  void fill(const std::string& path, const char* colour, double opacity) const {
    if (path.empty()) return;
    drawing_.path(path, fmt::format("fill=\"{}\" fill-opacity=\"{}\"", colour, opacity));
  }

  Drawing& drawing_;
  Axis across_, up_;
  HostTime origin_;
  double unit_;
};

// A device's own track first, then those within it.
std::vector<std::vector<Line>> charts_of(const model::Profile& profile,
                                         const std::vector<PowerTrack>& tracks) {
  const auto labels = labels_of(profile);
  std::vector<std::vector<Line>> charts;
  for (const auto& outer : profile.domains) {
    if (outer.domain.parent) continue;
    std::vector<Line> lines;
    for (std::size_t i = 0; i < profile.domains.size(); ++i) {
      const auto& d = profile.domains[i].domain;
      if (d.id != outer.domain.id && d.parent != outer.domain.id) continue;
      const auto track = std::ranges::find(tracks, d.id, &PowerTrack::id);
      if (track == tracks.end() || lines.size() > kPartColours.size()) continue;
      const bool is_gpu = d.kind == model::DomainKind::kGpu;
      const char* const own = is_gpu ? kGpuColour : kOtherColour;
      lines.push_back({&*track, labels[i], d.parent ? kPartColours[lines.size() - 1] : own});
    }
    if (!lines.empty()) charts.push_back(std::move(lines));
  }
  return charts;
}

void draw_names(Drawing& drawing, double y, const std::vector<Line>& lines) {
  double x = kFigureMargin + kLeft;
  for (const auto& [track, label, colour] : lines) {
    drawing.line(x, y - 4, x + 14, y - 4, fmt::format("stroke=\"{}\" stroke-width=\"2\"", colour));
    drawing.text(x + 19, y, label);
    x += 19 + text_width(label, 12) + 20;
  }
}

}  // namespace

double draw_timeline(Drawing& drawing, double y, const model::Profile& profile,
                     const std::vector<PowerTrack>& tracks, HostTime origin) {
  const auto charts = charts_of(profile, tracks);
  if (charts.empty()) return y;
  HostTime begin = HostTime::max(), end = HostTime::min();
  for (const auto& track : tracks) {
    begin = std::min(begin, track.begin);
    end = std::max(end, track.end);
  }
  const TimeUnit unit = unit_of(end - begin);
  const Axis across{seconds(begin - origin) / unit.seconds, seconds(end - origin) / unit.seconds,
                    kFigureMargin + kLeft, kFigureMargin + kFigureInner};
  drawing.text(kFigureMargin, y += 20, "Power over time (W)", "class=\"heading\"");
  for (const auto& lines : charts) {
    draw_names(drawing, y += 24, lines);
    const double top = y + 8;
    const double bottom = top + kChartHeight;
    const Axis up{0, most_watts(lines) * 1.05, bottom, top};
    for (const double tick : ticks(up.low, up.high, 4)) {
      drawing.line(across.from, up.at(tick), across.to, up.at(tick), "class=\"grid\"");
      drawing.text(across.from - 6, up.at(tick) + 4, fmt::format("{:g}", tick),
                   "text-anchor=\"end\"");
    }
    for (const HostTime edge : {profile.begin, profile.end}) {
      const double x = across.at(seconds(edge - origin) / unit.seconds);
      if (x > across.from + 1 && x < across.to - 1) {
        drawing.line(x, top, x, bottom, "class=\"edge\"");
      }
    }
    const Chart chart(drawing, across, up, origin, unit.seconds);
    // The device itself on top of what it contains.
    for (std::size_t i = lines.size(); i-- > 0;) chart.draw(*lines[i].track, lines[i].colour);
    y = bottom;
  }
  for (const double tick : ticks(across.low, across.high, 10)) {
    drawing.text(across.at(tick), y + 16, fmt::format("{:g}", tick), "text-anchor=\"middle\"");
  }
  const std::string title =
      fmt::format("time since the {} began ({})",
                  profile.run.source.empty() ? "command" : "recording", unit.name);
  drawing.text(across.to, y + 32, title, "text-anchor=\"end\"");
  const auto& [first, label, colour] = charts.front().front();
  const bool has_extremes = !first->extremes.empty();
  std::string steps =
      fmt::format("line: mean of {} ({}); band: its 95 % interval",
                  duration_text(has_extremes ? kMeanSteps * first->step : first->step), label);
  if (has_extremes) {
    steps += "; light: least and greatest power of each " + duration_text(first->step);
  }
  // Both in one line where they have the room.
  const bool fits = text_width(steps, 12) + text_width(title, 12) + 20 <= across.to - across.from;
  y += fits ? 32 : 48;
  drawing.text(across.from, y, steps, "class=\"soft\"");
  return y;
}

}  // namespace jouleprof::report
