// The library as drivers and Python load it, on a machine with or without a GPU.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "abi/nvtx_abi.h"
#include "apps/inject/nvtx_hooks.h"
#include "apps/inject/trace.h"
#include "recording/spool/spool_reader.h"
#include "spans/scopes/range_stack.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::inject {
namespace {

namespace fs = std::filesystem;

struct Reported : model::ActivitySink {
  model::Trace trace;
  void define(std::uint32_t, const model::TracedDevice& v) override { trace.devices.push_back(v); }
  void define(std::uint32_t, const model::KernelClass& v) override { trace.classes.push_back(v); }
  void define(std::uint32_t, const model::Layer& v) override { trace.layers.push_back(v); }
  void define(std::uint32_t, const model::Range& v) override { trace.ranges.push_back(v); }
  void define(std::uint32_t, const model::Scope& v) override { trace.scopes.push_back(v); }
  void add(const model::ActivityChunk& v) override { trace.chunks.push_back(v); }
  void status(const model::TraceStatus& v) override { trace.status = v; }
};

struct Read : spool::SpoolConsumer {
  std::vector<std::unique_ptr<Reported>> processes;
  std::vector<pid_t> pids;
  std::vector<std::string> warnings;
  model::ActivitySink& process(const spool::SpoolProcess& process) override {
    pids.push_back(process.pid);
    processes.push_back(std::make_unique<Reported>());
    return *processes.back();
  }
  void warn(std::string text) override { warnings.push_back(std::move(text)); }
};

Read read(const fs::path& folder) {
  Read all;
  spool::SpoolReader reader(folder);
  EXPECT_TRUE(reader.poll(all));
  EXPECT_THAT(all.warnings, ::testing::IsEmpty());
  return all;
}

fs::path new_folder(const std::string& name) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("inject_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

// Runs `work` in a process of its own, which ends as programs do.
template <typename Work>
int in_process(Work&& work) {
  const pid_t child = fork();
  if (child == 0) std::exit(work());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

struct Library {
  void* handle = dlopen(JOULEPROF_INJECT, RTLD_NOW | RTLD_LOCAL);
  template <typename F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(handle, name));
  }
};

TEST(Inject, ShowsItsEntryPointsOnly) {
  const Library library;
  ASSERT_NE(library.handle, nullptr) << dlerror();
  for (const char* name :
       {"InitializeInjection", "InitializeInjectionNvtx2", "jouleprof_trace_begin",
        "jouleprof_trace_flush", "jouleprof_trace_end"}) {
    EXPECT_NE(dlsym(library.handle, name), nullptr) << name;
  }
  EXPECT_EQ(dlsym(library.handle, "_ZN9jouleprof6scopes7currentEv"), nullptr);
}

TEST(Inject, WithoutAFolderItDoesNothing) {
  EXPECT_EQ(in_process([] {
              unsetenv("JOULEPROF_TRACE");
              const Library library;
              library.function<void()>("jouleprof_trace_flush")();
              library.function<void()>("jouleprof_trace_end")();
              return library.function<int()>("InitializeInjection")() == 1 ? 0 : 1;
            }),
            0);
}

TEST(Inject, AFolderThatCannotBeWrittenIsNoHarm) {
  EXPECT_EQ(in_process([] {
              setenv("JOULEPROF_TRACE", "/proc/nowhere", 1);
              const Library library;
              const auto begin =
                  library.function<int(const char*, const char*)>("jouleprof_trace_begin");
              return library.function<int()>("InitializeInjection")() == 1 &&
                             begin("/proc/nowhere", "kernels") != 0 && begin(nullptr, nullptr) != 0
                         ? 0
                         : 1;
            }),
            0);
}

TEST(Inject, AProcessThatLaunchesNothingLeavesItsStatus) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "CUPTI leaks memory of its own, and the process's status says so";
#endif
  const auto folder = new_folder("status");
  EXPECT_EQ(in_process([&] {
              setenv("JOULEPROF_TRACE", folder.c_str(), 1);
              setenv("JOULEPROF_TRACE_WHAT", "kernels", 1);
              const Library library;
              return library.function<int()>("InitializeInjection")() == 1 ? 0 : 1;
            }),
            0);
  const Read all = read(folder);
  ASSERT_EQ(all.processes.size(), 1U);
  EXPECT_TRUE(all.processes[0]->trace.status.ended);
  EXPECT_TRUE(all.processes[0]->trace.chunks.empty());
}

TEST(Inject, LayersAndSourcesAreReportedWithoutCuda) {
  const auto folder = new_folder("layers");
  EXPECT_EQ(in_process([&] {
              add_source([](model::ActivitySink& sink) {
                sink.add({model::ChunkKind::kLayers, model::kNone, {}, {}, {}});
              });
              if (!begin(folder.c_str(), "layers") || !begin("/nowhere", "kernels")) return 1;
              model::Layer layer;
              layer.name = "fc";
              scopes::add(layer);
              flush();
              return read(folder).processes.at(0)->trace.layers.at(0).name == "fc" ? 0 : 2;
            }),
            0);
  EXPECT_FALSE(read(folder).processes.at(0)->trace.chunks.empty());
}

TEST(Inject, AForkedChildBeginsItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer starts no threads after a fork";
#endif
  const auto folder = new_folder("fork");
  EXPECT_EQ(in_process([&] {
              begin(folder.c_str(), "layers");
              scopes::add(model::Range{"shared", model::kNone});
              flush();
              const int silent = in_process([] {
                flush();
                return 0;
              });
              const int own = in_process([&] {
                begin(folder.c_str(), "layers");
                flush();
                return 0;
              });
              return silent == 0 && own == 0 ? 0 : 1;
            }),
            0);
  const Read all = read(folder);
  ASSERT_EQ(all.processes.size(), 2U);
  for (const auto& process : all.processes) {
    EXPECT_TRUE(process->trace.status.ended);
    ASSERT_EQ(process->trace.ranges.size(), 1U);
    EXPECT_EQ(process->trace.ranges[0].name, "shared");
  }
}

TEST(Inject, BeginsAgainAfterTheEnd) {
  const auto folder = new_folder("again");
  EXPECT_EQ(in_process([&] {
              begin(folder.c_str(), "layers");
              scopes::add(model::Range{"shared", model::kNone});
              end(false);
              begin(folder.c_str(), "layers");
              return 0;
            }),
            0);
  const Read all = read(folder);
  ASSERT_EQ(all.processes.size(), 2U);
  for (const auto& process : all.processes) EXPECT_EQ(process->trace.ranges.size(), 1U);
}

// NVTX's client, in miniature: places that only we may fill.
struct NvtxClient {
  std::array<abi::nvtx::Function, 16> core{};
  std::array<abi::nvtx::Function, 16> core2{};
  std::array<abi::nvtx::Function*, 16> core_places{};
  std::array<abi::nvtx::Function*, 16> core2_places{};
  abi::nvtx::CallbackTable callbacks{sizeof(abi::nvtx::CallbackTable), module_functions};
  unsigned size = 16;

  static NvtxClient*& now() {
    static NvtxClient* client = nullptr;
    return client;
  }
  NvtxClient() {
    now() = this;
    for (std::size_t i = 1; i != 16; ++i) {
      core_places[i] = &core[i];
      core2_places[i] = &core2[i];
    }
  }
  static int module_functions(abi::nvtx::Module module, abi::nvtx::FunctionTable* table,
                              unsigned* size) {
    *table =
        module == abi::nvtx::Module::kCore ? now()->core_places.data() : now()->core2_places.data();
    *size = now()->size;
    return 1;
  }
  static const void* export_table(std::uint32_t id) {
    return id == 1 ? &now()->callbacks : nullptr;
  }

  template <typename F>
  F* core_function(unsigned id) const {
    return reinterpret_cast<F*>(core[id]);
  }
  template <typename F>
  F* domain_function(unsigned id) const {
    return reinterpret_cast<F*>(core2[id]);
  }
};

TEST(NvtxHooks, RangesBecomeTheThreadsScope) {
  NvtxClient client;
  ASSERT_TRUE(fill_nvtx(NvtxClient::export_table));
  const auto push = client.core_function<abi::nvtx::fn::RangePushA>(abi::nvtx::kRangePushA);
  const auto wide = client.core_function<abi::nvtx::fn::RangePushW>(abi::nvtx::kRangePushW);
  const auto push_ex = client.core_function<abi::nvtx::fn::RangePushEx>(abi::nvtx::kRangePushEx);
  const auto pop = client.core_function<abi::nvtx::fn::RangePop>(abi::nvtx::kRangePop);
  const std::uint32_t none = scopes::this_thread().range;
  EXPECT_EQ(push("a"), 0);
  const auto a = scopes::this_thread().range;
  EXPECT_EQ(wide(L"\u00e9\u20ac\U0001F600"), 1);
  const auto w = scopes::this_thread().range;
  abi::nvtx::EventAttributes attributes{};
  attributes.size = sizeof attributes;
  attributes.message_type = abi::nvtx::MessageType::kRegistered;
  attributes.message.registered = client.domain_function<abi::nvtx::fn::DomainRegisterStringA>(
      abi::nvtx::kDomainRegisterStringA)(nullptr, "known");
  EXPECT_EQ(push_ex(&attributes), 2);
  const auto known = scopes::this_thread().range;
  EXPECT_EQ(push_ex(nullptr), 3);
  EXPECT_EQ(push(nullptr), 4);
  attributes.size = 8;  // an older structure, without a message
  EXPECT_EQ(push_ex(&attributes), 5);
  for (int level = 5; level >= 0; --level) EXPECT_EQ(pop(), level);
  EXPECT_LT(pop(), 0);
  EXPECT_EQ(scopes::this_thread().range, none);
  Reported reported;
  scopes::tell_anew();
  scopes::tell(reported);
  EXPECT_EQ(reported.trace.ranges.at(a).name, "a");
  EXPECT_EQ(reported.trace.ranges.at(w), (model::Range{"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", a}));
  EXPECT_EQ(reported.trace.ranges.at(known), (model::Range{"known", w}));
  // Nobody else's places were touched.
  EXPECT_EQ(client.core[1], nullptr);
  EXPECT_EQ(client.core[12], nullptr);
}

TEST(NvtxHooks, StartedRangesEndInAnyOrderAndThread) {
  namespace nvtx = abi::nvtx;
  NvtxClient client;
  ASSERT_TRUE(fill_nvtx(NvtxClient::export_table));
  const auto start = client.core_function<nvtx::fn::RangeStartA>(nvtx::kRangeStartA);
  const auto wide = client.core_function<nvtx::fn::RangeStartW>(nvtx::kRangeStartW);
  const auto start_ex = client.core_function<nvtx::fn::RangeStartEx>(nvtx::kRangeStartEx);
  const auto end = client.core_function<nvtx::fn::RangeEnd>(nvtx::kRangeEnd);
  const auto domain_start =
      client.domain_function<nvtx::fn::DomainRangeStartEx>(nvtx::kDomainRangeStartEx);
  const auto domain_end = client.domain_function<nvtx::fn::DomainRangeEnd>(nvtx::kDomainRangeEnd);
  abi::nvtx::EventAttributes attributes{};
  attributes.size = sizeof attributes;
  attributes.message_type = nvtx::MessageType::kAscii;
  attributes.message.ascii = "named";
  const auto name = [] {
    scopes::drop_ended_ranges();
    Reported reported;
    scopes::tell_anew();
    scopes::tell(reported);
    std::string path;
    for (auto at = scopes::this_thread().range; at != model::kNone;) {
      path = "/" + reported.trace.ranges.at(at).name + path;
      at = reported.trace.ranges.at(at).parent;
    }
    return path;
  };
  const int domain = 0;
  const auto a = start("a");
  const auto w = wide(L"w");
  const auto n = start_ex(&attributes);
  const auto d = domain_start(&domain, &attributes);
  EXPECT_EQ(name(), "/a/w/named/named");
  std::thread([&] { end(a); }).join();
  EXPECT_EQ(name(), "/w/named/named");
  domain_end(&domain, d);
  EXPECT_EQ(name(), "/w/named");
  end(w);
  end(w);
  EXPECT_EQ(name(), "/named");
  end(n);
  EXPECT_EQ(name(), "");
}

TEST(NvtxHooks, AnOlderClientHasFewerPlaces) {
  NvtxClient client;
  client.size = 9;
  client.core_places[8] = nullptr;
  EXPECT_TRUE(fill_nvtx(NvtxClient::export_table));
  EXPECT_EQ(client.core[9], nullptr);
  client.callbacks.struct_size = 8;
  EXPECT_FALSE(fill_nvtx(NvtxClient::export_table));
  EXPECT_FALSE(fill_nvtx([](std::uint32_t) -> const void* { return nullptr; }));
  EXPECT_FALSE(fill_nvtx(nullptr));
}

}  // namespace
}  // namespace jouleprof::inject
