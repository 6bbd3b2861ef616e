// Attributed energies that the tests render.
#pragma once

#include <string>
#include <utility>

#include "model/activity/activity_profile.h"
#include "report/example_profiles_test.h"

namespace jouleprof::report {

inline model::Measurement active(double joules, double error) {
  return measured(joules, error, error / 2, "nvmlDeviceGetTotalEnergyConsumption", "regression");
}

inline model::ActivityRow kernel(std::string name, std::string detail, std::uint64_t launches,
                                 double busy, double joules, double error) {
  model::ActivityRow row;
  row.name = std::move(name);
  row.detail = std::move(detail);
  row.launches = row.count = launches;
  row.busy = duration_of(busy);
  row.energy = active(joules, error);
  return row;
}

inline model::ActivityRow layer(std::string name, std::string detail, std::uint32_t parent,
                                double busy, double own, double all) {
  model::ActivityRow row;
  row.name = std::move(name);
  row.detail = std::move(detail);
  row.parent = parent;
  row.count = 100;
  row.launches = 300;
  row.busy = duration_of(busy);
  row.energy = active(own, own / 20);
  row.inclusive = active(all, all / 25);
  return row;
}

// 60 s on one GPU.
inline model::ActivityProfile activity_profile() {
  model::ActivityProfile p;
  p.domain = domain(0, model::DomainKind::kGpu, "gpu0", "NVIDIA H100 80GB HBM3").domain;
  p.domain.uuid = "GPU-11111111-2222-3333-4444-555555555555";
  p.begin = at(100);
  p.end = at(160);
  p.measured =
      measured(24871.204518, 1243.56, 24.87, "nvmlDeviceGetTotalEnergyConsumption", "counter");
  p.idle = Energy::joules(7260.5);
  p.levels.rest = p.levels.held = p.levels.active = p.measured;
  p.levels.rest->energy = Energy::joules(4800.5);
  p.levels.held->energy = Energy::joules(2460);
  p.levels.active->energy = p.measured.energy - p.idle;
  p.gaps = Energy::joules(-12.25);
  p.by_process = {{0, 4711, 1'234'567, duration_of(50.0), Energy::joules(16243.75), p.gaps}};
  p.idle_power = Power::watts(121.0083);
  p.idle_error = Power::watts(1.5);
  p.explained = 0.9312;
  p.rows = 599;
  p.method = "regression on the energy counter and samples";
  p.launches = 1'234'567;
  const std::string elementwise =
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_";
  p.by_kernel = {
      kernel("nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "132x1x1 x 384x1x1", 60'000, 30.5,
             12'100.25, 181.5),
      kernel("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, "
             "false, cutlass::bfloat16_t>, false, false>(pytorch_flash::Flash_fwd_params)",
             "2x64x12 x 128x1x1", 12'000, 8.25, 2'900, 300),
      kernel("memset 64 B", "", 12'000, 0.0121, 1.25, 9),
      kernel(elementwise + "add<c10::BFloat16>, std::array<char*, 3ul> >(int, "
                           "at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
             "9457x1x1 x 128x1x1", 24'000, 4.5, 1'201.5, 60),
      kernel(elementwise + "mul<c10::BFloat16>, std::array<char*, 3ul> >(int, "
                           "at::native::CUDAFunctor_mul<c10::BFloat16>, std::array<char*, 3ul>)",
             "9457x1x1 x 128x1x1", 1'126'567, 3.75, 0.75, 0.25),
      kernel("triton_poi_fused_gelu_3", "4096x1x1 x 256x1x1", 12, 0.001, 40, 900),
  };
  p.by_kernel[1].group = p.by_kernel[2].group = 0;
  p.by_kernel[1].group_energy = p.by_kernel[2].group_energy = active(2'901.25, 87);
  p.by_kernel[2].reason = "split by time";
  p.by_kernel[5].resolvable = false;
  p.by_kernel[5].reason = "it ran for 1 ms in all";
  p.by_kernel[0].symbol = "nvjet_sm90_tst_128x256_64x4_1x2_h_bz_coopA_TNT";
  for (const auto& row : p.by_kernel) p.kernels += row.energy->energy;
  p.unattributed = p.measured.energy - p.idle - p.kernels - p.gaps;
  p.by_layer = {
      layer("VisionTransformer", "", model::kNone, 0.5, 20, 16'000),
      layer("blocks.0", "Block", 0, 0.25, 10, 8'000),
      layer("blocks.0.attn.qkv", "Linear [64, 197, 768] bfloat16", 1, 9, 4'000, 4'000),
      layer("blocks.0.mlp", "Mlp", 1, 7, 3'990, 3'990),
      layer("head", "Linear", 0, 0.5, 3, 3),
  };
  p.by_layer[2].macs = 22.3e9;
  p.by_layer[2].parameters = 1'771'776;
  p.by_layer[4].resolvable = false;
  p.by_layer[4].reason = "it ran for 5 ms in all";
  p.by_phase = {layer("forward", "", model::kNone, 12, 9'000, 9'000),
                layer("backward", "", model::kNone, 24, 7'000, 7'000)};
  for (auto& row : p.by_phase) {
    row.inclusive.reset();
    row.count = 0;
  }
  p.by_kernel[3].remembered = p.by_layer[3].remembered = true;
  p.remembered = model::RememberedUse{5, 1, RealTime{std::chrono::hours{24 * 20'000}},
                                      RealTime{std::chrono::hours{24 * 20'007}}};
  p.lost = Energy::joules(30.5);
  p.dropped = 42;
  p.memsets_left_out = 1234;
  p.warnings = {
      "the power limit held the GPU back for 3.2 s of 60.0 s; there a kernel's power is "
      "not its own"};
  return p;
}

}  // namespace jouleprof::report
