// What we write is read back by us and by h5py; what h5py writes is read by us; damage is an error with a
// message.
#include "warpsmith/hdf5/hdf5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

// In the place of the C library's for all of this process: a file system whose locks fail.
static int lock_error = 0;
extern "C" int flock(int, int) {
  errno = lock_error;
  return lock_error == 0 ? 0 : -1;
}

namespace warpsmith::hdf5 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Hdf5Test : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "warpsmith-hdf5-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  // Runs a Python program with h5py; false where this machine has none.
  bool run_h5py(const std::string& program) {
    if (std::system("/usr/bin/python3 -c 'import h5py' >/dev/null 2>&1") != 0) return false;
    write_file_atomic(folder_ / "check.py", program);
    const std::string command = "cd " + folder_.string() + " && /usr/bin/python3 check.py >out.txt 2>&1";
    const int status = std::system(command.c_str());
    EXPECT_EQ(status, 0) << read_file(folder_ / "out.txt");
    return true;
  }
  fs::path folder_;
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_F(Hdf5Test, EveryNumberTypeComesBack) {
  {
    File file = File::create(folder_ / "a.h5");
    const auto put = [&]<typename T>(const char* name, T) {
      const std::vector<T> values = {std::numeric_limits<T>::lowest(), T{0}, std::numeric_limits<T>::max()};
      file.write<T>(name, values);
    };
    put("i8", std::int8_t{});
    put("i16", std::int16_t{});
    put("i32", std::int32_t{});
    put("i64", std::int64_t{});
    put("u8", std::uint8_t{});
    put("u16", std::uint16_t{});
    put("u32", std::uint32_t{});
    put("u64", std::uint64_t{});
    put("f32", float{});
    put("f64", double{});
    file.close();
  }
  const File file = File::open_read_only(folder_ / "a.h5");
  const auto check = [&]<typename T>(const char* name, T) {
    const Dataset dataset = file.open_dataset(name);
    EXPECT_EQ(dataset.type(), type_of<T>()) << name;
    EXPECT_THAT(dataset.read<T>(),
                ElementsAre(std::numeric_limits<T>::lowest(), T{0}, std::numeric_limits<T>::max()));
  };
  check("i8", std::int8_t{});
  check("i16", std::int16_t{});
  check("i32", std::int32_t{});
  check("i64", std::int64_t{});
  check("u8", std::uint8_t{});
  check("u16", std::uint16_t{});
  check("u32", std::uint32_t{});
  check("u64", std::uint64_t{});
  check("f32", float{});
  check("f64", double{});
  EXPECT_THAT(file.names(), ElementsAre("f32", "f64", "i16", "i32", "i64", "i8", "u16", "u32", "u64", "u8"));
}

TEST_F(Hdf5Test, AppendsWholeRowsOverSeveralOpenings) {
  {
    File file = File::create(folder_ / "a.h5");
    file.create_dataset<std::int32_t>("deep/er/t",
                                      {.shape = {0, 2}, .extendible = true, .chunk_rows = 2, .deflate = 4});
    file.create_string_dataset("ids", {.shape = {0}, .extendible = true, .deflate = 1, .string_bytes = 4});
    file.create_string_dataset("texts", {.shape = {0}, .extendible = true});
  }
  for (std::int32_t i = 0; i < 3; ++i) {
    File file = File::open(folder_ / "a.h5");
    file.open_dataset("deep/er/t").append<std::int32_t>(std::vector{i, 10 * i, i + 100, 7});
    file.open_dataset("ids").append_strings(std::vector<std::string>{"id" + std::to_string(i), "", "abcd"});
    file.open_dataset("texts").append_strings(std::vector<std::string>{std::string(1000, 'x'), "ä€"});
  }
  File file = File::open(folder_ / "a.h5");
  Dataset table = file.open_dataset("deep/er/t");
  EXPECT_EQ(table.shape(), (Shape{6, 2}));
  EXPECT_THAT(table.read<std::int32_t>(), ElementsAre(0, 0, 100, 7, 1, 10, 101, 7, 2, 20, 102, 7));
  EXPECT_THAT(table.read_rows<double>(2, 1), ElementsAre(1.0, 10.0));  // converted
  EXPECT_THAT(file.open_dataset("ids").read_strings(3, 3), ElementsAre("id1", "", "abcd"));
  EXPECT_THAT(file.open_dataset("texts").read_strings(4, 2), ElementsAre(std::string(1000, 'x'), "ä€"));
  table.resize(1);
  EXPECT_THAT(table.read<std::int32_t>(), ElementsAre(0, 0));
  EXPECT_THAT(message_of([&] {
                table.append<std::int32_t>(std::vector{1, 2, 3});
              }),
              HasSubstr("no whole rows of 2"));
  EXPECT_THAT(message_of([&] { (void)table.read_rows<int>(1, 1); }), HasSubstr("rows [1, 2) of 1"));
  Dataset ids = file.open_dataset("ids");
  EXPECT_THAT(message_of([&] { ids.append_strings(std::vector<std::string>{"abcde"}); }),
              HasSubstr("a text of 5 bytes where 4 fit"));
  EXPECT_EQ(ids.rows(), 9u) << "a refused append must not grow the dataset";
}

TEST_F(Hdf5Test, AttributesAreReplacedAndTyped) {
  File file = File::create(folder_ / "a.h5");
  file.set_attribute("step", 3);
  file.set_attribute("step", 4);
  file.set_attribute("rate", 4e-3);
  file.set_attribute("big", ~std::uint64_t{0});
  file.set_attribute("empty", "");
  file.set_attribute("name", "Größe");
  EXPECT_EQ(file.int_attribute("step"), 4);
  EXPECT_EQ(file.float_attribute("rate"), 4e-3);
  EXPECT_EQ(file.string_attribute("empty"), "");
  EXPECT_EQ(file.string_attribute("name"), "Größe");
  EXPECT_THAT(file.attribute_names(), ElementsAre("big", "empty", "name", "rate", "step"));
  EXPECT_FALSE(file.has_attribute("none"));
  EXPECT_THAT(message_of([&] { (void)file.int_attribute("none"); }), HasSubstr("attribute none"));
  EXPECT_THAT(message_of([&] { (void)file.string_attribute("step"); }), HasSubstr("not a text"));
  EXPECT_THROW(file.set_attribute("nul", std::string_view("a\0b", 3)), Error);
}

TEST_F(Hdf5Test, FaultsCarryTheLibrarysMessage) {
  EXPECT_THAT(message_of([&] { File::open(folder_ / "absent.h5"); }),
              ::testing::AllOf(HasSubstr("cannot open"), HasSubstr("absent.h5"), HasSubstr("No such file")));
  write_file_atomic(folder_ / "text.h5", "no HDF5 file");
  EXPECT_FALSE(is_hdf5(folder_ / "text.h5"));
  EXPECT_FALSE(is_hdf5(folder_ / "absent.h5"));
  EXPECT_THAT(message_of([&] { File::open(folder_ / "text.h5"); }), HasSubstr("file signature not found"));
  File file = File::create(folder_ / "a.h5");
  EXPECT_THAT(message_of([&] { file.open_dataset("x"); }), HasSubstr("cannot open dataset x"));
  EXPECT_FALSE(file.contains("a/b/c"));
  file.create_group("a/b");
  EXPECT_TRUE(file.contains("a/b"));
  EXPECT_FALSE(file.contains("a/b/c"));
  file.require_group("a/b").write_string("c", "text");
  EXPECT_TRUE(file.contains("/a/b/c"));
  EXPECT_EQ(file.open_dataset("a/b/c").read_string(), "text");
  EXPECT_THROW(file.create_group("a"), Error);
  file.remove("a/b/c");
  EXPECT_FALSE(file.contains("a/b/c"));
}

TEST_F(Hdf5Test, AFullDiskIsToldInOneLine) {
  // In a child: a limit on the size of files, which stands for the disk's, would hold for the other tests.
  const fs::path told = folder_ / "told";
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64 << 10, 64 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int error_number = 0;
    const std::string text = [&]() -> std::string {
      try {
        File file = File::create(folder_ / "a.h5");
        file.write("x", std::span<const double>(std::vector<double>(100'000, 1.5)));
        file.close();
      } catch (const Error& e) {
        error_number = e.error_number();
        return e.what();
      }
      return "nothing was thrown";
    }();
    write_file_atomic(told, std::to_string(error_number) + " " + text);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const std::string text = read_file(told);
  EXPECT_TRUE(text.starts_with(std::to_string(EFBIG) + " cannot ")) << text;
  EXPECT_TRUE(text.ends_with(": File too large")) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_EQ(text.find("0x"), std::string::npos) << text;
}

TEST_F(Hdf5Test, ChecksumFindsAFlippedBit) {
  const std::vector<float> values(4096, 1.25f);
  {
    File file = File::create(folder_ / "a.h5");
    file.write<float>("w", values, {.checksum = true});
  }
  std::string bytes = read_file(folder_ / "a.h5");
  const std::string needle(reinterpret_cast<const char*>(values.data()), 64);
  const std::size_t at = bytes.find(needle);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 20] = static_cast<char>(bytes[at + 20] ^ 4);
  write_file_atomic(folder_ / "a.h5", bytes);
  const File file = File::open_read_only(folder_ / "a.h5");
  EXPECT_THAT(message_of([&] { (void)file.open_dataset("w").read<float>(); }),
              HasSubstr("Fletcher32 checksum"));
}

TEST_F(Hdf5Test, TruncatedFileIsRefused) {
  {
    File file = File::create(folder_ / "a.h5");
    file.write<float>("w", std::vector<float>(4096, 1.0f));
  }
  fs::resize_file(folder_ / "a.h5", fs::file_size(folder_ / "a.h5") - 100);
  EXPECT_THAT(message_of([&] { File::open_read_only(folder_ / "a.h5"); }), HasSubstr("truncated file"));
}

TEST_F(Hdf5Test, EqualContentGivesEqualFiles) {
  for (const char* name : {"a.h5", "b.h5"}) {
    File file = File::create(folder_ / name);
    file.create_group("g").write<double>("x", std::vector{1.0, 2.0}, {.deflate = 3});
    file.set_attribute("k", "v");
  }
  EXPECT_EQ(read_file(folder_ / "a.h5"), read_file(folder_ / "b.h5"));
}

TEST_F(Hdf5Test, H5pyReadsWhatWeWrite) {
  {
    File file = File::create(folder_ / "ours.h5");
    file.write<double>("g/x", std::vector{1.5, -2.0, 3.0, 4.0, 5.0, 6.0}, {.shape = {2, 3}, .deflate = 2});
    file.write_strings("g/names", std::vector<std::string>{"eins", "zwei €"});
    file.write_strings("g/ids", std::vector<std::string>{"aa", "bbb"}, {.string_bytes = 3});
    file.write_string("text", "workflow: x\n");
    file.set_attribute("schema", "warpsmith.test/1");
    file.set_attribute("step", 12);
  }
  if (!run_h5py(R"(
import h5py
f = h5py.File('ours.h5', 'r')
assert f['g/x'].shape == (2, 3) and f['g/x'].dtype == 'float64' and f['g/x'][1].tolist() == [4, 5, 6]
assert f['g/x'].compression == 'gzip'
assert [s.decode() for s in f['g/names'][:]] == ['eins', 'zwei \u20ac']
assert [bytes(s) for s in f['g/ids'][:]] == [b'aa', b'bbb']
assert f['text'][()].decode() == 'workflow: x\n'
assert f.attrs['step'] == 12
schema = f.attrs['schema']
assert (schema if isinstance(schema, str) else schema.decode()) == 'warpsmith.test/1', schema
)"))
    GTEST_SKIP() << "no h5py here";
}

TEST_F(Hdf5Test, WeReadWhatH5pyWrites) {
  if (!run_h5py(R"(
import h5py, numpy as np
f = h5py.File('theirs.h5', 'w')
f['big'] = np.arange(6, dtype='>i2').reshape(3, 2)
f.create_dataset('names', data=['a', '\u00e4\u20ac'], dtype=h5py.string_dtype())
f.attrs['text'] = 'gr\u00fcn'
f.attrs['n'] = np.int32(-4)
)"))
    GTEST_SKIP() << "no h5py here";
  const File file = File::open_read_only(folder_ / "theirs.h5");
  EXPECT_EQ(file.open_dataset("big").shape(), (Shape{3, 2}));
  EXPECT_THAT(file.open_dataset("big").read<std::int64_t>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(file.open_dataset("names").read_strings(), ElementsAre("a", "ä€"));
  EXPECT_EQ(file.string_attribute("text"), "grün");
  EXPECT_EQ(file.int_attribute("n"), -4);
}

// NFS without a lock daemon answers ENOLCK, Cray's DVS 524.
TEST_F(Hdf5Test, FileSystemsWithoutLocksAreWrittenAndRead) {
  for (const int error : {ENOLCK, 524, EOPNOTSUPP, ENOSYS, EWOULDBLOCK}) {
    lock_error = error;
    const fs::path path = folder_ / "x.h5";
    {
      File file = File::create(path);
      file.set_attribute("n", 7);
      file.close();
    }
    {
      File file = File::open(path);
      file.set_attribute("n", 8);
      file.close();
    }
    EXPECT_EQ(File::open_read_only(path).int_attribute("n"), 8) << error;
    EXPECT_TRUE(is_hdf5(path)) << error;
    lock_error = 0;
  }
}

}  // namespace
}  // namespace warpsmith::hdf5
