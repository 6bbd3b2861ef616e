// What of PyTorch's C++ is called by address: found by symbol in libtorch_cpu.so, declared here by
// hand, and used only after it was held against what PyTorch's Python says of the same objects
// (spans/layers/autograd.h).
//
// torch::autograd::get_current_node() returns a counted pointer to the node whose backward the
// calling thread runs, through a hidden first argument: a std::shared_ptr<Node> up to PyTorch 2.11,
// a c10::intrusive_ptr<Node>, which is half as large, after. A node begins with
//   its virtual table's address, 8 bytes
//   what the pointer's kind needs: a std::weak_ptr, 16 bytes; or the count of pointers, 8 bytes,
//     whose lower half counts strong ones
//   sequence number, 8 bytes; topological number, 8; a flag, 8 with padding; thread id, 8
#pragma once

#include <cstddef>
#include <cstdint>

namespace jouleprof::abi::torch {

inline constexpr char kSequencePeek[] = "_ZN2at15sequence_number4peekEv";
inline constexpr char kCurrentThreadId[] = "_ZN2at14RecordFunction15currentThreadIdEv";
inline constexpr char kCurrentNode[] = "_ZN5torch8autograd16get_current_nodeEv";

using SequencePeek = std::uint64_t();     // the next sequence number of this thread
using CurrentThreadId = std::uint64_t();  // a number of PyTorch's own

// Large enough for either kind of pointer.
struct NodePointer {
  void* node;
  void* control;  // of a shared pointer; an intrusive one leaves it alone
};
using CurrentNode = NodePointer*(NodePointer* result);

inline constexpr std::size_t kCountOffset = 8;  // of an intrusive pointer's node
inline constexpr std::size_t kIntrusiveSequenceOffset = 16;
inline constexpr std::size_t kSharedSequenceOffset = 24;
inline constexpr std::size_t kThreadFromSequence = 24;  // the thread id's place behind the number's

// A gradient function as Python holds it: an object's head, then the pointer to the node.
inline constexpr std::size_t kFunctionNodeOffset = 16;

// The sequence number of nodes that add to a parameter's gradient.
inline constexpr std::uint64_t kAccumulateSequence = ~std::uint64_t{0};

}  // namespace jouleprof::abi::torch
