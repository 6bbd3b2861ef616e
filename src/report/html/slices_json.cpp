#include "report/html/slices_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "report/quantity.h"

namespace jouleprof::report {
namespace {

constexpr std::int64_t kMostUnits = 100'000;  // five digits of the greatest slice
constexpr double kMainPart = 0.1;             // of the greatest slice: decides the ratio
constexpr double kLittle = 0.02;              // of the sum

// Errors of most rows are proportional to their energies, which takes one number.
struct Errors {
  double ratio = 0;
  double more = 0;  // of all slices that exceed it
};

Errors errors_of(const model::ActivitySlices::Row& row, double greatest) {
  Errors out;
  for (std::size_t i = 0; i < row.energies.size(); ++i) {
    const double energy = std::abs(row.energies[i].joules());
    if (energy < kMainPart * greatest || energy <= 0) continue;
    out.ratio = std::max(out.ratio, row.errors[i].joules() / energy);
  }
  out.ratio = std::ceil(1000 * out.ratio) / 1000;
  for (std::size_t i = 0; i < row.energies.size(); ++i) {
    const double covered = out.ratio * std::abs(row.energies[i].joules());
    out.more += std::max(row.errors[i].joules() - covered, 0.0);
  }
  return out;
}

Json row_json(const model::ActivitySlices::Row& row) {
  double greatest = 0;
  double sum = 0;
  for (const Energy e : row.energies) {
    greatest = std::max(greatest, std::abs(e.joules()));
    sum += std::abs(e.joules());
  }
  std::int64_t unit = 1;
  while (greatest * 1e6 >= static_cast<double>(kMostUnits * unit)) unit *= 10;
  const auto units = [&](Energy e) { return e.joules() * 1e6 / static_cast<double>(unit); };
  Json energies = Json::array();
  for (const Energy e : row.energies) energies.push_back(std::llround(units(e)));
  const Errors errors = errors_of(row, greatest);
  Json list = nullptr;
  if (errors.more > kLittle * sum) {
    list = Json::array();
    for (const Energy e : row.errors) {
      list.push_back(static_cast<std::int64_t>(std::ceil(units(e))));
    }
  }
  return {row.row,
          unit,
          std::move(energies),
          decimal(fixed_decimal(errors.ratio, 3)),
          static_cast<std::int64_t>(std::ceil(units(Energy::joules(errors.more)))),
          std::move(list)};
}

Json rows_json(const std::vector<model::ActivitySlices::Row>& rows) {
  Json list = Json::array();
  for (const auto& row : rows) list.push_back(row_json(row));
  return list;
}

}  // namespace

Json slices_json(const std::vector<model::ActivitySlices>& slices, HostTime origin) {
  Json list = Json::array();
  for (const auto& s : slices) {
    list.push_back({{"id", static_cast<std::uint32_t>(s.domain)},
                    {"begin_seconds", seconds_json(s.begin - origin)},
                    {"step_seconds", seconds_json(s.step)},
                    {"count", s.count},
                    {"kernel", rows_json(s.by_kernel)},
                    {"layer", rows_json(s.by_layer)},
                    {"range", rows_json(s.by_range)},
                    {"phase", rows_json(s.by_phase)}});
  }
  return list;
}

}  // namespace jouleprof::report
