#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "abi/cuda_abi.h"
#include "base/process/dynlib.h"
#include "meters/nvml/calibration/calibrator.h"

namespace jouleprof::meters::nvml {

namespace cuda = abi::cuda;

// The functions of CUDA's driver library that a load needs.
struct CudaApi {
  DynLib library;
  cuda::fn::Init* init = nullptr;
  cuda::fn::GetErrorString* error_string = nullptr;
  cuda::fn::DeviceGetCount* device_count = nullptr;
  cuda::fn::DeviceGet* device = nullptr;
  cuda::fn::DeviceGetUuid_v2* uuid = nullptr;
  cuda::fn::DeviceGetAttribute* attribute = nullptr;
  cuda::fn::DevicePrimaryCtxRetain* retain = nullptr;
  cuda::fn::DevicePrimaryCtxRelease_v2* release = nullptr;
  cuda::fn::CtxSetCurrent* set_current = nullptr;
  cuda::fn::CtxSynchronize* synchronize = nullptr;
  cuda::fn::ModuleLoadData* load_module = nullptr;
  cuda::fn::ModuleUnload* unload_module = nullptr;
  cuda::fn::ModuleGetFunction* function = nullptr;
  cuda::fn::MemAlloc_v2* allocate = nullptr;
  cuda::fn::MemFree_v2* free = nullptr;
  cuda::fn::LaunchKernel* launch = nullptr;

  // Loads libcuda.so.1. Errors: not_found without it; unsupported when it lacks a function.
  Result<void> load();
  // The error of a call that returned `code`, with CUDA's text and what to do.
  tl::unexpected<Error> failed(std::string_view call, cuda::Result code) const;
};

Result<void> CudaApi::load() {
  auto found = DynLib::open(cuda::kLibrary);
  if (!found) {
    return fail(Errc::kNotFound,
                fmt::format("cannot put a load on the GPU: CUDA's driver library cannot be loaded "
                            "({}). Install the CUDA part of the NVIDIA driver (Debian: libcuda1). "
                            "In a container, use the NVIDIA container toolkit with "
                            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                            found.error().message));
  }
  library = std::move(*found);
  const char* absent = nullptr;
  const auto need = [&](auto*& function_pointer, const char* name) {
    if (!library.bind(function_pointer, name)) absent = name;
  };
  need(init, "cuInit");
  need(error_string, "cuGetErrorString");
  need(device_count, "cuDeviceGetCount");
  need(device, "cuDeviceGet");
  need(attribute, "cuDeviceGetAttribute");
  need(retain, "cuDevicePrimaryCtxRetain");
  need(release, "cuDevicePrimaryCtxRelease_v2");
  need(set_current, "cuCtxSetCurrent");
  need(synchronize, "cuCtxSynchronize");
  need(load_module, "cuModuleLoadData");
  need(unload_module, "cuModuleUnload");
  need(function, "cuModuleGetFunction");
  need(allocate, "cuMemAlloc_v2");
  need(free, "cuMemFree_v2");
  need(launch, "cuLaunchKernel");
  // Drivers before CUDA 11.4 have the first form alone.
  if (!library.bind(uuid, "cuDeviceGetUuid_v2")) need(uuid, "cuDeviceGetUuid");
  if (absent == nullptr) return {};
  return fail(Errc::kUnsupported,
              fmt::format("{} has no function {}. Calibration needs an NVIDIA driver of CUDA 11 or "
                          "newer",
                          cuda::kLibrary, absent));
}

tl::unexpected<Error> CudaApi::failed(std::string_view call, cuda::Result code) const {
  const char* text = nullptr;
  if (error_string(code, &text) != cuda::kSuccess || text == nullptr) text = "unknown error";
  std::string message = fmt::format("{} failed: {} (CUDA error {})", call, text, code);
  if (code == cuda::kNoDevice) {
    message += ". CUDA finds no GPU; check CUDA_VISIBLE_DEVICES";
    return fail(Errc::kNotFound, std::move(message));
  }
  if (code == cuda::kOutOfMemory || code == cuda::kDeviceUnavailable) {
    message += ". End the other programs on the GPU and try again";
  }
  return fail(Errc::kUnavailable, std::move(message));
}

namespace {

using namespace std::chrono_literals;

constexpr unsigned kThreads = 256;  // a block
// Much longer than a launch costs, and shorter than any sensor's window.
constexpr Duration kLaunch = 500us;
constexpr unsigned kFirstRounds = 64;
constexpr unsigned kMostRounds = 1U << 20;

// Four logistic maps a thread, x <- 3.9 x (1 - x): chaotic, so that operands keep changing
// (constant ones draw less power), and never zero. The sum is positive, so nothing is ever stored,
// but the compiler cannot prove that. The driver compiles PTX of this target for any GPU since
// Maxwell.
constexpr const char* kKernel = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry burn(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p<2>;
  .reg .b32 %n, %thread, %threads;
  .reg .b64 %address;
  .reg .f32 %x<4>, %t<4>, %r, %s;
  ld.param.u64 %address, [out];
  cvta.to.global.u64 %address, %address;
  ld.param.u32 %n, [rounds];
  mov.u32 %thread, %tid.x;
  mov.u32 %threads, %ntid.x;
  add.u32 %thread, %thread, 1;
  add.u32 %threads, %threads, 2;
  cvt.rn.f32.u32 %x0, %thread;
  cvt.rn.f32.u32 %s, %threads;
  div.approx.f32 %x0, %x0, %s;
  mov.f32 %r, 0f4079999A;
  mul.f32 %x1, %x0, 0f3F666666;
  mul.f32 %x2, %x0, 0f3F4CCCCD;
  mul.f32 %x3, %x0, 0f3F333333;
LOOP:
  neg.f32 %t0, %x0;
  neg.f32 %t1, %x1;
  neg.f32 %t2, %x2;
  neg.f32 %t3, %x3;
  fma.rn.f32 %t0, %t0, %x0, %x0;
  fma.rn.f32 %t1, %t1, %x1, %x1;
  fma.rn.f32 %t2, %t2, %x2, %x2;
  fma.rn.f32 %t3, %t3, %x3, %x3;
  mul.f32 %x0, %t0, %r;
  mul.f32 %x1, %t1, %r;
  mul.f32 %x2, %t2, %r;
  mul.f32 %x3, %t3, %r;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p0, %n, 0;
  @%p0 bra LOOP;
  add.f32 %x0, %x0, %x1;
  add.f32 %x2, %x2, %x3;
  add.f32 %x0, %x0, %x2;
  setp.lt.f32 %p1, %x0, 0f00000000;
  @%p1 st.global.f32 [%address], %x0;
  ret;
}
)";

std::string text_of(const cuda::Uuid& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < std::size(uuid.bytes); ++i) {
    const bool group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", group ? "-" : "", uuid.bytes[i]);
  }
  return text;
}

}  // namespace

struct CudaLoad::State {
  CudaApi api;
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  cuda::Module module = nullptr;
  cuda::Function kernel = nullptr;
  cuda::DevicePtr out = 0;
  unsigned blocks = 0;
  unsigned rounds = kFirstRounds;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (context == nullptr) return;
    if (api.set_current(context) == cuda::kSuccess) {
      if (out != 0) (void)api.free(out);
      if (module != nullptr) (void)api.unload_module(module);
      (void)api.set_current(nullptr);
    }
    (void)api.release(device);
  }

  Result<void> find(const std::string& uuid);
  Result<void> run_once();
};

Result<void> CudaLoad::State::find(const std::string& uuid) {
  if (const auto code = api.init(0)) return api.failed("cuInit", code);
  int count = 0;
  if (const auto code = api.device_count(&count)) return api.failed("cuDeviceGetCount", code);
  for (int i = 0; i < count; ++i) {
    cuda::Uuid bytes{};
    if (const auto code = api.device(&device, i)) return api.failed("cuDeviceGet", code);
    if (const auto code = api.uuid(&bytes, device)) return api.failed("cuDeviceGetUuid", code);
    if (text_of(bytes) == uuid) return {};
  }
  return fail(
      Errc::kNotFound,
      fmt::format("CUDA lists {} GPU(s), and {} is not among them. Unset CUDA_VISIBLE_DEVICES, or "
                  "choose other GPUs with --devices",
                  count, uuid));
}

// Runs the kernel once and adapts the rounds of the next run to its duration, as clocks change.
Result<void> CudaLoad::State::run_once() {
  void* parameters[] = {&out, &rounds};
  const HostTime begin = HostClock::now();
  if (const auto code =
          api.launch(kernel, blocks, 1, 1, kThreads, 1, 1, 0, nullptr, parameters, nullptr)) {
    return api.failed("cuLaunchKernel", code);
  }
  if (const auto code = api.synchronize()) return api.failed("cuCtxSynchronize", code);
  const double scale = std::clamp(seconds(kLaunch) / seconds(HostClock::now() - begin), 0.5, 2.0);
  rounds = std::clamp(static_cast<unsigned>(scale * rounds), 1U, kMostRounds);
  return {};
}

CudaLoad::CudaLoad(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudaLoad::CudaLoad(CudaLoad&&) noexcept = default;
CudaLoad& CudaLoad::operator=(CudaLoad&&) noexcept = default;
CudaLoad::~CudaLoad() = default;

Result<CudaLoad> CudaLoad::open(const std::string& uuid) {
  auto state = std::make_unique<State>();
  if (auto loaded = state->api.load(); !loaded) return forward_error(loaded);
  if (auto found = state->find(uuid); !found) return forward_error(found);
  return CudaLoad(std::move(state));
}

Result<void> CudaLoad::start() {
  State& s = *state_;
  cuda::Context context = nullptr;
  if (const auto code = s.api.retain(&context, s.device)) {
    return s.api.failed("cuDevicePrimaryCtxRetain", code);
  }
  s.context = context;  // from here on the destructor releases it
  if (const auto code = s.api.set_current(context)) return s.api.failed("cuCtxSetCurrent", code);
  if (const auto code = s.api.load_module(&s.module, kKernel)) {
    return s.api.failed("cuModuleLoadData", code);
  }
  if (const auto code = s.api.function(&s.kernel, s.module, "burn")) {
    return s.api.failed("cuModuleGetFunction", code);
  }
  if (const auto code = s.api.allocate(&s.out, sizeof(float))) {
    return s.api.failed("cuMemAlloc", code);
  }
  int processors = 0;
  int threads = 0;
  if (const auto code =
          s.api.attribute(&processors, cuda::kAttributeMultiprocessorCount, s.device)) {
    return s.api.failed("cuDeviceGetAttribute", code);
  }
  if (const auto code =
          s.api.attribute(&threads, cuda::kAttributeMaxThreadsPerMultiprocessor, s.device)) {
    return s.api.failed("cuDeviceGetAttribute", code);
  }
  s.blocks = static_cast<unsigned>(std::max(processors, 1)) *
             std::max(static_cast<unsigned>(threads) / kThreads, 1U);
  // Until a run takes kLaunch: from 64 rounds that needs about twenty.
  for (int i = 0; i < 30; ++i) {
    if (auto run = s.run_once(); !run) return run;
  }
  return {};
}

Result<model::BusySpan> CudaLoad::burst(Duration length) {
  model::BusySpan span;
  span.begin = HostClock::now();
  do {
    if (auto run = state_->run_once(); !run) return forward_error(run);
    span.end = HostClock::now();
  } while (span.end - span.begin < length);
  return span;
}

}  // namespace jouleprof::meters::nvml
