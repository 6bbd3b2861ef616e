// For tests: a meter on made-up devices, and ways to find its parts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "meters/nvml/nvml_fixture.h"
#include "meters/nvml/nvml_meter.h"

namespace jouleprof::meters {

class NvmlMeterTest : public testing::Test {
 protected:
  // A Hopper with all its sensors: counter, ring, instant and average power, the memory's share.
  nvml::FakeGpu& add_hopper() {
    nvml::FakeGpu& gpu = fake_.gpus.emplace_back();
    gpu.uuid = "GPU-" + std::string(8, static_cast<char>('0' + fake_.gpus.size() - 1));
    gpu.set_power(abi::kFieldPowerInstant, abi::kScopeGpu, 251'000);
    gpu.set_power(abi::kFieldPowerAverage, abi::kScopeGpu, 250'000);
    gpu.set_power(abi::kFieldPowerAverage, abi::kScopeMemory, 33'000);
    for (int i = 10; i > 0; --i)
      gpu.push_sample(fake_.clock.real - std::chrono::milliseconds(20) * i, 250'000);
    return gpu;
  }
  nvml::FakeGpu& add_old(abi::Architecture architecture, int major, int minor) {
    nvml::FakeGpu& gpu = fake_.gpus.emplace_back();
    gpu.architecture = architecture;
    gpu.major = major;
    gpu.minor = minor;
    gpu.energy_code = abi::Return::kNotSupported;
    return gpu;
  }
  NvmlMeter& open() {
    options_.clock = fake_.seam();
    auto meter = NvmlMeter::open(api_, options_);
    EXPECT_TRUE(meter) << meter.error().message;
    meter_ = std::move(*meter);
    return *meter_;
  }
  std::string open_error() {
    options_.clock = fake_.seam();
    auto meter = NvmlMeter::open(api_, options_);
    return meter ? "" : meter.error().message;
  }
  const model::Sensor* find(model::SensorKind kind,
                            model::DomainKind domain = model::DomainKind::kGpu) {
    for (const auto& s : meter_->sensors()) {
      if (s.kind == kind && meter_->domains()[std::size_t(s.domain)].kind == domain) return &s;
    }
    return nullptr;
  }
  const model::Sensor* gauge(std::string_view name) {
    for (const auto& s : meter_->sensors()) {
      if (s.name == name) return &s;
    }
    return nullptr;
  }
  std::optional<std::size_t> probe(std::string_view name) {
    for (std::size_t i = 0; i < meter_->probes().size(); ++i) {
      if (meter_->probes()[i].name == name) return i;
    }
    return std::nullopt;
  }
  bool misses(std::string_view what) {
    return std::any_of(meter_->missing().begin(), meter_->missing().end(),
                       [&](const Missing& m) { return m.what == what; });
  }

  nvml::FakeNvml fake_;
  nvml::NvmlApi api_ = fake_.api();
  NvmlOptions options_;
  std::unique_ptr<NvmlMeter> meter_;
};

}  // namespace jouleprof::meters
