#include "session/sampling/visible_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace jouleprof::session {
namespace {

using model::Domain;
using model::DomainId;
using model::DomainKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Variables = std::map<std::string, std::string>;

Environment environment(const Variables& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found != variables.end() ? std::optional(found->second) : std::nullopt;
  };
}

class Machine {
 public:
  Machine& gpu(const std::string& device, const std::string& uuid,
               const std::string& name = "H100") {
    const DomainId board = add(DomainKind::kGpu, device, uuid, name, {});
    add(DomainKind::kGpuMemory, device, uuid, name, board);
    last_board_ = board;
    return *this;
  }
  Machine& mig(const std::string& uuid) {
    add(DomainKind::kGpu, "gpu0:mig0", uuid, "H100 MIG 1g", last_board_);
    return *this;
  }
  Machine& cpu() { return add(DomainKind::kCpu, "package-0", "", "CPU", {}), *this; }

  std::vector<Domain> domains;

 private:
  DomainId add(DomainKind kind, const std::string& device, const std::string& uuid,
               const std::string& name, std::optional<DomainId> parent) {
    const DomainId id{static_cast<std::uint32_t>(domains.size())};
    domains.push_back({id, kind, device, name, uuid, parent, true, ""});
    return id;
  }
  DomainId last_board_{};
};

std::vector<std::string> warnings_after(std::vector<Domain>& domains, const Environment& with) {
  return apply_visibility(domains, with).warnings;
}

// The devices that stay visible, the memory of each being as visible as itself.
std::string visible(const std::vector<Domain>& domains) {
  std::string out;
  for (const auto& d : domains) {
    if (d.kind == DomainKind::kGpuMemory) {
      EXPECT_EQ(d.visible, domains[static_cast<std::size_t>(*d.parent)].visible);
    } else if (d.visible && d.kind == DomainKind::kGpu && !d.parent) {
      out += d.device.back();
    }
  }
  return out;
}

Machine four() {
  return Machine()
      .cpu()
      .gpu("gpu0", "GPU-aa01")
      .gpu("gpu1", "GPU-aa02")
      .gpu("gpu2", "GPU-bb03")
      .gpu("gpu3", "GPU-cc04");
}

struct Case {
  const char* list;
  const char* expected;
};

TEST(ApplyVisibility, CudaListsInAllForms) {
  const Case cases[] = {
      {"0", "0"},
      {"0,1,2,3", "0123"},
      {"3,1", "13"},
      {"", ""},
      {" ", ""},
      {"-1", ""},
      {"1,-1,2", "1"},  // the list ends there
      {"1,9,2", "1"},   // so it does at one that does not exist
      {"1,x,2", "1"},
      {"1,,2", "1"},
      {"none", ""},
      {"NoDevFiles", ""},
      {"1,1", ""},  // twice: an error, no device at all
      {"0,2,0", ""},
      {" 1 , 2 ", "12"},
      {"+1", "1"},
      {"1gpu,2x", "12"},  // read as strtol reads
      {"GPU-aa01", "0"},
      {"GPU-b", "2"},  // a beginning that fits one
      {"GPU-aa", ""},  // one that fits two
      {"GPU-cc04,GPU-b", "23"},
      {"GPU-cc04,GPU-zz,GPU-b", "3"},
      {"GPU-cc04,GPU-cc", ""},
      {"GPU-cc04,1", "3"},  // forms are not mixed
      {"1,GPU-cc04", "1"},
      {"gpu-cc04", ""},
      {"MIG-GPU-bb03/1/0", "2"},
  };
  for (const auto& c : cases) {
    auto machine = four();
    const auto warnings =
        warnings_after(machine.domains, environment({{"CUDA_VISIBLE_DEVICES", c.list}}));
    EXPECT_EQ(visible(machine.domains), c.expected) << "'" << c.list << "'";
    EXPECT_THAT(warnings, IsEmpty()) << c.list;
    EXPECT_TRUE(machine.domains[0].visible);  // the CPU
  }
}

TEST(ApplyVisibility, UnsetLeavesAllVisible) {
  auto machine = four();
  EXPECT_THAT(warnings_after(machine.domains, environment({})), IsEmpty());
  EXPECT_EQ(visible(machine.domains), "0123");
  // The container runtime's variable is no business of the tool's.
  apply_visibility(machine.domains, environment({{"NVIDIA_VISIBLE_DEVICES", "1"}}));
  EXPECT_EQ(visible(machine.domains), "0123");
}

TEST(ApplyVisibility, GpusBeyondNine) {
  Machine machine;
  for (int i = 0; i < 12; ++i) {
    machine.gpu("gpu" + std::to_string(i), "GPU-" + std::to_string(100 + i));
  }
  apply_visibility(machine.domains, environment({{"CUDA_VISIBLE_DEVICES", "10,1"}}));
  std::vector<std::string> seen;
  for (const auto& d : machine.domains) {
    if (d.visible && !d.parent) seen.push_back(d.device);
  }
  EXPECT_THAT(seen, ElementsAre("gpu1", "gpu10"));
}

TEST(ApplyVisibility, MigDevicesShowTheirBoard) {
  Machine machine;
  machine.gpu("gpu0", "GPU-1").mig("MIG-abc").mig("MIG-abd").gpu("gpu1", "GPU-2").mig("MIG-xyz");
  const Case cases[] = {
      {"MIG-abc", "0"}, {"MIG-x", "1"},           {"MIG-ab", "0"},  // both on one board
      {"MIG-none", ""}, {"MIG-xyz,MIG-abc", "1"},                   // only the first is used
      {"1", "1"},
  };
  for (const auto& c : cases) {
    auto domains = machine.domains;
    EXPECT_THAT(warnings_after(domains, environment({{"CUDA_VISIBLE_DEVICES", c.list}})),
                IsEmpty());
    EXPECT_EQ(visible(domains), c.expected) << c.list;
  }
}

TEST(ApplyVisibility, AMigDeviceOnAnUnknownBoard) {
  Machine one;
  one.gpu("gpu0", "GPU-1");
  EXPECT_THAT(warnings_after(one.domains, environment({{"CUDA_VISIBLE_DEVICES", "MIG-q"}})),
              IsEmpty());
  EXPECT_EQ(visible(one.domains), "0");
  auto several = four();
  EXPECT_THAT(warnings_after(several.domains, environment({{"CUDA_VISIBLE_DEVICES", "MIG-q"}})),
              ElementsAre(HasSubstr("MIG-q")));
  EXPECT_EQ(visible(several.domains), "0123");
}

TEST(ApplyVisibility, NumbersAmongDifferentModelsAreAmbiguous) {
  Machine mixed;
  mixed.gpu("gpu0", "GPU-1", "T4").gpu("gpu1", "GPU-2", "H100").gpu("gpu2", "GPU-3", "T4");
  auto domains = mixed.domains;
  EXPECT_THAT(warnings_after(domains, environment({{"CUDA_VISIBLE_DEVICES", "0"}})),
              ElementsAre(HasSubstr("CUDA_DEVICE_ORDER=PCI_BUS_ID")));
  EXPECT_EQ(visible(domains), "012");

  for (const auto& [list, expected] :
       std::map<std::string, std::string>{{"0,1,2", "012"}, {"", ""}, {"-1", ""}, {"GPU-3", "2"}}) {
    domains = mixed.domains;
    EXPECT_THAT(warnings_after(domains, environment({{"CUDA_VISIBLE_DEVICES", list}})), IsEmpty());
    EXPECT_EQ(visible(domains), expected) << list;
  }
  domains = mixed.domains;
  EXPECT_THAT(warnings_after(domains, environment({{"CUDA_VISIBLE_DEVICES", "2"},
                                                   {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}})),
              IsEmpty());
  EXPECT_EQ(visible(domains), "2");
}

TEST(ApplyVisibility, RocmFiltersTwice) {
  Machine machine;
  machine.gpu("gpu0", "GPU-1");
  for (const char* device : {"amdgpu-0", "amdgpu-1", "amdgpu-2"})
    machine.gpu(device, "", "AMD GPU");
  const auto visible_with = [&](const Variables& variables, std::size_t warnings = 0) {
    auto domains = machine.domains;
    EXPECT_EQ(warnings_after(domains, environment(variables)).size(), warnings);
    std::string out;
    for (const auto& d : domains) {
      if (d.visible && !d.parent) out += d.device + " ";
    }
    return out;
  };
  EXPECT_EQ(visible_with({{"ROCR_VISIBLE_DEVICES", "2,1"}}), "gpu0 amdgpu-1 amdgpu-2 ");
  EXPECT_EQ(visible_with({{"ROCR_VISIBLE_DEVICES", "2,1"}, {"HIP_VISIBLE_DEVICES", "0"}}),
            "gpu0 amdgpu-2 ");
  EXPECT_EQ(visible_with({{"HIP_VISIBLE_DEVICES", ""}}), "gpu0 ");
  EXPECT_EQ(visible_with({{"ROCR_VISIBLE_DEVICES", "GPU-12ab"}}, 1),
            "gpu0 amdgpu-0 amdgpu-1 amdgpu-2 ");
  EXPECT_EQ(visible_with({{"CUDA_VISIBLE_DEVICES", ""}}), "amdgpu-0 amdgpu-1 amdgpu-2 ");
  // AMD's UUIDs begin as NVIDIA's.
  for (auto& domain : machine.domains) {
    if (domain.device == "amdgpu-1") domain.uuid = "GPU-5d1a3b9f00c0ffee";
  }
  EXPECT_EQ(visible_with({{"ROCR_VISIBLE_DEVICES", "2,1"}}), "gpu0 amdgpu-1 amdgpu-2 ");
  EXPECT_EQ(visible_with({{"CUDA_VISIBLE_DEVICES", ""}}), "amdgpu-0 amdgpu-1 amdgpu-2 ");
  EXPECT_EQ(visible_with({{"ROCR_VISIBLE_DEVICES", "GPU-5d1a3b9f00c0ffee"}}), "gpu0 amdgpu-1 ");
  EXPECT_EQ(visible_with({{"ROCR_VISIBLE_DEVICES", "GPU-5d1a3b9f00c0ffee,GPU-12ab"}}, 1),
            "gpu0 amdgpu-0 amdgpu-1 amdgpu-2 ");
}

std::string selected(const Machine& machine, const std::vector<std::string>& words) {
  const auto result = select_devices(machine.domains, words);
  if (!result) return result.error().message;
  std::string out;
  for (std::size_t i = 0; i < result->size(); ++i) out += (*result)[i] ? '1' : '0';
  return out;
}

TEST(SelectDevices, ByWhateverNamesThem) {
  const auto machine = four();  // CPU, then four GPUs with their memory
  EXPECT_EQ(selected(machine, {}), "111111111");
  EXPECT_EQ(selected(machine, {"all"}), "111111111");
  EXPECT_EQ(selected(machine, {"gpu1"}), "000110000");
  EXPECT_EQ(selected(machine, {"3"}), "000000011");
  EXPECT_EQ(selected(machine, {"0", "cpu"}), "111000000");
  EXPECT_EQ(selected(machine, {"gpu"}), "011111111");
  EXPECT_EQ(selected(machine, {"GPU-cc"}), "000000011");
  EXPECT_EQ(selected(machine, {"package-0"}), "100000000");
}

TEST(SelectDevices, UnknownWordsAreErrors) {
  const auto machine = four();
  EXPECT_EQ(selected(machine, {"gpu9"}),
            "no device is called 'gpu9'; this machine has: package-0, gpu0, gpu1, gpu2, gpu3");
  EXPECT_THAT(selected(machine, {"4"}), HasSubstr("'4'"));
  EXPECT_THAT(selected(machine, {"GPU-aa"}), HasSubstr("several devices begin with 'GPU-aa'"));
  EXPECT_THAT(selected(machine, {""}), HasSubstr("names no device"));
}

TEST(VisibilityTest, BoardsAreNumberedInTheOrderOfTheList) {
  Machine machine;
  machine.cpu().gpu("gpu0", "GPU-a").gpu("gpu1", "GPU-b").gpu("gpu2", "GPU-c");
  const auto order_with = [&](const Variables& variables) {
    auto domains = machine.domains;
    std::string out;
    for (const auto id : apply_visibility(domains, environment(variables)).order) {
      out += domains[static_cast<std::size_t>(id)].device + " ";
    }
    return out;
  };
  EXPECT_EQ(order_with({}), "gpu0 gpu1 gpu2 ");
  EXPECT_EQ(order_with({{"CUDA_VISIBLE_DEVICES", "2,0"}}), "gpu2 gpu0 ");
  EXPECT_EQ(order_with({{"CUDA_VISIBLE_DEVICES", "GPU-b,GPU-a"}}), "gpu1 gpu0 ");
  EXPECT_EQ(order_with({{"CUDA_VISIBLE_DEVICES", ""}}), "");
}

}  // namespace
}  // namespace jouleprof::session
