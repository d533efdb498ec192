// The content-addressed cache of compilers: <key>.json is the answer, <key><suffix> the binary where there is
// one. Several processes may share one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"
#include "warpsmith/toolchain/options.h"

namespace warpsmith::toolchain {

// One entry of a cache, there or not.
class CacheEntry {
 public:
  CacheEntry(std::filesystem::path cache, std::string key, std::string suffix);
  std::filesystem::path answer() const { return cache_ / (key_ + ".json"); }
  std::filesystem::path binary() const { return cache_ / (key_ + suffix_); }

  // A cached answer, if it is whole; what is damaged counts as missing and is made again.
  std::optional<CompileResult> read() const;
  // The answer is written last: it makes the entry whole. `facts` of an ok result, null where there are none.
  void write(const std::filesystem::path& scratch, const CompileResult& result, const Json& facts) const;

 private:
  std::filesystem::path cache_;
  std::string key_, suffix_;
};

// A folder of our own in the cache; gone with everything in it at the end.
class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& cache);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Moves a file into the cache in one step. Two writers of one entry write the same.
void publish(const std::filesystem::path& from, const std::filesystem::path& to);

// What `from_json` makes of the facts that were written with the answer beside a binary. Throws Error naming
// the file where they are missing or damaged.
template <typename FromJson>
auto read_cached_facts(std::filesystem::path binary, const FromJson& from_json) {
  const std::string answer = binary.replace_extension(".json").string();
  const Json facts = json_at<Json>(read_json_file(answer), "facts", answer);
  try {
    return from_json(facts);
  } catch (const Error& e) {
    throw e.with_context("while reading " + answer);
  }
}

}  // namespace warpsmith::toolchain
