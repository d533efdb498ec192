#include "log.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "../common/compile_unit.h"
#include "../common/cuda_log.h"
#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kAttribute = "__attribute__((";
constexpr std::string_view kPtxas = "ptxas ";
constexpr std::size_t kMostLines = 400;  // of an error, whose end may be missing

struct Report {
  std::string file, message;
  int line = 0, column = 1;
};

std::size_t digits_at(const std::string& text, std::size_t at, int* number) {
  std::size_t end = at;
  *number = 0;
  while (end < text.size() && end < at + 8 && std::isdigit(static_cast<unsigned char>(text[end])) != 0)
    *number = *number * 10 + (text[end++] - '0');
  return end;
}

// Behind "error: ", "fatal error: ", "catastrophic error: ", "error #20012-D: " at `at`.
std::optional<std::string> error_message(const std::string& text, std::size_t at) {
  for (const std::string_view kind :
       {"fatal error", "catastrophic error", "internal error", "error", "Error"}) {
    if (text.compare(at, kind.size(), kind) != 0) continue;
    const std::size_t colon = text.find(": ", at + kind.size());
    if (colon == std::string::npos || colon > at + kind.size() + 12) continue;
    return text.substr(colon + 2);
  }
  return std::nullopt;
}

// Whether a path is that file: nvcc and g++ say it as they were given it, or with "./" or a folder in front.
bool is_file(const std::string& path, const std::string& file) {
  return path == file || (path.size() > file.size() && path.ends_with("/" + file));
}

class NvccLogReader {
 public:
  NvccLogReader(std::string_view log, const std::vector<std::string>& files)
      : lines_(split_lines(log)), files_(files) {}

  std::vector<Report> read() {
    for (at_ = 0; at_ < lines_.size(); ++at_)
      if (!read_host_compiler() && !read_front_end() && !read_assembler()) read_linker();
    return std::move(reports_);
  }

 private:
  const std::string* own(const std::string& path) const {
    for (const std::string& file : files_)
      if (is_file(path, file)) return &file;
    return nullptr;
  }

  // "kernel.cu(12): error: message", the source, a caret; for templates, which instantiation led there.
  bool read_front_end() {
    const std::string& text = lines_[at_];
    const std::size_t close = text.find("): ");
    const std::size_t open = close == std::string::npos ? close : text.rfind('(', close);
    if (open == std::string::npos || open == 0) return false;
    Report report;
    if (digits_at(text, open + 1, &report.line) != close) return false;
    const auto message = error_message(text, close + 3);
    if (!message) return false;
    report.message = *message;
    if (const std::string* file = own(text.substr(0, open))) {
      report.file = *file;
      report.column = column_below();
    } else {
      find_what_led_here(&report);
    }
    reports_.push_back(std::move(report));
    return true;
  }

  int column_below() const {
    for (std::size_t i = at_ + 1; i < std::min(at_ + 6, lines_.size()); ++i) {
      const std::size_t caret = lines_[i].find('^');
      if (caret == std::string::npos || lines_[i].find_first_not_of(" \t^") != std::string::npos) continue;
      // Two blanks stand in front of the source, and what it shows for `__global__` and the like is 13
      // characters longer.
      const std::string shown = lines_[i - 1].substr(0, caret);
      int column = static_cast<int>(caret) - 1;
      for (std::size_t at = shown.find(kAttribute); at != std::string::npos;
           at = shown.find(kAttribute, at + 1))
        column -= 13;
      return std::max(1, column);
    }
    return 1;
  }

  // "… at line 7 of kernel.cu"
  void find_what_led_here(Report* report) const {
    report->line = 0;
    const std::size_t end_of_all = std::min(lines_.size(), at_ + kMostLines);
    for (std::size_t i = at_ + 1; i < end_of_all && !lines_[i].empty(); ++i) {
      const std::size_t where = lines_[i].rfind(" at line ");
      if (where == std::string::npos) continue;
      int line = 0;
      const std::size_t end = digits_at(lines_[i], where + 9, &line);
      if (lines_[i].compare(end, 4, " of ") != 0) continue;
      std::string path = lines_[i].substr(end + 4);
      if (path.starts_with("\"")) path = path.substr(1, path.find('"', 1) - 1);
      if (const std::string* file = own(path)) {
        report->file = *file;
        report->line = line;
      }
    }
  }

  // "kernel.cu:12:3: error: message"; before an error in a header, "kernel.cu:9:1:   required from here".
  bool read_host_compiler() {
    const std::string& text = lines_[at_];
    const std::string path = text.substr(0, text.find(':'));
    Report report;
    std::size_t end = path.size();
    if (end == text.size() || digits_at(text, end + 1, &report.line) == end + 1) return false;
    end = digits_at(text, end + 1, &report.line);
    if (end >= text.size() || text[end] != ':') return false;
    if (const std::size_t behind = digits_at(text, end + 1, &report.column); behind > end + 1) end = behind;
    const std::string rest = trim(text.substr(std::min(end + 1, text.size())));
    const std::string* file = own(path);
    if (file != nullptr && rest.starts_with("required from"))
      led_here_ = Report{*file, "", report.line, report.column};
    const auto message = error_message(rest, 0);
    if (!message) return false;
    report.message = *message;
    if (file != nullptr) {
      report.file = *file;
    } else if (led_here_) {
      report.file = led_here_->file;
      report.line = led_here_->line;
      report.column = led_here_->column;
    }
    led_here_.reset();
    reports_.push_back(std::move(report));
    return true;
  }

  // "ptxas /tmp/….ptx, line 21; error   : Instruction 'wgmma.fence' not supported on .target 'sm_80'"
  bool read_assembler() {
    const std::string& text = lines_[at_];
    const std::size_t error = text.find("error   : ");
    if (!text.starts_with(kPtxas) || error == std::string::npos) return text.starts_with(kPtxas);
    reports_.push_back({"", text.substr(error + 10), 0, 1});
    return true;
  }

  void read_linker() {
    const std::string& text = lines_[at_];
    for (const std::string_view what : {"undefined reference to ", "multiple definition of "}) {
      const std::size_t found = text.find(what);
      if (found == std::string::npos) continue;
      const std::string rest = text.substr(found);
      reports_.push_back({"", rest.substr(0, rest.find(';')), 0, 1});
    }
  }

  std::vector<std::string> lines_;
  const std::vector<std::string>& files_;
  std::size_t at_ = 0;
  std::optional<Report> led_here_;
  std::vector<Report> reports_;
};

}  // namespace

std::string readable_nvcc_log(std::string_view log, const std::vector<std::string>& files,
                              std::size_t limit) {
  std::string out, last;
  for (const Report& report : NvccLogReader(log, files).read()) {
    std::string line = report.file.empty() ? files.front() : report.file;
    if (report.line > 0) line += ":" + std::to_string(report.line) + ":" + std::to_string(report.column);
    line += ": error: " + without_folders(report.message, " \"'`(", " \"'`)") + "\n";
    if (line != last) out += line;
    last = line;
  }
  if (out.empty()) out = files.front() + ": error: the compiler failed\n";
  return cut_log(std::move(out), limit);
}

}  // namespace warpsmith::toolchain
