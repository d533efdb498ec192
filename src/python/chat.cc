#include "warpsmith/python/chat.h"

#include <filesystem>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/temporary_folder.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/python/sandboxed.h"
#include "warpsmith/python/scripts.h"

namespace warpsmith::python {

namespace {

constexpr std::uint64_t kMemory = 2ull << 30;
constexpr double kSeconds = 60;

}  // namespace

Json render_chats(const Json& question) {
  const auto python = find_python();
  if (!python) throw Error("a chat template needs a python3, and there is none here", kExitUsage);
  const TemporaryFolder folder("chat");
  const std::filesystem::path script = folder.path() / "chat_template.py",
                              scratch = folder.path() / "scratch";
  write_file_atomic(script, chat_template_script());
  make_folders(scratch);
  // Jinja2's own sandbox holds the template where no other is to be had.
  process::ChildSpec spec = sandboxed_python(*python, script, scratch, kMemory, true);
  spec.input = question.dump();
  spec.limits.wall_s = kSeconds;
  const process::ChildResult result = process::Child(spec).wait();
  Json answers = Json::parse(result.out, nullptr, false);
  if (answers.is_array() && answers.size() == question.at("chats").size()) return answers;
  const std::vector<std::string> words = split_lines(trim(result.err));
  throw Error("the chat template cannot be rendered by " + python->string() +
                  " (it needs jinja2, which torch's wheel brings)" +
                  (words.empty() ? std::string() : ": " + words.back()),
              kExitUsage);
}

}  // namespace warpsmith::python
