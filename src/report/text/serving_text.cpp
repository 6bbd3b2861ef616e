#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/cells.h"
#include "report/format/format.h"
#include "report/quantity.h"
#include "report/text/table.h"

namespace jouleprof::report {
namespace {

using model::ServedEnergy;
using model::ServingProfile;

class Writer {
 public:
  Writer(const ServingProfile& profile, const TextOptions& text) : profile_(profile), page_(text) {}

  std::string whole(const ServingOptions& options) {
    table(options);
    page_.blank();
    boards();
    page_.note("",
               profile_.in_flight
                   ? "division: tokens in flight, as a proxy saw them, with equal parts of what is "
                     "fixed among those in flight. Rest and held are not in it."
                   : "fair share: a request's own work, and equal parts of what is fixed in each "
                     "step; marginal: what would be saved without it. Between the two lies the "
                     "choice of a rule, which is no error. Rest and held are not in either.");
    for (const auto& warning : profile_.warnings) page_.note("warning", warning, Style::kAttention);
    return page_.joined();
  }

  std::string brief() {
    boards();
    for (const auto& warning : profile_.warnings) page_.note("warning", warning, Style::kAttention);
    return page_.joined();
  }

 private:
  template <class Served>
  void row(Table& table, const std::string& label, const std::string& of, const Served& e,
           const std::string& notes) {
    const auto text = [&e](Energy part) { return e.is_known() ? energy_text(part) : "-"; };
    const auto per_token = e.per_token();
    table.add(
        {{page_.safe(label), Style::kBold},
         {page_.safe(of)},
         {text(e.energy), Style::kBold},
         {e.is_known() ? interval_text(e.energy, e.error(), e.error(), page_.text.ascii) : "-"},
         {text(e.prefill)},
         {text(e.decode)},
         {per_token ? energy_text(Energy::joules(*per_token)) : "-"},
         {profile_.in_flight ? "-" : text(e.marginal)},
         {text(e.idle_share)},
         {fmt::format("{}+{}", e.tokens_in, e.tokens_out)},
         {fmt::format("{:.1f}", e.shared_with)},
         {page_.safe(notes)}});
  }

  static std::string notes_of(const model::RequestEnergy& r) {
    std::string out = notes_of(static_cast<const ServedEnergy&>(r));
    if (r.cached > 0 && !r.filler.empty()) out += " of " + r.filler;
    if (!r.finish) out += out.empty() ? "not finished" : ", not finished";
    return out;
  }
  static std::string notes_of(const model::TenantEnergy& t) {
    std::string out = notes_of(static_cast<const ServedEnergy&>(t));
    if (t.is_known() && t.without_energy > 0) {
      out += fmt::format("{}without {} requests", out.empty() ? "" : ", ", t.without_energy);
    }
    return out;
  }
  static std::string notes_of(const ServedEnergy& e) {
    std::string out = e.reason;
    const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
    if (e.recomputed > Energy{}) add(energy_text(e.recomputed) + " recomputed");
    if (e.rejected > Energy{}) add(energy_text(e.rejected) + " rejected");
    if (e.cached > 0) add(fmt::format("{} tokens cached", e.cached));
    return out;
  }

  void table(const ServingOptions& options) {
    Table table({options.by_tenant ? "tenant" : "request",
                 options.by_tenant ? "requests" : "<tenant", "energy", "<95 %", "prefill", "decode",
                 "a token out", "marginal", "rest and held", "tokens in+out", "shared with",
                 "<notes"});
    const std::size_t most = options.top.value_or(profile_.requests.size());
    std::size_t left = 0;
    if (options.by_tenant) {
      for (const auto& t : profile_.tenants) {
        if (&t - profile_.tenants.data() >= static_cast<std::ptrdiff_t>(most)) break;
        row(table, t.tenant.empty() ? "(none)" : t.tenant, fmt::format("{}", t.requests), t,
            notes_of(t));
      }
      left = profile_.tenants.size() - std::min(most, profile_.tenants.size());
    } else {
      std::vector<const model::RequestEnergy*> order;
      for (const auto& r : profile_.requests) order.push_back(&r);
      std::ranges::stable_sort(order, [](auto* a, auto* b) { return a->energy > b->energy; });
      left = order.size() - std::min(most, order.size());
      order.resize(order.size() - left);
      for (const auto* r : order) row(table, r->id, r->tenant, *r, notes_of(*r));
    }
    page_.add(table);
    if (left > 0) page_.note("", fmt::format("{} more: --top {}", left, left + most));
  }

  // Rest + held + between + requests + unattributed == the board's energy.
  void boards() {
    for (const auto& b : profile_.boards) {
      std::string parts;
      const auto add = [&](std::string_view name, Energy e) {
        parts += fmt::format("{}{} {}", parts.empty() ? "" : " + ", name, energy_text(e));
      };
      if (b.rest && b.held) {
        add("rest", *b.rest);
        add("held", *b.held);
      } else if (b.idle_levels) {
        add("idle", *b.idle_levels);
      }
      if (b.is_divided) {
        add("between steps", b.between);
        add("requests", b.requests);
      }
      add("unattributed", b.unattributed);
      if (b.others > Energy{}) {
        parts += fmt::format(" (of other programs {})", energy_text(b.others));
      }
      const auto word = provenance_word(b.measured.provenance);
      page_.note(
          page_.safe(b.domain.device),
          fmt::format("{} {}= {}; {}", energy_text(b.measured.energy),
                      word == "measured" ? "" : word + ' ', parts,
                      b.is_divided ? fmt::format("{} steps, {} of them; {:.0f} % of the variance "
                                                 "of power explained",
                                                 b.steps, duration_text(b.busy), 100 * b.explained)
                                   : "not divided among requests"),
          Style::kBold);
    }
  }

  const ServingProfile& profile_;
  TextPage page_;
};

}  // namespace

std::string serving_to_text(const ServingProfile& profile, const ServingOptions& options,
                            const TextOptions& text) {
  return Writer(profile, text).whole(options);
}

std::string serving_to_brief_text(const ServingProfile& profile, const TextOptions& text) {
  return Writer(profile, text).brief();
}

}  // namespace jouleprof::report
