// CPython's C interface, what of it is used, declared by hand from its documentation
// (https://docs.python.org/3/c-api), so that one library serves every Python from 3.9 on and none
// is needed to build. Found at run time in the process that loaded the library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jouleprof::abi::python {

struct Object;  // PyObject: opaque
using Size = std::ptrdiff_t;

using FastFunction = Object*(Object* self, Object* const* arguments, Size count);  // METH_FASTCALL
inline constexpr int kMethFastcall = 0x0080;

struct MethodDef {
  const char* name;
  FastFunction* function;
  int flags;
  const char* doc;
};

// How any callable with Py_TPFLAGS_HAVE_VECTORCALL is called (PEP 590). The count's top bit says
// that arguments[-1] may be overwritten.
using VectorCall = Object*(Object* callable, Object* const* arguments, std::size_t count,
                           Object* keyword_names);
inline constexpr std::size_t kArgumentsOffset = std::size_t{1} << (8 * sizeof(std::size_t) - 1);

// A type's tp_vectorcall_offset, the place of the VectorCall in its objects. The same in all
// versions from 3.8 on, builds without the global lock left out.
inline constexpr std::size_t kTypeVectorcallOffset = 56;

// An object's type, in its head. As above.
inline constexpr std::size_t kObjectTypeOffset = 8;

namespace fn {
using TypeLookup = Object*(Object* type, Object* name);  // borrowed; sets no error
using GenericGetDict = Object*(Object*, void*);
using DictGetItemWithError = Object*(Object* dict, Object* key);  // borrowed
using IncRef = void(Object*);
using DecRef = void(Object*);
using GetAttrString = Object*(Object*, const char*);
using SetAttrString = int(Object*, const char*, Object*);
using InternFromString = Object*(const char*);
using AsUtf8 = const char*(Object*);
using LongFromUnsignedLongLong = Object*(unsigned long long);
using LongAsUnsignedLongLong = unsigned long long(Object*);
using FloatAsDouble = double(Object*);
using ObjectIsTrue = int(Object*);
using TupleSize = Size(Object*);
using VectorcallDict = Object*(Object* callable, Object* const* arguments, std::size_t count,
                               Object* keywords);
using CFunctionNewEx = Object*(MethodDef*, Object* self, Object* module);
using FunctionSetVectorcall = void(Object*, VectorCall*);  // from 3.12 on
using ErrOccurred = Object*();
using ErrClear = void();
using ErrSetString = void(Object* type, const char* text);
}  // namespace fn
}  // namespace jouleprof::abi::python
