#include "warpsmith/executor/last_words.h"

#include <algorithm>
#include <fstream>

#include "warpsmith/base/files.h"

namespace warpsmith::executor {

namespace {

// First in each line, so that a line is found without parsing those before it.
std::string begin_of_line(const std::string& token, std::uint32_t shard) {
  return "{\"word\":\"" + token + "." + std::to_string(shard) + "\",";
}

std::vector<fs::path> files_in(const fs::path& ends) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(ends, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".jsonl") files.push_back(it->path());
  return files;
}

// From `offset` to the end; empty where the file cannot be read.
std::string tail_of(const fs::path& file, std::uintmax_t offset) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(offset));
  try {
    return {std::istreambuf_iterator<char>(in), {}};
  } catch (const std::ios_base::failure&) {  // a read that fails throws, whatever the stream was told
    return "";
  }
}

// False for what is no word: half a line that a full disk left.
bool parse_word(std::string_view line, LastWord& word) {
  word.told = Json::parse(line, nullptr, false);
  if (!word.told.is_object()) return false;
  const std::string name = word.told.value("word", "");
  const auto dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  word.token = name.substr(0, dot);
  word.shard = static_cast<std::uint32_t>(std::strtoul(name.c_str() + dot + 1, nullptr, 10));
  return true;
}

}  // namespace

fs::path ends_folder(const fs::path& job_file) { return job_file.parent_path() / "ends"; }

void append_last_word(const fs::path& ends, const std::string& node, const LastWord& word) {
  const std::string told = word.told.dump(-1, ' ', false, Json::error_handler_t::replace);
  // The first line break ends what a write that failed may have left.
  AppendFile(ends / (node + ".jsonl"))
      .append("\n" + begin_of_line(word.token, word.shard) + told.substr(1) + "\n");
}

Json find_last_word(const fs::path& ends, const std::string& token, std::uint32_t shard) {
  const std::string wanted = begin_of_line(token, shard);
  for (const fs::path& file : files_in(ends)) {
    const std::string text = tail_of(file, 0);
    const auto begin = text.find(wanted);
    const auto end = begin == std::string::npos ? begin : text.find('\n', begin);
    if (end == std::string::npos) continue;
    LastWord word;
    if (parse_word(std::string_view(text).substr(begin, end - begin), word)) return word.told;
  }
  return nullptr;
}

std::vector<LastWord> LastWords::read_new(bool sure) {
  std::vector<LastWord> words;
  std::error_code error;
  const auto changed = fs::last_write_time(ends_, error);
  if (error) return words;
  if (sure || changed != changed_) {
    for (fs::path& file : files_in(ends_)) read_.try_emplace(std::move(file), 0);
    // A file that appears within the clock's grain of this look must not be missed by the next.
    const bool fresh = fs::file_time_type::clock::now() - changed < std::chrono::seconds(2);
    changed_ = fresh ? fs::file_time_type{} : changed;
  }
  for (auto& [file, offset] : read_) {
    if (!sure) {
      const auto size = fs::file_size(file, error);
      if (error || size <= offset) continue;
    }
    const std::string text = tail_of(file, offset);
    const auto whole = text.rfind('\n');
    if (whole == std::string::npos) continue;
    for (std::size_t begin = 0; begin <= whole;) {
      const auto end = text.find('\n', begin);
      LastWord word;
      if (end > begin && parse_word(std::string_view(text).substr(begin, end - begin), word))
        words.push_back(std::move(word));
      begin = end + 1;
    }
    offset += whole + 1;
  }
  return words;
}

}  // namespace warpsmith::executor
