#include "spans/reruns/launch_recorder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <thread>

#include "model/activity/collective.h"

namespace jouleprof::reruns {
namespace {

namespace cuda = abi::cuda;
using abi::cupti::DriverCall;
using abi::cupti::Site;

constexpr std::uint64_t kAllOfTheFirst = 512;  // launches of a kernel; then one of sixteen
constexpr std::uint64_t kOneOf = 16;
constexpr std::size_t kMostRecent = 96;  // memsets
constexpr std::size_t kMostFreed = 4096;
constexpr std::size_t kMostNodes = 65536;
constexpr std::size_t kMostParameters = 512;
constexpr std::size_t kMostAllocated = 16384;
constexpr std::size_t kMostNumbers = 65536;
constexpr std::size_t kMostConditions = 65536;
// Of one word of a kernel's parameters: with more values it is what the stack held (PyTorch's
// foreach kernels leave parts of theirs unset).
constexpr std::uint8_t kMostStrange = 32;
constexpr unsigned kPageBits = 21;  // as the driver maps memory, and frameworks ask for it
constexpr std::uint64_t kNoPage = ~std::uint64_t{0};

thread_local bool reruns_here = false;
thread_local RecordedKernel* adding = nullptr;  // the kernel of the node that this thread adds

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  return (hash ^ word) * 1099511628211u;
}
constexpr std::uint64_t kHashStart = 1469598103934665603u;

template <class Use>
void each_word(const std::vector<unsigned char>& bytes, Use use) {
  std::size_t at = 0;
  std::uint64_t word = 0;
  for (; at + sizeof word <= bytes.size(); at += sizeof word) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    use(word);
  }
  if (at == bytes.size()) return;
  word = 0;
  std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  use(word);
}

// How many bytes of its value an attribute uses that is kept; else 0.
std::size_t kept_bytes(int attribute) {
  switch (attribute) {
    case cuda::kLaunchCooperative:
    case cuda::kLaunchClusterScheduling:
      return 4;
    case cuda::kLaunchClusterDimension:
    case cuda::kLaunchPreferredClusterDimension:
      return 12;
    default:
      return 0;
  }
}

std::uint64_t hash_of(std::span<const cuda::LaunchAttribute> attributes) {
  std::uint64_t hash = 0;
  for (const auto& attribute : attributes) {
    const std::size_t bytes = kept_bytes(attribute.id);
    if (bytes == 0) continue;
    hash = mixed(hash, static_cast<std::uint64_t>(attribute.id));
    for (std::size_t i = 0; i < bytes; ++i) hash = mixed(hash, attribute.value[i]);
  }
  return hash;
}

void set_attribute(RecordedKernel& kernel, const cuda::LaunchAttribute& attribute) {
  if (kept_bytes(attribute.id) == 0) return;
  for (auto& known : kernel.attributes) {
    if (known.id == attribute.id) {
      known = attribute;
      return;
    }
  }
  kernel.attributes.push_back(attribute);
}

Cleared cleared_by(const cuda::MemsetNodeParameters& set) {
  return {set.address, set.height <= 1 ? set.width : 0, set.value, set.element_bytes};
}

}  // namespace

struct LaunchRecorder::Call {
  Shape shape;
  cuda::Context context = nullptr;
  void** parameters = nullptr;
  void** extra = nullptr;
  std::span<const cuda::LaunchAttribute> attributes;

  template <class Parameters>
  static Call of(const Parameters& p, cuda::Function function, cuda::Context context,
                 void** extra) {
    Call call;
    call.shape = {function,
                  {p.grid[0], p.grid[1], p.grid[2]},
                  {p.block[0], p.block[1], p.block[2]},
                  p.shared_bytes,
                  0};
    call.context = context;
    call.extra = extra;
    return call;
  }
  void take(std::span<const cuda::LaunchAttribute> all) {
    attributes = all;
    shape.attributes = hash_of(all);
  }
  static Call of_node(const cuda::KernelNodeParameters& node, cuda::Context current) {
    cuda::Function function = node.function != nullptr ? node.function : node.kernel;
    Call call = of(node, function, node.context != nullptr ? node.context : current, node.extra);
    call.parameters = node.parameters;
    return call;
  }
};

std::size_t LaunchRecorder::ShapeHash::operator()(const Shape& shape) const noexcept {
  std::uint64_t hash = mixed(kHashStart, reinterpret_cast<std::uintptr_t>(shape.function));
  for (const unsigned n : shape.grid) hash = mixed(hash, n);
  for (const unsigned n : shape.block) hash = mixed(hash, n);
  return mixed(mixed(hash, shape.shared_bytes), shape.attributes);
}

void LaunchRecorder::begin_reruns(bool hold) noexcept {
  reruns_here = true;
  others_.store(0);
  holding_.store(hold);
  rerunning_.store(true);
}

void LaunchRecorder::end_reruns() noexcept {
  reruns_here = false;
  {
    const std::scoped_lock lock(held_mutex_);
    rerunning_.store(false);
    holding_.store(false);
  }
  held_.notify_all();
}

void LaunchRecorder::wait_for_reruns() {
  others_.fetch_add(1, std::memory_order_relaxed);  // which ends them soon
  std::unique_lock lock(held_mutex_);
  held_.wait(lock, [this] { return !holding_.load(std::memory_order_relaxed); });
}

void LaunchRecorder::on_call(DriverCall call, const abi::cupti::CallbackData& data) noexcept {
  if (data.function_parameters == nullptr) return;
  const auto context = reinterpret_cast<cuda::Context>(data.context);
  try {
    if (holding_.load(std::memory_order_relaxed) && !reruns_here && data.site == Site::kEnter) {
      wait_for_reruns();
    }
    if (!reruns_here) launches_.fetch_add(1, std::memory_order_relaxed);
    switch (call) {
      case DriverCall::kLaunchKernel:
      case DriverCall::kLaunchKernelPtsz:
      case DriverCall::kLaunchCooperativeKernel:
      case DriverCall::kLaunchCooperativeKernelPtsz: {
        if (data.site != Site::kEnter) return;
        const auto& p = *static_cast<const abi::cupti::LaunchParameters*>(data.function_parameters);
        const bool cooperative = call == DriverCall::kLaunchCooperativeKernel ||
                                 call == DriverCall::kLaunchCooperativeKernelPtsz;
        cuda::LaunchAttribute all_at_once{cuda::kLaunchCooperative, {}, {1}};
        auto launch = Call::of(p, p.function, context, cooperative ? nullptr : p.extra);
        launch.parameters = p.parameters;
        if (cooperative) launch.take({&all_at_once, 1});
        return launched(launch);
      }
      case DriverCall::kLaunchKernelEx:
      case DriverCall::kLaunchKernelExPtsz: {
        if (data.site != Site::kEnter) return;
        const auto& p =
            *static_cast<const abi::cupti::LaunchExParameters*>(data.function_parameters);
        auto launch = Call::of(*p.config, p.function, context, p.extra);
        launch.parameters = p.parameters;
        launch.take({p.config->attributes, p.config->attribute_count});
        return launched(launch);
      }
      default:
        if (!rerunning_.load(std::memory_order_relaxed)) changed(call, data);
    }
  } catch (...) {  // no memory
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

// What is not a launch.
void LaunchRecorder::changed(DriverCall call, const abi::cupti::CallbackData& data) {
  namespace cupti = abi::cupti;
  const void* parameters = data.function_parameters;
  const auto context = reinterpret_cast<cuda::Context>(data.context);
  const bool enters = data.site == Site::kEnter;
  const auto memset = [&](unsigned element) {
    const auto& p = *static_cast<const cupti::MemsetParameters*>(parameters);
    Cleared set{p.address, p.count, 0, element};
    std::memcpy(&set.value, p.value, element);
    if (enters) cleared(set, context);
  };
  const auto add = [&](const auto& p) {
    add_node(p.node, data);
    if (!enters) node_added(p.added != nullptr ? *p.added : nullptr);
  };
  const auto set_node = [&](const auto& p) {
    if (enters && p.parameters != nullptr) launched(Call::of_node(*p.parameters, context));
  };
  switch (call) {
    case DriverCall::kMemsetD8:
    case DriverCall::kMemsetD8Ptds:
    case DriverCall::kMemsetD8Async:
    case DriverCall::kMemsetD8AsyncPtsz:
      return memset(1);
    case DriverCall::kMemsetD16:
    case DriverCall::kMemsetD16Ptds:
    case DriverCall::kMemsetD16Async:
    case DriverCall::kMemsetD16AsyncPtsz:
      return memset(2);
    case DriverCall::kMemsetD32:
    case DriverCall::kMemsetD32Ptds:
    case DriverCall::kMemsetD32Async:
    case DriverCall::kMemsetD32AsyncPtsz:
      return memset(4);
    case DriverCall::kGraphAddMemsetNode: {
      const auto& p = *static_cast<const cupti::AddMemsetNodeParameters*>(parameters);
      if (enters && p.node != nullptr) cleared(cleared_by(*p.node), context);
      return;
    }
    case DriverCall::kGraphAddKernelNode2: {
      const auto& p = *static_cast<const cupti::AddKernelNodeParameters*>(parameters);
      if (p.node == nullptr) return;
      if (enters) return launched(Call::of_node(*p.node, context));
      return node_added(p.added != nullptr ? *p.added : nullptr);
    }
    case DriverCall::kGraphAddNode:
      return add(*static_cast<const cupti::AddNodeParameters*>(parameters));
    case DriverCall::kGraphAddNode2:
      return add(*static_cast<const cupti::AddNode2Parameters*>(parameters));
    case DriverCall::kGraphKernelNodeSetParams2:
      return set_node(*static_cast<const cupti::SetKernelNodeParameters*>(parameters));
    case DriverCall::kGraphExecKernelNodeSetParams2:
      return set_node(*static_cast<const cupti::SetExecKernelNodeParameters*>(parameters));
    case DriverCall::kGraphKernelNodeSetAttribute: {
      const auto& p = *static_cast<const cupti::SetNodeAttributeParameters*>(parameters);
      if (!enters || p.value == nullptr || kept_bytes(p.attribute) == 0) return;
      const std::scoped_lock lock(mutex_);
      const auto found = nodes_.find(p.node);
      if (found == nodes_.end()) return;
      cuda::LaunchAttribute attribute{p.attribute, {}, {}};
      std::memcpy(attribute.value, p.value, sizeof attribute.value);
      return set_attribute(*found->second, attribute);
    }
    case DriverCall::kGraphKernelNodeCopyAttributes: {
      const auto& p = *static_cast<const cupti::CopyNodeAttributesParameters*>(parameters);
      const std::scoped_lock lock(mutex_);
      const auto to = nodes_.find(p.to);
      const auto from = nodes_.find(p.from);
      if (!enters || to == nodes_.end() || from == nodes_.end()) return;
      if (to->second != from->second) to->second->attributes = from->second->attributes;
      return;
    }
    case DriverCall::kGraphConditionalHandleCreate: {
      const auto& p = *static_cast<const cupti::ConditionalHandleParameters*>(parameters);
      if (enters || p.handle == nullptr) return;
      const std::scoped_lock lock(mutex_);
      if (conditions_.size() < kMostConditions) conditions_.insert(*p.handle);
      return;
    }
    case DriverCall::kModuleUnload:
      if (!enters) return unloaded();
      return unload(driver_.module_of,
                    static_cast<const cupti::ModuleUnloadParameters*>(parameters)->module);
    case DriverCall::kLibraryUnload:
      if (!enters) return unloaded();
      return unload(driver_.library_of,
                    static_cast<const cupti::LibraryUnloadParameters*>(parameters)->library);
    case DriverCall::kMemFree2:
    case DriverCall::kMemFreeAsync:
    case DriverCall::kMemFreeAsyncPtsz: {
      const auto& p = *static_cast<const cupti::FreeParameters*>(parameters);
      cuda::DevicePtr begin = 0;
      std::size_t bytes = 0;
      if (!enters || driver_.range_of(&begin, &bytes, p.address) != cuda::kSuccess) return;
      return freed(begin, bytes);
    }
    case DriverCall::kMemUnmap: {
      const auto& p = *static_cast<const cupti::UnmapParameters*>(parameters);
      if (enters) freed(p.address, p.bytes);
      return;
    }
    default:
      return;
  }
}

void LaunchRecorder::add_node(const cuda::NodeParameters* node,
                              const abi::cupti::CallbackData& data) {
  if (node == nullptr || data.site != Site::kEnter) return;
  adding = nullptr;
  const auto context = reinterpret_cast<cuda::Context>(data.context);
  if (node->type == cuda::kNodeMemset) cleared(cleared_by(node->memset), context);
  if (node->type == cuda::kNodeKernel) launched(Call::of_node(node->kernel, context));
}

void LaunchRecorder::node_added(cuda::GraphNode node) {
  const std::scoped_lock lock(mutex_);
  if (adding == nullptr || node == nullptr) return;
  if (nodes_.size() >= kMostNodes) nodes_.clear();
  nodes_[node] = std::exchange(adding, nullptr);
}

void LaunchRecorder::launched(const Call& call) {
  if (rerunning_.load(std::memory_order_relaxed)) {
    if (!reruns_here) others_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::scoped_lock lock(mutex_);
  adding = nullptr;
  RecordedKernel* kernel = kernel_of(call);
  if (kernel == nullptr) return;
  adding = kernel;
  for (const auto& attribute : call.attributes) set_attribute(*kernel, attribute);
  if (kernel->why_not.empty()) keep(*kernel, call);
}

RecordedKernel* LaunchRecorder::kernel_of(const Call& call) {
  const auto found = kernels_.find(call.shape);
  if (found != kernels_.end()) return &found->second;
  if (kernels_.size() >= kMostKernels) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  RecordedKernel& made = kernels_[call.shape];
  made.shape = call.shape;
  made.context = call.context;
  describe(made);
  return &made;
}

void LaunchRecorder::describe(RecordedKernel& kernel) const {
  const auto name_by = [&](cuda::fn::FuncGetName* get) {
    const char* name = nullptr;
    if (get == nullptr || get(&name, kernel.shape.function) != cuda::kSuccess || name == nullptr) {
      return false;
    }
    kernel.name = name;
    return true;
  };
  cuda::fn::FuncGetParamInfo* parameter = driver_.function_parameter;
  if (!name_by(driver_.function_name)) {
    parameter = driver_.kernel_parameter;
    if (!name_by(driver_.kernel_name)) {
      kernel.why_not = "the driver does not name it (CUDA 12.4 does)";
      return;
    }
  }
  if (!model::collective_kind(kernel.name).empty()) {
    kernel.why_not = "it waits for other ranks";
  } else if (parameter == nullptr) {
    kernel.why_not = "the driver does not describe its parameters (CUDA 12.4 does)";
  } else {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    while (kernel.layout.size() <= kMostParameters &&
           parameter(kernel.shape.function, kernel.layout.size(), &offset, &bytes) ==
               cuda::kSuccess) {
      kernel.layout.emplace_back(offset, bytes);
    }
    if (kernel.layout.size() > kMostParameters) kernel.why_not = "it has too many parameters";
  }
}

// Sizes are packed into words that are as large as addresses (tensor maps): the driver knows which
// is which. `strange`: values at the same place that it did not know.
bool LaunchRecorder::is_address(std::uint64_t word, std::uint8_t& strange) {
  if (!may_be_address(word)) return false;
  std::uint64_t& number = words_[mixed(kHashStart, word) >> 52];
  if (number == word) return false;
  const auto after = allocated_.upper_bound(word);
  if (after != allocated_.begin()) {
    const auto& [begin, bytes] = *std::prev(after);
    const std::uint64_t page = word >> kPageBits;
    const bool whole = begin <= page << kPageBits && (page + 1) << kPageBits <= begin + bytes;
    if (whole) pages_[page % pages_.size()] = page;
    if (word < begin + bytes) return true;
  }
  if (numbers_.contains(word)) {
    number = word;
    return false;
  }
  if (strange >= kMostStrange) return true;  // nothing that separates variants
  unsigned type = 0;
  cuda::DevicePtr begin = 0;
  std::size_t bytes = 0;
  if (driver_.pointer_attribute(&type, cuda::kPointerMemoryType, word) != cuda::kSuccess) {
    ++strange;
    if (numbers_.size() >= kMostNumbers) numbers_.clear();
    numbers_.insert(word);
    return false;
  }
  if (driver_.range_of(&begin, &bytes, word) == cuda::kSuccess && bytes > 0) {
    if (allocated_.size() >= kMostAllocated) forget_addresses();
    allocated_[begin] = bytes;
    words_.fill(0);
  }
  return true;
}

void LaunchRecorder::forget_addresses() {
  allocated_.clear();
  numbers_.clear();
  pages_.fill(kNoPage);
  words_.fill(0);
}

// How many launches this one stands for; 0: it is not looked at.
std::uint64_t LaunchRecorder::stands_for(const RecordedKernel& kernel) {
  ++number_;
  std::uint64_t all = kernel.given_way;
  for (const auto& [hash, variant] : kernel.variants) all += variant.launches;
  if (all < kAllOfTheFirst) return 1;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_ % kOneOf == 0 ? kOneOf : 0;
}

void LaunchRecorder::drop_launches(RecordedKernel& kernel) {
  for (const auto& [hash, variant] : kernel.variants) {
    for (const Launch& launch : variant.kept) bytes_ -= launch.parameters.size();
  }
  kernel.variants.clear();
}

// Whether it is given a conditional node of a graph. Outside of that graph it would fault.
bool LaunchRecorder::decides(const RecordedKernel& kernel, const Launch& launch) const {
  return !conditions_.empty() && std::ranges::any_of(kernel.layout, [&](const auto& parameter) {
    std::uint64_t value = 0;
    const auto& [offset, bytes] = parameter;
    if (bytes != sizeof value || offset + bytes > launch.parameters.size()) return false;
    std::memcpy(&value, launch.parameters.data() + offset, sizeof value);
    return conditions_.contains(value);
  });
}

void LaunchRecorder::keep(RecordedKernel& kernel, const Call& call) {
  const std::uint64_t counts = stands_for(kernel);
  if (counts == 0) return;
  Launch launch;
  if (call.extra != nullptr && call.parameters == nullptr) {
    const void* data = nullptr;
    std::size_t size = 0;
    for (void** at = call.extra; reinterpret_cast<std::uintptr_t>(*at) != cuda::kExtraEnd;
         at += 2) {
      if (reinterpret_cast<std::uintptr_t>(*at) == cuda::kExtraBuffer) data = at[1];
      if (reinterpret_cast<std::uintptr_t>(*at) == cuda::kExtraBufferSize) {
        size = *static_cast<std::size_t*>(at[1]);
      }
    }
    if (data == nullptr) return;
    const auto* first = static_cast<const unsigned char*>(data);
    launch.parameters.assign(first, first + size);
    kernel.packed = true;
  } else if (!kernel.layout.empty()) {
    if (call.parameters == nullptr) return;
    const auto& [offset, bytes] = kernel.layout.back();
    launch.parameters.resize(offset + bytes);
    for (std::size_t i = 0; i < kernel.layout.size(); ++i) {
      std::memcpy(launch.parameters.data() + kernel.layout[i].first, call.parameters[i],
                  kernel.layout[i].second);
    }
  }
  if (decides(kernel, launch)) {
    drop_launches(kernel);
    kernel.why_not = "it decides what a graph runs next";
    return;
  }
  std::uint64_t size = kHashStart;
  kernel.strange.resize(std::max(kernel.strange.size(), launch.parameters.size() / 8 + 1));
  auto strange = kernel.strange.begin();
  each_word(launch.parameters, [&](std::uint64_t word) {
    const std::uint64_t page = word >> kPageBits;
    std::uint8_t& values = *strange++;
    if (pages_[page % pages_.size()] != page && !is_address(word, values)) {
      size = mixed(size, word);
    } else if (cleared_pages_.test(word / kMostCleared % cleared_pages_.size())) {
      find_cleared(word, launch);
    }
  });
  keep(kernel, std::move(launch), size, counts);
}

// `size`: of what is no address. A launch that differs from the kept ones in its numbers only by
// chance (a seed, a step) is a variant, too: the least recent one gives way.
void LaunchRecorder::keep(RecordedKernel& kernel, Launch launch, std::uint64_t size,
                          std::uint64_t counts) {
  auto at = kernel.variants.find(size);
  if (at == kernel.variants.end()) {
    if (kernel.variants.size() >= kMostVariants) {
      const auto oldest = std::ranges::min_element(
          kernel.variants,
          [](const auto& a, const auto& b) { return a.second.last_used < b.second.last_used; });
      kernel.given_way += oldest->second.launches;
      for (const Launch& old : oldest->second.kept) bytes_ -= old.parameters.size();
      kernel.variants.erase(oldest);
    }
    at = kernel.variants.try_emplace(size).first;
  }
  Variant& variant = at->second;
  variant.launches += counts;
  variant.last_used = number_;
  launch.number = number_;
  for (Launch& kept : variant.kept) {
    if (kept.parameters != launch.parameters) continue;
    kept.cleared = std::move(launch.cleared);  // parameters and memsets are of one launch
    kept.number = number_;
    return;
  }
  const bool room = bytes_ + launch.parameters.size() <= kMostBytes;
  if (variant.kept.size() < kMostKept && room) {
    bytes_ += launch.parameters.size();
    variant.kept.push_back(std::move(launch));
  } else if (!variant.kept.empty()) {
    *std::ranges::min_element(variant.kept, {}, &Launch::number) = std::move(launch);
  } else {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

void LaunchRecorder::cleared(const Cleared& memset, cuda::Context context) {
  if (memset.count == 0) return;
  const std::scoped_lock lock(mutex_);
  RecordedKernel& kernel = sets_[static_cast<unsigned>(std::bit_width(memset.bytes()))];
  kernel.context = context;
  if (const std::uint64_t counts = stands_for(kernel); counts > 0) {
    Launch launch;
    launch.parameters.resize(sizeof memset.address);
    std::memcpy(launch.parameters.data(), &memset.address, sizeof memset.address);
    launch.cleared = {memset};
    const std::uint64_t size = mixed(mixed(kHashStart, memset.bytes()), memset.value);
    keep(kernel, std::move(launch), size, counts);
  }
  if (memset.bytes() > kMostCleared) return;
  std::erase_if(recent_, [&](const Cleared& old) { return old.address == memset.address; });
  recent_.push_back(memset);
  if (recent_.size() > kMostRecent) recent_.pop_front();
  cleared_pages_.reset();
  for (const Cleared& recent : recent_) {  // of one or two pages
    cleared_pages_.set(recent.address / kMostCleared % cleared_pages_.size());
    cleared_pages_.set((recent.address + recent.bytes() - 1) / kMostCleared %
                       cleared_pages_.size());
  }
}

void LaunchRecorder::find_cleared(std::uint64_t address, Launch& launch) const {
  for (const Cleared& memset : recent_) {
    if (address < memset.address || address >= memset.address + memset.bytes()) continue;
    if (std::ranges::find(launch.cleared, memset) == launch.cleared.end()) {
      launch.cleared.push_back(memset);
    }
  }
}

template <class Code>
void LaunchRecorder::unload(cuda::Result (*owner_of)(Code*, cuda::Function), Code code) {
  if (owner_of == nullptr) return;
  const std::scoped_lock lock(mutex_);
  std::vector<RecordedKernel*> unloading;
  bool any = false;
  for (auto at = kernels_.begin(); at != kernels_.end();) {
    Code owner = nullptr;
    if (owner_of(&owner, at->second.shape.function) != cuda::kSuccess || owner != code) {
      ++at;
      continue;
    }
    any = true;
    RecordedKernel& kernel = at->second;
    for (auto& [hash, variant] : kernel.variants) {
      for (Launch& launch : variant.kept) note_addresses(launch);
    }
    if (gone_.size() < kMostKernels) {
      unloading.push_back(&gone_.emplace_back(std::move(kernel)));
    } else {
      drop_launches(kernel);
    }
    at = kernels_.erase(at);
  }
  if (any) nodes_.clear();
  if (!unloading.empty()) unloading_[std::this_thread::get_id()] = std::move(unloading);
}

void LaunchRecorder::on_unload(const abi::cupti::ModuleData& code) noexcept {
  if (code.code == nullptr || code.bytes == 0) return;
  try {
    const std::scoped_lock lock(mutex_);
    const auto unloading = unloading_.find(std::this_thread::get_id());
    if (unloading == unloading_.end()) return;
    if (code_bytes_ + code.bytes > kMostCode) return;
    const auto copy = std::make_shared<const std::string>(code.code, code.bytes);
    code_bytes_ += code.bytes;
    for (RecordedKernel* kernel : unloading->second) {
      if (kernel->why_not.empty() && kernel->code == nullptr) kernel->code = copy;
    }
  } catch (...) {  // no memory: they are not re-run
  }
}

void LaunchRecorder::unloaded() {
  const std::scoped_lock lock(mutex_);
  const auto unloading = unloading_.extract(std::this_thread::get_id());
  if (unloading.empty()) return;
  for (RecordedKernel* kernel : unloading.mapped()) {
    if (kernel->code != nullptr) continue;
    drop_launches(*kernel);
    if (kernel->why_not.empty()) kernel->why_not = "its code was unloaded";
  }
}

void LaunchRecorder::note_addresses(Launch& launch) const {
  launch.addresses.clear();
  each_word(launch.parameters, [&](std::uint64_t word) {
    if (may_be_address(word) && is_allocated(word)) launch.addresses.push_back(word);
  });
}

void LaunchRecorder::freed(cuda::DevicePtr begin, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  const std::pair memory(begin, bytes);
  if (freed_.size() < kMostFreed || freed_.contains(memory)) freed_[memory] = number_;
}

bool LaunchRecorder::is_allocated(cuda::DevicePtr address) const {
  unsigned type = 0;
  return driver_.pointer_attribute(&type, cuda::kPointerMemoryType, address) == cuda::kSuccess;
}

// What became of the memory that its parameters point to. Frameworks cut memory that they allocate
// again in other ways: only where all that was freed is there can the kernel not reach beyond.
LaunchRecorder::Memory LaunchRecorder::memory_of(const Launch& launch) const {
  if (!std::ranges::all_of(launch.addresses, [&](auto word) { return is_allocated(word); })) {
    return Memory::kGone;
  }
  Memory memory = Memory::kKept;
  each_word(launch.parameters, [&](std::uint64_t word) {
    if (!may_be_address(word)) return;
    for (const auto& [freed, number] : freed_) {
      const auto& [begin, bytes] = freed;
      if (begin > word) return;
      if (word >= begin + bytes || launch.number > number || memory == Memory::kGone) continue;
      cuda::DevicePtr now = 0;
      std::size_t size = 0;
      const bool whole = driver_.range_of(&now, &size, word) == cuda::kSuccess && now <= begin &&
                         begin + bytes <= now + size;
      memory = whole ? Memory::kAgain : Memory::kGone;
    }
  });
  return memory;
}

void LaunchRecorder::clear() {
  const std::scoped_lock lock(mutex_);
  nodes_.clear();
  unloading_.clear();
  kernels_.clear();
  sets_.clear();
  gone_.clear();
  recent_.clear();
  cleared_pages_.reset();
  forget_addresses();
  freed_.clear();
  bytes_ = code_bytes_ = 0;
  dropped_.store(0);
}

std::vector<RecordedKernel> LaunchRecorder::kernels() const {
  const std::scoped_lock lock(mutex_);
  std::vector<RecordedKernel> all;
  const auto add = [&](const RecordedKernel& kernel) {
    RecordedKernel& copy = all.emplace_back(kernel);
    if (!copy.why_not.empty()) return;
    for (auto& [hash, variant] : copy.variants) {
      std::map<Memory, std::vector<Launch>> launches;
      for (Launch& launch : variant.kept) launches[memory_of(launch)].push_back(std::move(launch));
      launches.erase(Memory::kGone);
      variant.kept =
          launches.empty() ? std::vector<Launch>() : std::move(launches.rbegin()->second);
    }
    std::erase_if(copy.variants, [](const auto& entry) { return entry.second.kept.empty(); });
    if (copy.variants.empty()) {
      const bool any = std::ranges::any_of(
          kernel.variants, [](const auto& entry) { return !entry.second.kept.empty(); });
      copy.why_not = any ? kMemoryFreed : "its parameters were not read";
    }
  };
  for (const RecordedKernel& kernel : gone_) add(kernel);
  for (const auto& [shape, kernel] : kernels_) add(kernel);
  for (const auto& [power, set] : sets_) {
    add(set);
    all.back().name = kMemset;
    all.back().shape.grid = {power, 0, 0};
  }
  return all;
}

}  // namespace jouleprof::reruns
