#include "apps/inject/python_api.h"

#include <dlfcn.h>

#include <string>

namespace jouleprof::inject {
namespace {

template <typename F>
bool bind(F*& function, const char* name) {
  function = reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

}  // namespace

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
