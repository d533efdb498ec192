#include <algorithm>
#include <numeric>

#include "calls.h"

namespace warpsmith::hdf5 {

namespace {

// File space with rows [begin, begin + count) selected, and the memory space of as many values.
struct Selection {
  Handle file, memory;
};

Selection select_rows(hid_t dataset, Size begin, Size count, const std::string& what) {
  Selection out;
  out.file = own(H5Dget_space(dataset), H5Sclose, what);
  const int rank = check(H5Sget_simple_extent_ndims(out.file.id()), what);
  if (rank == 0) {
    if (begin != 0 || count != 1) throw Error(what + ": it is a scalar");
    out.memory = own(H5Screate(H5S_SCALAR), H5Sclose, what);
    return out;
  }
  std::vector<hsize_t> extent(static_cast<std::size_t>(rank)), offset(extent.size(), 0);
  check(H5Sget_simple_extent_dims(out.file.id(), extent.data(), nullptr), what);
  if (begin + count > extent[0] || begin + count < begin)
    throw Error(what + ": rows [" + std::to_string(begin) + ", " + std::to_string(begin + count) + ") of " +
                std::to_string(extent[0]));
  offset[0] = begin;
  extent[0] = count;
  check(H5Sselect_hyperslab(out.file.id(), H5S_SELECT_SET, offset.data(), nullptr, extent.data(), nullptr),
        what);
  out.memory = own(H5Screate_simple(rank, extent.data(), nullptr), H5Sclose, what);
  return out;
}

}  // namespace

Type Dataset::type() const {
  prepare();
  const std::string what = "type of " + describe(id());
  const Handle type = own(H5Dget_type(id()), H5Tclose, what);
  const std::size_t size = H5Tget_size(type.id());
  const int width = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
  switch (H5Tget_class(type.id())) {
    case H5T_STRING:
      return Type::kString;
    case H5T_FLOAT:
      return size == 4 ? Type::kFloat32 : Type::kFloat64;
    case H5T_INTEGER:
      return static_cast<Type>(width + (H5Tget_sign(type.id()) == H5T_SGN_NONE ? 4 : 0));
    default:
      throw Error(what + ": neither number nor text");
  }
}

Shape Dataset::shape() const {
  prepare();
  const std::string what = "shape of " + describe(id());
  const Handle space = own(H5Dget_space(id()), H5Sclose, what);
  std::vector<hsize_t> extent(static_cast<std::size_t>(check(H5Sget_simple_extent_ndims(space.id()), what)));
  check(H5Sget_simple_extent_dims(space.id(), extent.data(), nullptr), what);
  return {extent.begin(), extent.end()};
}

Size Dataset::rows() const {
  const Shape extent = shape();
  return extent.empty() ? 1 : extent[0];
}

Size Dataset::row_values() const {
  const Shape extent = shape();
  return extent.empty() ? 1 : std::accumulate(extent.begin() + 1, extent.end(), Size{1}, std::multiplies<>());
}

void Dataset::read_raw(Type type, Size begin, Size count, void* out) const {
  prepare();
  const std::string what = "cannot read " + describe(id());
  const Selection rows = select_rows(id(), begin, count, what);
  if (count > 0)
    check(H5Dread(id(), number_type(type), rows.memory.id(), rows.file.id(), H5P_DEFAULT, out), what);
}

void Dataset::write_raw(Type type, Size begin, Size count, const void* values) {
  prepare();
  const std::string what = "cannot write " + describe(id());
  const Selection rows = select_rows(id(), begin, count, what);
  if (count > 0)
    check(H5Dwrite(id(), number_type(type), rows.memory.id(), rows.file.id(), H5P_DEFAULT, values), what);
}

void Dataset::append_raw(Type type, const void* values, Size count) {
  const Size row = row_values(), begin = rows();
  if (row == 0 || count % row != 0)
    throw Error("cannot append to " + describe(id()) + ": " + std::to_string(count) +
                " values are no whole rows of " + std::to_string(row));
  if (count == 0) return;
  resize(begin + count / row);
  write_raw(type, begin, count / row, values);
}

void Dataset::resize(Size rows) {
  prepare();
  Shape extent = shape();
  if (extent.empty()) throw Error("cannot extend " + describe(id()) + ": it is a scalar");
  extent[0] = rows;
  std::vector<hsize_t> to(extent.begin(), extent.end());
  check(H5Dset_extent(id(), to.data()), "cannot extend " + describe(id()));
}

std::vector<std::string> Dataset::read_strings() const { return read_strings(0, rows()); }

std::vector<std::string> Dataset::read_strings(Size begin, Size count) const {
  prepare();
  const std::string what = "cannot read " + describe(id());
  const Selection rows = select_rows(id(), begin, count, what);
  const Handle type = own(H5Dget_type(id()), H5Tclose, what);
  if (H5Tget_class(type.id()) != H5T_STRING) throw Error(what + ": it holds no texts");
  const Size n = count * row_values();
  std::vector<std::string> out;
  if (n == 0) return out;
  out.reserve(n);
  if (check(H5Tis_variable_str(type.id()), what) > 0) {
    std::vector<char*> texts(n, nullptr);
    check(H5Dread(id(), type.id(), rows.memory.id(), rows.file.id(), H5P_DEFAULT, texts.data()), what);
    for (const char* text : texts) out.emplace_back(text ? text : "");
    check(H5Dvlen_reclaim(type.id(), rows.memory.id(), H5P_DEFAULT, texts.data()), what);
    return out;
  }
  const std::size_t width = H5Tget_size(type.id());
  std::string bytes(n * width, '\0');
  check(H5Dread(id(), type.id(), rows.memory.id(), rows.file.id(), H5P_DEFAULT, bytes.data()), what);
  for (Size i = 0; i < n; ++i) {
    const std::string_view text(bytes.data() + i * width, width);
    out.emplace_back(text.substr(0, text.find('\0')));
  }
  return out;
}

std::string Dataset::read_string() const { return read_strings(0, 1).at(0); }

void Dataset::append_strings(std::span<const std::string> values) {
  prepare();
  const std::string what = "cannot append to " + describe(id());
  if (row_values() != 1) throw Error(what + ": its rows hold several texts");
  if (values.empty()) return;
  const Handle type = own(H5Dget_type(id()), H5Tclose, what);
  if (H5Tget_class(type.id()) != H5T_STRING) throw Error(what + ": it holds no texts");
  const bool variable = check(H5Tis_variable_str(type.id()), what) > 0;
  const std::size_t width = H5Tget_size(type.id());
  // Everything is checked before the dataset grows.
  std::vector<const char*> texts;
  std::string bytes;
  for (const std::string& value : values) {
    if (value.find('\0') != std::string::npos) throw Error(what + ": a text with NUL");
    if (!variable && value.size() > width)
      throw Error(what + ": a text of " + std::to_string(value.size()) + " bytes where " +
                  std::to_string(width) + " fit");
    if (variable)
      texts.push_back(value.c_str());
    else
      bytes.append(value).append(width - value.size(), '\0');
  }
  const Size begin = rows();
  resize(begin + values.size());
  const Selection target = select_rows(id(), begin, values.size(), what);
  const void* data = variable ? static_cast<const void*>(texts.data()) : bytes.data();
  check(H5Dwrite(id(), type.id(), target.memory.id(), target.file.id(), H5P_DEFAULT, data), what);
}

}  // namespace warpsmith::hdf5
