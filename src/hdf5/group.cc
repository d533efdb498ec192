// Groups and files.
#include <algorithm>
#include <numeric>

#include "calls.h"

namespace warpsmith::hdf5 {

namespace {

Handle make_intermediate() {
  Handle list = own(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "link properties");
  check(H5Pset_create_intermediate_group(list.id(), 1), "link properties");
  check(H5Pset_char_encoding(list.id(), H5T_CSET_UTF8), "link properties");
  return list;
}

Handle creation_properties(const DatasetOptions& options, Size value_bytes) {
  Handle list = own(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "dataset properties");
  // No times inside: equal content gives equal files, which are told apart by checksums.
  check(H5Pset_obj_track_times(list.id(), false), "dataset properties");
  if (!options.extendible && options.deflate == 0 && !options.checksum) return list;
  if (options.shape.empty()) throw Error("a scalar cannot be chunked");
  std::vector<hsize_t> chunk(options.shape.begin(), options.shape.end());
  for (hsize_t& extent : chunk) extent = std::max<hsize_t>(1, extent);
  const Size row_bytes =
      value_bytes * std::accumulate(chunk.begin() + 1, chunk.end(), Size{1}, std::multiplies<>());
  chunk[0] = options.chunk_rows ? options.chunk_rows : std::max<Size>(1, (Size{64} << 10) / row_bytes);
  // A chunk beyond a fixed extent is an error of the library.
  if (!options.extendible) chunk[0] = std::min<hsize_t>(chunk[0], std::max<Size>(1, options.shape[0]));
  check(H5Pset_chunk(list.id(), static_cast<int>(chunk.size()), chunk.data()), "dataset properties");
  if (options.deflate > 0) {
    check(H5Pset_shuffle(list.id()), "dataset properties");
    check(H5Pset_deflate(list.id(), static_cast<unsigned>(options.deflate)), "dataset properties");
  }
  if (options.checksum) check(H5Pset_fletcher32(list.id()), "dataset properties");
  return list;
}

// No lock is taken. The library's flock fails on file systems without locks, with errors of its own choice
// (ENOLCK, 524, …), and nobody needs it: a file that is written is private to its writer until it is renamed.
Handle access_properties() {
  Handle list = own(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "file properties");
  // Closing the file while a dataset is open would leave it open without a word.
  check(H5Pset_fclose_degree(list.id(), H5F_CLOSE_SEMI), "file properties");
  check(H5Pset_file_locking(list.id(), false, true), "file properties");
  return list;
}

}  // namespace

Group Group::create_group(const std::string& path) {
  prepare();
  const Handle links = make_intermediate();
  return Group(own(H5Gcreate2(id(), path.c_str(), links.id(), H5P_DEFAULT, H5P_DEFAULT), H5Gclose,
                   "cannot make group " + path + " in " + describe(id())));
}

Group Group::open_group(const std::string& path) const {
  prepare();
  return Group(own(H5Gopen2(id(), path.c_str(), H5P_DEFAULT), H5Gclose,
                   "cannot open group " + path + " in " + describe(id())));
}

Group Group::require_group(const std::string& path) {
  return contains(path) ? open_group(path) : create_group(path);
}

bool Group::contains(const std::string& path) const {
  prepare();
  // H5Lexists wants every part but the last to exist.
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (part.empty() || part == "/") continue;
    if (check(H5Lexists(id(), part.c_str(), H5P_DEFAULT),
              "cannot look for " + part + " in " + describe(id())) == 0)
      return false;
  }
  return true;
}

std::vector<std::string> Group::names() const {
  prepare();
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  check(H5Literate(id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names), "members of " + describe(id()));
  std::sort(names.begin(), names.end());
  return names;
}

void Group::remove(const std::string& path) {
  prepare();
  check(H5Ldelete(id(), path.c_str(), H5P_DEFAULT), "cannot remove " + path + " from " + describe(id()));
}

Dataset Group::create(const std::string& path, Type type, const DatasetOptions& options) {
  prepare();
  const std::string what = "cannot make dataset " + path + " in " + describe(id());
  const bool text = type == Type::kString;
  const Handle text_type = text ? string_type(options.string_bytes) : Handle();
  const hid_t stored = text ? text_type.id() : number_type(type);
  if (text && options.string_bytes == 0 && (options.deflate > 0 || options.checksum))
    throw Error(what +
                ": texts of variable length lie outside the chunks: neither compressed nor checksummed");
  std::vector<hsize_t> extent(options.shape.begin(), options.shape.end()), most = extent;
  Handle space;
  if (extent.empty()) {
    space = own(H5Screate(H5S_SCALAR), H5Sclose, what);
  } else {
    if (options.extendible) most[0] = H5S_UNLIMITED;
    space =
        own(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), most.data()), H5Sclose, what);
  }
  const Handle links = make_intermediate();
  const Handle properties = creation_properties(options, H5Tget_size(stored));
  return Dataset(
      own(H5Dcreate2(id(), path.c_str(), stored, space.id(), links.id(), properties.id(), H5P_DEFAULT),
          H5Dclose, what));
}

Dataset Group::open_dataset(const std::string& path) const {
  prepare();
  return Dataset(own(H5Dopen2(id(), path.c_str(), H5P_DEFAULT), H5Dclose,
                     "cannot open dataset " + path + " in " + describe(id())));
}

Dataset Group::write_strings(const std::string& path, std::span<const std::string> values,
                             DatasetOptions options) {
  options.shape = {0};
  options.extendible = true;  // so that creating and filling are the calls that append uses
  Dataset dataset = create(path, Type::kString, options);
  dataset.append_strings(values);
  return dataset;
}

Dataset Group::write_string(const std::string& path, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) throw Error("dataset " + path + ": a text with NUL");
  Dataset dataset = create(path, Type::kString, {});
  const Handle type = string_type(0);
  const std::string copy(text);
  const char* pointer = copy.c_str();
  check(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &pointer),
        "cannot write " + path + " in " + describe(id()));
  return dataset;
}

File File::create(const std::filesystem::path& path) {
  prepare();
  const Handle access = access_properties();
  return File(own(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose,
                  "cannot create " + path.string()));
}

File File::open(const std::filesystem::path& path) {
  prepare();
  const Handle access = access_properties();
  return File(
      own(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.id()), H5Fclose, "cannot open " + path.string()));
}

File File::open_read_only(const std::filesystem::path& path) {
  prepare();
  const Handle access = access_properties();
  return File(
      own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose, "cannot open " + path.string()));
}

void File::flush() {
  prepare();
  check(H5Fflush(id(), H5F_SCOPE_GLOBAL), "cannot flush " + describe(id()));
}

void File::close() {
  prepare();
  const std::string what = "cannot close " + describe(id());
  check(handle_.reset(), what);
}

bool is_hdf5(const std::filesystem::path& path) {
  prepare();
  const htri_t yes = H5Fis_hdf5(path.c_str());
  H5Eclear2(H5E_DEFAULT);
  return yes > 0;
}

}  // namespace warpsmith::hdf5
