#include "session/sampling/sampler.h"

#include <algorithm>
#include <unordered_map>

namespace jouleprof::session {
namespace {

model::DomainId shifted(model::DomainId id, std::uint32_t by) {
  return model::DomainId{static_cast<std::uint32_t>(id) + by};
}

}  // namespace

std::vector<model::Domain> joined_domains(
    const std::vector<std::unique_ptr<meters::Meter>>& meters) {
  std::vector<model::Domain> all;
  for (const auto& meter : meters) {
    const auto first = static_cast<std::uint32_t>(all.size());
    for (model::Domain domain : meter->domains()) {
      domain.id = shifted(domain.id, first);
      if (domain.parent) domain.parent = shifted(*domain.parent, first);
      all.push_back(std::move(domain));
    }
  }
  return all;
}

Sampler::Sampler(std::vector<std::unique_ptr<meters::Meter>> meters, Duration process_period,
                 const std::function<bool(const model::Domain&)>& keep) {
  const auto joined = joined_domains(meters);
  std::unordered_map<model::DomainId, bool> kept;
  for (const auto& domain : joined) kept[domain.id] = !keep || keep(domain);
  std::uint32_t first_domain = 0;
  std::uint32_t first_sensor = 0;
  for (model::Domain domain : joined) {
    if (!kept[domain.id]) continue;
    if (domain.parent && !kept[*domain.parent]) domain.parent.reset();
    domains_.push_back(std::move(domain));
  }
  for (auto& meter : meters) {
    IdMap ids;
    ids.domains.resize(meter->domains().size());
    ids.sensors.resize(meter->sensors().size());
    for (std::uint32_t i = 0; i < ids.domains.size(); ++i) {
      const model::DomainId id{first_domain + i};
      if (kept[id]) ids.domains[i] = id;
    }
    for (model::Sensor sensor : meter->sensors()) {
      const auto own = static_cast<std::uint32_t>(sensor.id);
      sensor.id = model::SensorId{first_sensor + own};
      sensor.domain = shifted(sensor.domain, first_domain);
      if (!kept[sensor.domain] || own >= ids.sensors.size()) continue;
      ids.sensors[own] = sensor.id;
      sensors_.push_back(std::move(sensor));
    }
    first_domain += static_cast<std::uint32_t>(ids.domains.size());
    first_sensor += static_cast<std::uint32_t>(ids.sensors.size());
    lanes_.push_back(std::make_unique<Lane>(std::move(meter), std::move(ids), process_period));
  }
}

void Sampler::on_news(const std::function<void()>& reported) {
  for (auto& lane : lanes_) lane->on_news(reported);
}

bool Sampler::has_buffer() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& l) { return l->has_buffer(); });
}

bool Sampler::has_new_process() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const auto& l) { return l->has_new_process(); });
}

void Sampler::start() {
  for (auto& lane : lanes_) lane->start();
}

std::vector<std::uint64_t> Sampler::read_soon() {
  std::vector<std::uint64_t> numbers;
  for (auto& lane : lanes_) numbers.push_back(lane->ask_to_read());
  return numbers;
}

bool Sampler::has_read(const std::vector<std::uint64_t>& numbers) const {
  for (std::size_t i = 0; i < lanes_.size() && i < numbers.size(); ++i) {
    if (!lanes_[i]->has_read(numbers[i])) return false;
  }
  return true;
}

void Sampler::set_pace(const meters::Demand& demand, Duration process_period) {
  for (auto& lane : lanes_) lane->set_pace(demand, process_period);
}

void Sampler::take(Sampled& out) {
  for (auto& lane : lanes_) lane->take(out);
}

void Sampler::stop(Duration patience, Sampled& out) {
  for (auto& lane : lanes_) lane->ask_to_stop();
  const HostTime deadline = HostClock::now() + patience;
  for (auto& lane : lanes_) lane->finish(deadline, out);
  lanes_.clear();
}

}  // namespace jouleprof::session
