#include "spans/layers/autograd.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <memory>

namespace jouleprof::layers {
namespace {

using namespace abi::torch;

// What a pointer's second half holds before the call; an intrusive pointer leaves it there.
void* const kUntouched = reinterpret_cast<void*>(std::uintptr_t{0x5EA1ED});

std::uint64_t word(const void* object, std::size_t offset) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
  return value;
}

tl::unexpected<Error> unknown(const std::string& what) {
  return fail(Errc::kUnsupported, "layers of backward passes are not traced: " + what +
                                      " is not at a supported place in this PyTorch");
}

// Gives back what get_current_node() lent. The engine holds the node while it runs it, so neither
// count can reach zero here.
void release(const NodePointer& pointer, bool intrusive) noexcept {
  if (intrusive) {
    auto* count = reinterpret_cast<std::uint64_t*>(static_cast<char*>(pointer.node) + kCountOffset);
    std::atomic_ref<std::uint64_t>(*count).fetch_sub(1, std::memory_order_acq_rel);
  } else {
    // The standard library's shared_ptr has one layout for all types, so this one's end is that
    // one's.
    alignas(std::shared_ptr<void>) unsigned char place[sizeof(std::shared_ptr<void>)];
    static_assert(sizeof place == sizeof pointer);
    std::memcpy(place, &pointer, sizeof place);
    std::launder(reinterpret_cast<std::shared_ptr<void>*>(place))->~shared_ptr();
  }
}

}  // namespace

Result<AutogradFunctions> AutogradFunctions::load() {
  // RTLD_NOLOAD: only what the program itself has loaded.
  void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return unknown("libtorch_cpu.so");
  AutogradFunctions functions;
  functions.sequence_peek = reinterpret_cast<SequencePeek*>(dlsym(library, kSequencePeek));
  functions.current_thread_id =
      reinterpret_cast<CurrentThreadId*>(dlsym(library, kCurrentThreadId));
  functions.current_node = reinterpret_cast<CurrentNode*>(dlsym(library, kCurrentNode));
  dlclose(library);  // the program's own reference stays
  if (functions.sequence_peek == nullptr) return unknown("the sequence number of a thread");
  if (functions.current_thread_id == nullptr) return unknown("the number of a thread");
  if (functions.current_node == nullptr) return unknown("the node that runs");
  return functions;
}

Result<Autograd> Autograd::verified(const AutogradFunctions& functions,
                                    const std::vector<GradientSample>& samples, std::size_t size) {
  Autograd autograd;
  autograd.functions_ = functions;
  NodePointer none{kUntouched, kUntouched};
  functions.current_node(&none);
  if (none.node != nullptr || (none.control != nullptr && none.control != kUntouched)) {
    return unknown("the pointer to the node that runs");
  }
  autograd.intrusive_ = none.control == kUntouched;
  autograd.sequence_offset_ =
      autograd.intrusive_ ? kIntrusiveSequenceOffset : kSharedSequenceOffset;
  const std::size_t pointer_size = autograd.intrusive_ ? sizeof(void*) : sizeof(NodePointer);
  if (size != kFunctionNodeOffset + pointer_size) return unknown("the pointer to a node");

  std::size_t made = 0;
  bool accumulates = false;
  for (const GradientSample& sample : samples) {
    void* node = nullptr;
    std::memcpy(&node, static_cast<const char*>(sample.function) + kFunctionNodeOffset,
                sizeof node);
    if (node == nullptr || word(node, autograd.sequence_offset_) != sample.sequence) {
      return unknown("a node's sequence number");
    }
    if (word(node, autograd.sequence_offset_ + kThreadFromSequence) !=
        functions.current_thread_id()) {
      return unknown("a node's thread");
    }
    // Python holds it, and the node behind it or the tensor it is of: two or three, not thousands.
    const std::uint64_t count = word(node, kCountOffset) & 0xFFFFFFFF;
    if (autograd.intrusive_ && (count < 1 || count > 16)) return unknown("a node's count");
    if (sample.sequence == kAccumulateSequence) {
      accumulates = true;
    } else {
      ++made;
    }
  }
  if (made < 3 || !accumulates) {
    return fail(Errc::kInvalidArgument, "too few samples of PyTorch's nodes to identify them");
  }
  return autograd;
}

std::optional<BackwardNode> Autograd::current() const noexcept {
  NodePointer pointer{nullptr, kUntouched};
  functions_.current_node(&pointer);
  if (pointer.node == nullptr) return std::nullopt;
  const BackwardNode node{word(pointer.node, sequence_offset_),
                          word(pointer.node, sequence_offset_ + kThreadFromSequence)};
  release(pointer, intrusive_);
  return node;
}

}  // namespace jouleprof::layers
