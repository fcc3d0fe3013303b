#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "cli/malformed.h"

namespace hsm::test {
namespace {

// One file of the folder with other content, and options of hsm classes, which reads the training text.
Malformed classes(const std::string& name, int code, std::vector<std::string> places, const std::string& file,
                  const std::string& content, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"classes", "--config", "@/config.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return {name, code, std::move(places), std::move(arguments),
          [file, content](const TemporaryFolder& folder) { folder.write(file, content); }};
}

Malformed text(const std::string& name, int code, std::vector<std::string> places, const std::string& content,
               std::vector<std::string> more = {}) {
  return classes(name, code, std::move(places), "train.txt", content, std::move(more));
}

Malformed vocabulary(const std::string& name, int code, std::vector<std::string> places,
                     const std::string& content) {
  return classes(name, code, std::move(places), "words.txt", content,
                 {"--set", "vocabulary.file=@/words.txt"});
}

Malformed class_file(const std::string& name, int code, std::vector<std::string> places,
                     const std::string& content) {
  std::vector<std::string> more;
  for (const char* setting : {"classes.method=file", "classes.file=@/classes.txt", "classes.clusters=auto",
                              "classes.shortlist=auto", "data.train=@/abc.txt"}) {
    more.insert(more.end(), {"--set", setting});
  }
  Malformed result = classes(name, code, std::move(places), "classes.txt", content, more);
  result.spoil = [content](const TemporaryFolder& folder) {
    folder.write("classes.txt", content);
    folder.write("abc.txt", "a b c\na b\n");
  };
  return result;
}

Malformed setting(const std::string& name, int code, std::vector<std::string> places,
                  const std::string& value) {
  return {name, code, std::move(places), {"classes", "--config", "@/config.json", "--set", value}};
}

TEST(Malformed, Texts) {
  Malformed stream = setting("nothing on standard input", 3, {"standard input"}, "data.train=-");
  expect_refusals({
      setting("text that is not there", 3, {"@/none.txt"}, "data.train=@/none.txt"),
      setting("glob that matches nothing", 2, {"@/none*.txt"}, "data.train=@/none*.txt"),
      setting("folder for a text", 3, {"@/model"}, "data.train=@/model"),
      stream,
      text("empty text", 3, {"@/train.txt"}, ""),
      text("blank lines alone", 3, {"@/train.txt"}, "\n \n\n"),
      text("text that is not UTF-8", 3, {"@/train.txt:2", "UTF-8"}, "good line\nbad \xff line\n"),
      text("UTF-8 cut at the end of a line", 3, {"@/train.txt:1", "UTF-8"}, "caf\xc3\nnext\n"),
      text("overlong UTF-8", 3, {"@/train.txt:1", "UTF-8"}, "a \xc0\xaf b\n"),
      text("end of sentence within a line", 3, {"@/train.txt:3", "</s>"}, "a b\nc d\ne </s> f\n"),
      text("start of sentence within a line", 3, {"@/train.txt:1", "<s>"}, "a <s> b\n"),
      text("cut .gz", 3, {"@/train.txt"}, std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b", 11)),
      text("damaged .zst", 3, {"@/train.txt"}, std::string("\x28\xb5\x2f\xfd\xff\xff\xff\xff", 8)),
      text("words all too rare", 2, {"vocabulary.min_count"}, "a b c\n", {"--set", "vocabulary.min_count=2"}),
      text("more clusters than words", 2, {"classes.clusters"}, "a b c\n"),
  });
}

TEST(Malformed, VocabularyAndClassFiles) {
  expect_refusals({
      setting("vocabulary that is not there", 3, {"@/none.txt"}, "vocabulary.file=@/none.txt"),
      vocabulary("empty vocabulary", 3, {"@/words.txt"}, ""),
      vocabulary("word twice", 3, {"@/words.txt:3", "\"a\""}, "a\nb\na\n"),
      vocabulary("two words on a line", 3, {"@/words.txt:2"}, "a\nb c\n"),
      vocabulary("words that are not UTF-8", 3, {"@/words.txt:1"}, "\xff\n"),
      vocabulary("reserved words alone", 3, {"@/words.txt"}, "<unk>\n</s>\n"),
      class_file("no class", 3, {"@/classes.txt:2"}, "a 1\nb\nc 2\n"),
      class_file("three fields", 3, {"@/classes.txt:2"}, "a 1\nb 2 3\nc 2\n"),
      class_file("word twice in the classes", 3, {"@/classes.txt:3", "\"a\""}, "a 1\nb 2\na 2\nc 1\n"),
      class_file("words without a class", 3, {"@/classes.txt", "\"c\""}, "a 1\nb 2\n"),
      class_file("nothing but a shortlist", 3, {"@/classes.txt"}, "a -\nb -\nc -\n"),
      class_file("classes that are not UTF-8", 3, {"@/classes.txt:1"}, "a\xff 1\n"),
      class_file("empty class file", 3, {"@/classes.txt"}, ""),
  });
}

Malformed score(const std::string& name, int code, std::vector<std::string> places, const std::string& input,
                std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"score", "--format", "jsonl", "--model", "@/model"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return {name, code, std::move(places), std::move(arguments), [](const TemporaryFolder&) {}, input};
}

TEST(Malformed, TextsToScore) {
  expect_refusals({
      score("line that is not UTF-8", 3, {"standard input:2", "UTF-8"}, "the cat\n\xff\n"),
      score("end of sentence within a line", 3, {"standard input:1", "</s>"}, "the </s> cat\n"),
      score("file that is not there", 3, {"@/none.txt"}, "", {"@/none.txt"}),
      score("no text", 3, {"standard input"}, ""),
      score("unknown context", 2, {"--context", "page"}, "", {"--context", "page"}),
      score("unknown unit", 2, {"--by", "line"}, "", {"--by", "line"}),
      score("negative threads", 2, {"--threads", "-1"}, "", {"--threads", "-1"}),
      score("threads that are no number", 2, {"--threads", "two"}, "", {"--threads", "two"}),
      score("unknown device", 2, {"tpu"}, "", {"--device", "tpu"}),
  });
}

Malformed lists(const std::string& name, int code, std::vector<std::string> places, const std::string& format,
                const std::string& input, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"score", "--model", "@/model", "--nbest", format};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return {name,
          code,
          std::move(places),
          std::move(arguments),
          [](const TemporaryFolder& folder) { folder.write("costs", "u-1 1\nu-3 2\n"); },
          input};
}

TEST(Malformed, NbestLists) {
  expect_refusals({
      lists("unknown format of lists", 2, {"--nbest", "srilm"}, "srilm", ""),
      lists("lists that are not there", 3, {"@/none.txt"}, "moses", "", {"@/none.txt"}),
      lists("no list", 3, {"standard input"}, "kaldi", ""),
      lists("key without a number", 3, {"standard input:1", "\"u\""}, "kaldi", "u the cat\n"),
      lists("hypothesis that is not UTF-8", 3, {"standard input:1", "UTF-8"}, "kaldi", "u-1 \xff\n"),
      lists("costs of another list", 3, {"@/costs:2", "\"u-3\"", "\"u-2\""}, "kaldi", "u-1 the\nu-2 cat\n",
            {"--channel-costs", "@/costs"}),
      lists("costs beside scores", 2, {"--channel-costs"}, "moses", "0 ||| the\n",
            {"--channel-costs", "@/costs"}),
      lists("no separator", 3, {"standard input:1", "|||"}, "moses", "0 the cat\n"),
      lists("score that is no number", 3, {"standard input:1", "\"high\""}, "moses",
            "0 ||| the ||| a= 1 ||| high\n"),
      lists("list that is no JSON", 3, {"standard input:1", "JSON"}, "jsonl", "the cat\n"),
      lists("list without hypotheses", 3, {"standard input:1", "hypotheses: missing"}, "jsonl", "{}\n"),
      lists("hypothesis without a text", 3, {"standard input:1", "hypotheses[0].text"}, "jsonl",
            "{\"hypotheses\":[{\"score\":1}]}\n"),
      lists("negative weight of the model", 2, {"--lm-weight -1"}, "jsonl", "", {"--lm-weight", "-1"}),
      lists("format that lists don't have", 2, {"--format text"}, "jsonl", "", {"--format", "text"}),
      lists("unit for lists", 2, {"--by"}, "jsonl", "", {"--by", "word"}),
      score("weight without lists", 2, {"--lm-weight"}, "", {"--lm-weight", "1"}),
      {"format of lists for text",
       2,
       {"--format moses"},
       {"score", "--model", "@/model", "--format", "moses"}},
  });
}

}  // namespace
}  // namespace hsm::test
