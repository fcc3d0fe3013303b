#pragma once
#include <filesystem>
#include <string>

#include "classes/word_classes.h"
#include "text/vocabulary.h"

namespace hsm {

/// classes.txt: "word<TAB>class" a line in id order, "-" for the shortlist.
std::string format_classes(const Vocabulary& vocabulary, const WordClasses& classes);
void save_classes(const std::filesystem::path& path, const Vocabulary& vocabulary,
                  const WordClasses& classes);

/// DataError, with the first line that differs, unless the file is what save_classes() wrote of these
/// classes. `origin` ends the sentence "not the classes that …".
void check_saved_classes(const std::filesystem::path& path, const Vocabulary& vocabulary,
                         const WordClasses& classes, const std::string& origin);

/// Classes from a file with a word and the name of its class a line, in any order, apart by white space; "-"
/// puts a word on the shortlist. Classes are numbered by name: whole numbers by value, then other names by
/// spelling. A line of three fields is one of a Brown clustering: the class as a path in bits, the word, its
/// count. So what save_classes() wrote gives the same classes again. Reserved symbols are put on the
/// shortlist, whatever the file says, and may be missing; words that aren't in the vocabulary are passed
/// over.
///
/// DataError with file and line for a malformed line and a word listed twice; DataError with their number and
/// the first of them for words of the vocabulary that are missing; DataError when no class is left.
WordClasses load_classes(const std::filesystem::path& path, const Vocabulary& vocabulary);

}  // namespace hsm
