// The functions of the Python interpreter that this process runs, if it runs one.
#pragma once

#include "abi/python_abi.h"
#include "base/result.h"

namespace jouleprof::inject {

struct PythonApi {
  abi::python::fn::IncRef* inc_ref = nullptr;
  abi::python::fn::DecRef* dec_ref = nullptr;
  abi::python::fn::GetAttrString* get_attr_string = nullptr;
  abi::python::fn::SetAttrString* set_attr_string = nullptr;
  abi::python::fn::InternFromString* intern = nullptr;
  abi::python::fn::AsUtf8* as_utf8 = nullptr;
  abi::python::fn::LongFromUnsignedLongLong* from_unsigned = nullptr;
  abi::python::fn::LongAsUnsignedLongLong* as_unsigned = nullptr;
  abi::python::fn::FloatAsDouble* as_double = nullptr;
  abi::python::fn::ObjectIsTrue* is_true = nullptr;
  abi::python::fn::TupleSize* tuple_size = nullptr;
  abi::python::fn::VectorcallDict* vectorcall_dict = nullptr;
  abi::python::fn::CFunctionNewEx* new_function = nullptr;
  abi::python::fn::FunctionSetVectorcall* set_vectorcall = nullptr;  // nullptr before 3.12
  abi::python::fn::TypeLookup* type_lookup = nullptr;  // nullptr: this Python has it no more
  abi::python::fn::GenericGetDict* get_dict = nullptr;
  abi::python::fn::DictGetItemWithError* dict_item = nullptr;
  abi::python::fn::ErrOccurred* error_occurred = nullptr;
  abi::python::fn::ErrClear* clear_error = nullptr;
  abi::python::fn::ErrSetString* set_error = nullptr;
  abi::python::Object* none = nullptr;
  abi::python::Object* runtime_error = nullptr;
  abi::python::Object* object_type = nullptr;
  void* function_type = nullptr;

  // Errors: unsupported, with the name of what is missing.
  static Result<PythonApi> load();

  abi::python::Object* none_reference() const {
    inc_ref(none);
    return none;
  }
};

}  // namespace jouleprof::inject
