#include "apps/inject/layers_call.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <string>

#include "spans/layers/layers.h"
#include "spans/layers/thread_layers.h"

namespace jouleprof::inject {
namespace {

using abi::python::kArgumentsOffset;
using abi::python::Object;
using abi::python::VectorCall;
using layers::ModuleEntry;
using layers::ThreadLayers;

constexpr int kMostFailures = 100;
constexpr std::size_t kMostValues = 16;  // of a call, shown to introduce

struct Hook {
  PythonApi api;
  VectorCall* function = nullptr;        // what was in its place before
  VectorCall* implementation = nullptr;  // the same of _call_impl, when that is watched
  bool direct = false;
  Object* call_impl = nullptr;      // Module._call_impl
  VectorCall* call = nullptr;       // what a Python function is called through
  Object* get_attribute = nullptr;  // what types that change nothing about attributes have
  Object* get_attribute_name = nullptr;
  Object* introduce = nullptr;
  Object* set_compiler = nullptr;  // or nullptr
  Object* implementation_name = nullptr;
  Object* compiled_name = nullptr;
  int failures = 0;
};

Hook hook;

// Puts back what the thread was in, also when an exception passes. These frames are not noexcept:
// the interpreter ends its daemon threads at exit by unwinding them, Python's frames and ours.
class Stay {
 public:
  Stay(ThreadLayers& thread, std::uint32_t layer) : thread_(thread) { thread.enter(layer, outer_); }
  ~Stay() { thread_.leave(outer_); }
  Stay(const Stay&) = delete;
  Stay& operator=(const Stay&) = delete;

 private:
  ThreadLayers& thread_;
  ThreadLayers::Outer outer_;
};

// Whether self._call_impl is Module's and self._compiled_call_impl is None, found as Python would
// find them, but sooner.
bool is_plain(Object* self) {
  if (hook.api.type_lookup == nullptr) return false;
  Object* type = nullptr;
  std::memcpy(&type, reinterpret_cast<const char*>(self) + abi::python::kObjectTypeOffset,
              sizeof type);
  if (hook.api.type_lookup(type, hook.implementation_name) != hook.call_impl ||
      hook.api.type_lookup(type, hook.compiled_name) != hook.api.none ||
      hook.api.type_lookup(type, hook.get_attribute_name) != hook.get_attribute) {
    return false;
  }
  Object* own = hook.api.get_dict(self, nullptr);
  if (own == nullptr) {
    hook.api.clear_error();
    return false;
  }
  const bool changed = hook.api.dict_item(own, hook.implementation_name) != nullptr ||
                       hook.api.dict_item(own, hook.compiled_name) != nullptr;
  hook.api.dec_ref(own);
  return !changed;
}

// What the Python function does, without its frame where it would only call _call_impl.
Object* call_through(Object* callable, Object* const* arguments, std::size_t count,
                     Object* keyword_names) {
  if (hook.direct && is_plain(arguments[0])) {
    // Whether arguments[-1] may be used is unchanged from the caller.
    return hook.call(hook.call_impl, arguments, count, keyword_names);
  }
  return hook.function(callable, arguments, count, keyword_names);
}

// Sets torch.compile's callback for frames; returns the one before (new reference),
// or nullptr.
Object* set_compiler(Object* compiler) {
  if (hook.set_compiler == nullptr) return nullptr;
  Object* before = hook.api.vectorcall_dict(hook.set_compiler, &compiler, 1, nullptr);
  if (before == nullptr) hook.api.clear_error();
  return before;
}

// Calls Python, not as a part of what the program runs; answers whether it raised nothing.
bool call_python(Object* function, Object* const* values, std::size_t count) {
  // Inside of what torch.compile runs, the interpreter would hand this Python to it as well.
  Object* const compiler = set_compiler(hook.api.none);
  Object* answer = hook.api.vectorcall_dict(function, values, count, nullptr);
  if (answer == nullptr) hook.api.clear_error();
  if (compiler != nullptr) {
    Object* const mine = set_compiler(compiler);
    if (mine != nullptr) hook.api.dec_ref(mine);
    hook.api.dec_ref(compiler);
  }
  if (answer == nullptr) return false;
  hook.api.dec_ref(answer);
  return true;
}

std::size_t values_given(std::size_t count, Object* keyword_names) {
  const std::size_t positional = count & ~kArgumentsOffset;
  if (keyword_names == nullptr) return positional;
  return positional + static_cast<std::size_t>(hook.api.tuple_size(keyword_names));
}

// Calls Python for the layer of a module. nullptr: there is none.
const ModuleEntry* introduce(ThreadLayers& thread, Object* const* arguments, std::size_t count,
                             Object* keyword_names) {
  if (hook.failures >= kMostFailures) return nullptr;
  std::array<Object*, kMostValues + 2> values{};
  values[0] = arguments[0];
  const std::uint32_t caller = thread.layer();
  values[1] = hook.api.from_unsigned(caller == model::kNone ? 0 : std::uint64_t{caller} + 1);
  std::size_t size = 2;
  const std::size_t given = values_given(count, keyword_names);
  for (std::size_t i = 1; i < given && size < values.size(); ++i) values[size++] = arguments[i];
  const bool known = call_python(hook.introduce, values.data(), size);
  hook.api.dec_ref(values[1]);
  if (!known) {
    if (++hook.failures == kMostFailures) {
      layers::add_problem("layers are missing: modules could not be identified");
    }
    return nullptr;
  }
  return LayersCall::modules().find(arguments[0]);
}

Object* call_function(Object* callable, Object* const* arguments, std::size_t count,
                      Object* keyword_names) {
  if (!layers::active() || (count & ~kArgumentsOffset) == 0) {
    return hook.function(callable, arguments, count, keyword_names);
  }
  ThreadLayers* thread = ThreadLayers::mine();
  if (thread == nullptr) return hook.function(callable, arguments, count, keyword_names);
  const ModuleEntry* entry = LayersCall::modules().find(arguments[0]);
  if (entry == nullptr) entry = introduce(*thread, arguments, count, keyword_names);
  if (entry == nullptr || entry->layer == model::kNone ||
      (entry->inner && thread->layer() == entry->layer)) {
    return call_through(callable, arguments, count, keyword_names);
  }
  const std::uint32_t layer = entry->layer;  // Python may move the entries
  const Stay stay(*thread, layer);
  return call_through(callable, arguments, count, keyword_names);
}

// Called for a module that the thread is not in yet: the interpreter skipped its __call__.
Object* call_implementation(Object* callable, Object* const* arguments, std::size_t count,
                            Object* keyword_names) {
  if (!layers::active() || (count & ~kArgumentsOffset) == 0) {
    return hook.implementation(callable, arguments, count, keyword_names);
  }
  ThreadLayers* thread = ThreadLayers::mine();
  if (thread == nullptr) return hook.implementation(callable, arguments, count, keyword_names);
  const ModuleEntry* entry = LayersCall::modules().find(arguments[0]);
  if (entry == nullptr) entry = introduce(*thread, arguments, count, keyword_names);
  if (entry == nullptr || entry->layer == model::kNone || thread->layer() == entry->layer) {
    return hook.implementation(callable, arguments, count, keyword_names);
  }
  const std::uint32_t layer = entry->layer;  // as above
  const Stay stay(*thread, layer);
  return hook.implementation(callable, arguments, count, keyword_names);
}

// The address of a Python function's C entry point; nullptr: it is not at the expected place.
VectorCall** place_of(const PythonApi& api, Object* function) {
  std::ptrdiff_t offset = 0;
  std::memcpy(&offset,
              static_cast<const char*>(api.function_type) + abi::python::kTypeVectorcallOffset,
              sizeof offset);
  if (offset < 16 || offset > 512 || offset % 8 != 0) return nullptr;
  return reinterpret_cast<VectorCall**>(reinterpret_cast<char*>(function) + offset);
}

void put(const PythonApi& api, Object* function, VectorCall* call) {
  // From 3.12 on code may be specialised to what a function's calls do; this undoes it.
  if (api.set_vectorcall != nullptr) {
    api.set_vectorcall(function, call);
  } else {
    *place_of(api, function) = call;
  }
}

template <typename F>
bool bind(F*& function, const char* name) {
  function = reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

}  // namespace

layers::ModuleMap& LayersCall::modules() {
  static auto* only = new layers::ModuleMap;  // never destroyed: threads call while a process exits
  return *only;
}

Result<void> LayersCall::install(const PythonApi& api, Object* function, Object* implementation,
                                 bool also_implementation, Object* introduce,
                                 Object* set_compiler) {
  if (hook.function != nullptr) return {};
  VectorCall** place = place_of(api, function);
  VectorCall** other = place_of(api, introduce);
  // Both are plain Python functions, so both have the interpreter's own.
  if (place == nullptr || *place == nullptr || *place != *other) {
    return fail(Errc::kUnsupported,
                "layers are not traced: unsupported CPython build, or "
                "torch.nn.Module.__call__ is replaced already");
  }
  hook.api = api;
  hook.introduce = introduce;
  hook.set_compiler = set_compiler;
  hook.implementation_name = api.intern("_call_impl");
  hook.compiled_name = api.intern("_compiled_call_impl");
  hook.get_attribute_name = api.intern("__getattribute__");
  hook.direct = implementation != nullptr;
  hook.call_impl = implementation;
  if (implementation != nullptr && api.type_lookup != nullptr) {
    hook.get_attribute = api.type_lookup(api.object_type, hook.get_attribute_name);
  }
  api.inc_ref(introduce);
  api.inc_ref(function);
  hook.function = *place;
  hook.call = *place;
  if (implementation != nullptr) api.inc_ref(implementation);
  if (implementation != nullptr && also_implementation) {
    hook.implementation = *place_of(api, implementation);
    put(api, implementation, &call_implementation);
  }
  put(api, function, &call_function);
  return {};
}

Result<PythonApi> PythonApi::load() {
  PythonApi api;
  const char* missing = nullptr;
  const auto need = [&](auto*& function, const char* name) {
    if (!bind(function, name) && missing == nullptr) missing = name;
  };
  need(api.inc_ref, "Py_IncRef");
  need(api.dec_ref, "Py_DecRef");
  need(api.get_attr_string, "PyObject_GetAttrString");
  need(api.set_attr_string, "PyObject_SetAttrString");
  need(api.intern, "PyUnicode_InternFromString");
  need(api.as_utf8, "PyUnicode_AsUTF8");
  need(api.from_unsigned, "PyLong_FromUnsignedLongLong");
  need(api.as_unsigned, "PyLong_AsUnsignedLongLong");
  need(api.as_double, "PyFloat_AsDouble");
  need(api.is_true, "PyObject_IsTrue");
  need(api.tuple_size, "PyTuple_Size");
  need(api.vectorcall_dict, "PyObject_VectorcallDict");
  need(api.new_function, "PyCFunction_NewEx");
  need(api.get_dict, "PyObject_GenericGetDict");
  need(api.dict_item, "PyDict_GetItemWithError");
  need(api.error_occurred, "PyErr_Occurred");
  need(api.clear_error, "PyErr_Clear");
  need(api.set_error, "PyErr_SetString");
  need(api.none, "_Py_NoneStruct");
  need(api.object_type, "PyBaseObject_Type");
  need(api.function_type, "PyFunction_Type");
  abi::python::Object** runtime_error = nullptr;
  need(runtime_error, "PyExc_RuntimeError");
  if (missing != nullptr) {
    return fail(Errc::kUnsupported,
                std::string("layers are not traced: this process has no Python of "
                            "version 3.9 or later (no ") +
                    missing + ")");
  }
  api.runtime_error = *runtime_error;
  bind(api.type_lookup, "_PyType_Lookup");
  bind(api.set_vectorcall, "PyFunction_SetVectorcall");
  return api;
}

}  // namespace jouleprof::inject
