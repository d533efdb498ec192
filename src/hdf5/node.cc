// Handles, errors, attributes.
#include <algorithm>
#include <charconv>

#include "calls.h"

namespace warpsmith::hdf5 {

namespace {

// What the error stack says.
struct Messages {
  std::string text;
  int error_number = 0;  // of a system call that failed
};

// The errno in "file write failed: time = …, errno = 28, error message = '…', buf = 0x…, …"; 0: there is
// none.
int errno_in(std::string_view text) {
  constexpr std::string_view kBefore = "errno = ";
  const std::size_t at = text.find(kBefore);
  int number = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at + kBefore.size(), text.data() + text.size(), number);
  return number;
}

herr_t collect_message(unsigned, const H5E_error2_t* error, void* out) {
  auto& [text, error_number] = *static_cast<Messages*>(out);
  if (error->desc == nullptr || *error->desc == '\0') return 0;
  if (const int number = errno_in(error->desc); number != 0) error_number = number;
  if (!text.empty()) text += ": ";
  text += error->desc;
  return 0;
}

template <typename T>
void set_number(hid_t object, const std::string& name, Type type, T value) {
  prepare();
  if (check(H5Aexists(object, name.c_str()), "attribute " + name) > 0)
    check(H5Adelete(object, name.c_str()), "attribute " + name);
  const Handle space = own(H5Screate(H5S_SCALAR), H5Sclose, "attribute " + name);
  const Handle attribute =
      own(H5Acreate2(object, name.c_str(), number_type(type), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
          "cannot make attribute " + name + " of " + describe(object));
  check(H5Awrite(attribute.id(), number_type(type), &value), "cannot write attribute " + name);
}

template <typename T>
T get_number(hid_t object, const std::string& name, Type type) {
  prepare();
  const std::string what = "cannot read attribute " + name + " of " + describe(object);
  const Handle attribute = own(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, what);
  const Handle space = own(H5Aget_space(attribute.id()), H5Sclose, what);
  if (H5Sget_simple_extent_npoints(space.id()) != 1) throw Error(what + ": it is not one value");
  T value{};
  check(H5Aread(attribute.id(), number_type(type), &value), what);
  return value;
}

}  // namespace

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    reset();
    id_ = other.id_;
    close_ = other.close_;
    other.id_ = -1;
  }
  return *this;
}

int Handle::reset() noexcept {
  if (id_ < 0) return 0;
  const std::int64_t id = id_;
  id_ = -1;
  return close_(id);
}

void prepare() {
  // Everything is closed by its handle. The library's own tidying at exit would try again to write what a
  // full disk refused, and crashes over it.
  static const bool no_tidying = H5dont_atexit() >= 0;
  static_cast<void>(no_tidying);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

void fail(const std::string& what) {
  Messages messages;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, collect_message, &messages);
  H5Eclear2(H5E_DEFAULT);
  auto& [text, error_number] = messages;
  // What the system says of a call is all that a person needs; the rest are places in the library, times and
  // addresses.
  if (error_number != 0) throw system_error(what, error_number);
  std::replace(text.begin(), text.end(), '\n', ' ');
  throw Error(what + (text.empty() ? std::string() : ": " + text));
}

std::string describe(hid_t object) {
  const auto name_of = [](auto call) {
    const ssize_t length = call(nullptr, 0);
    if (length <= 0) return std::string();
    std::string name(static_cast<std::size_t>(length), '\0');
    call(name.data(), name.size() + 1);
    return name;
  };
  const std::string file = name_of([&](char* out, std::size_t n) { return H5Fget_name(object, out, n); });
  const std::string path = name_of([&](char* out, std::size_t n) { return H5Iget_name(object, out, n); });
  return file + ":" + path;
}

hid_t number_type(Type type) {
  switch (type) {
    case Type::kInt8:
      return H5T_NATIVE_INT8;
    case Type::kInt16:
      return H5T_NATIVE_INT16;
    case Type::kInt32:
      return H5T_NATIVE_INT32;
    case Type::kInt64:
      return H5T_NATIVE_INT64;
    case Type::kUint8:
      return H5T_NATIVE_UINT8;
    case Type::kUint16:
      return H5T_NATIVE_UINT16;
    case Type::kUint32:
      return H5T_NATIVE_UINT32;
    case Type::kUint64:
      return H5T_NATIVE_UINT64;
    case Type::kFloat32:
      return H5T_NATIVE_FLOAT;
    case Type::kFloat64:
      return H5T_NATIVE_DOUBLE;
    case Type::kString:
      break;
  }
  throw Error("a string where a number is wanted");
}

Handle string_type(Size bytes) {
  Handle type = own(H5Tcopy(H5T_C_S1), H5Tclose, "string type");
  check(H5Tset_cset(type.id(), H5T_CSET_UTF8), "string type");
  check(H5Tset_strpad(type.id(), bytes ? H5T_STR_NULLPAD : H5T_STR_NULLTERM), "string type");
  check(H5Tset_size(type.id(), bytes ? bytes : H5T_VARIABLE), "string type");
  return type;
}

void Node::set_attribute(const std::string& name, std::int64_t value) {
  set_number(id(), name, Type::kInt64, value);
}
void Node::set_attribute(const std::string& name, std::uint64_t value) {
  set_number(id(), name, Type::kUint64, value);
}
void Node::set_attribute(const std::string& name, double value) {
  set_number(id(), name, Type::kFloat64, value);
}

void Node::set_attribute(const std::string& name, std::string_view value) {
  prepare();
  if (value.find('\0') != std::string_view::npos) throw Error("attribute " + name + ": a text with NUL");
  if (has_attribute(name)) check(H5Adelete(id(), name.c_str()), "attribute " + name);
  // Fixed length, so that it lies in the object header; the library knows no text of length 0.
  const Handle type = string_type(std::max<Size>(1, value.size()));
  const Handle space = own(H5Screate(H5S_SCALAR), H5Sclose, "attribute " + name);
  const Handle attribute =
      own(H5Acreate2(id(), name.c_str(), type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
          "cannot make attribute " + name + " of " + describe(id()));
  const std::string padded = value.empty() ? std::string(1, '\0') : std::string(value);
  check(H5Awrite(attribute.id(), type.id(), padded.data()), "cannot write attribute " + name);
}

bool Node::has_attribute(const std::string& name) const {
  prepare();
  return check(H5Aexists(id(), name.c_str()), "attribute " + name) > 0;
}

std::int64_t Node::int_attribute(const std::string& name) const {
  return get_number<std::int64_t>(id(), name, Type::kInt64);
}
double Node::float_attribute(const std::string& name) const {
  return get_number<double>(id(), name, Type::kFloat64);
}

std::string Node::string_attribute(const std::string& name) const {
  prepare();
  const std::string what = "cannot read attribute " + name + " of " + describe(id());
  const Handle attribute = own(H5Aopen(id(), name.c_str(), H5P_DEFAULT), H5Aclose, what);
  const Handle type = own(H5Aget_type(attribute.id()), H5Tclose, what);
  const Handle space = own(H5Aget_space(attribute.id()), H5Sclose, what);
  if (H5Tget_class(type.id()) != H5T_STRING || H5Sget_simple_extent_npoints(space.id()) != 1)
    throw Error(what + ": it is not a text");
  if (check(H5Tis_variable_str(type.id()), what) > 0) {
    char* text = nullptr;
    check(H5Aread(attribute.id(), type.id(), &text), what);
    std::string out = text ? text : "";
    H5free_memory(text);
    return out;
  }
  std::string out(H5Tget_size(type.id()), '\0');
  check(H5Aread(attribute.id(), type.id(), out.data()), what);
  return out.substr(0, out.find('\0'));
}

std::vector<std::string> Node::attribute_names() const {
  prepare();
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  hsize_t position = 0;
  check(H5Aiterate2(id(), H5_INDEX_NAME, H5_ITER_INC, &position, add, &names),
        "attributes of " + describe(id()));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace warpsmith::hdf5
