"""scripts/tune-weights: the weights that it finds, and what it says of wrong files."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "tune-weights"


def hypothesis(text, channel, logprob, oov=0):
    return {"text": text, "channel": channel, "logprob": logprob, "words": len(text.split()), "oov": oov, "score": 0}


class TuneWeights(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_on(self, lists, references, *options):
        (self.folder / "lists").write_text("".join(json.dumps(entry) + "\n" for entry in lists))
        (self.folder / "references").write_text("".join(line + "\n" for line in references))
        return subprocess.run(
            [sys.executable, SCRIPT, self.folder / "lists", self.folder / "references", *options],
            capture_output=True, text=True,
        )

    @staticmethod
    def weights(result):
        words = result.stdout.split()
        return {name: float(value) for name, value in zip(words[::2], words[1::2])}

    @staticmethod
    def rates(result):
        return [float(line.split()[-2]) for line in result.stderr.splitlines()]

    def test_the_model_gets_weight_where_it_is_right(self):
        # The channel prefers the wrong word by 1, the model the right one by 4.
        lists = [{"id": i, "hypotheses": [hypothesis("a b", -1, -9), hypothesis("a c", -2, -5)]} for i in range(6)]
        result = self.run_on(lists, ["a c"] * 6)
        self.assertEqual(result.returncode, 0, result.stderr)
        weight = self.weights(result)["--lm-weight"]
        self.assertGreater(-2 - 5 * weight, -1 - 9 * weight)
        self.assertEqual(self.rates(result), [50, 50, 0, 0])

    def test_the_bonus_keeps_words_that_the_model_would_drop(self):
        lists = [{"hypotheses": [hypothesis("a b c", -1, -9), hypothesis("a", -1.2, -3)]} for _ in range(6)]
        lists += [{"hypotheses": [hypothesis("x y", -1, -9), hypothesis("x z", -1.2, -3)]} for _ in range(6)]
        result = self.run_on(lists, ["a b c"] * 6 + ["x z"] * 6)
        self.assertEqual(self.rates(result)[2], 0, result.stderr)
        self.assertGreater(self.weights(result)["--word-bonus"], 0)

    def test_the_penalty_turns_unknown_words_away(self):
        lists = [{"hypotheses": [hypothesis("a b", -1, -3, 1), hypothesis("a c", -2, -4)]} for _ in range(6)]
        result = self.run_on(lists, ["a c"] * 6)
        self.assertEqual(self.rates(result)[2], 0, result.stderr)
        self.assertGreater(self.weights(result)["--oov-penalty"], 0)

    def test_a_model_that_is_of_no_use_gets_no_weight(self):
        lists = [{"hypotheses": [hypothesis("a b", -1, -9), hypothesis("a c", -2, -5)]} for _ in range(6)]
        result = self.run_on(lists, ["a b"] * 6)
        self.assertEqual(set(self.weights(result).values()), {0})

    def test_reports_error_rates_alone(self):
        lists = [{"id": "u", "hypotheses": [hypothesis("x", -1, -1), hypothesis("a b", -2, -1)]}, {"hypotheses": []}]
        result = self.run_on(lists, ["a b", "c d"], "--report")
        self.assertEqual(result.stdout, "")
        self.assertEqual(self.rates(result), [100, 100, 50])  # two errors of two words, and an empty list

    def test_references_may_come_by_id(self):
        lists = [{"id": "u", "hypotheses": [hypothesis("a", -1, -1)]}, {"id": 7, "hypotheses": [hypothesis("b", 0, 0)]}]
        self.assertEqual(self.rates(self.run_on(lists, ["7 b", "u a"], "--keyed", "--report")), [0, 0, 0])
        self.assertIn("no reference for list 7", self.run_on(lists, ["u a"], "--keyed").stderr)

    def test_wrong_files_are_named(self):
        lists = [{"hypotheses": [hypothesis("a", -1, -1)]}, {"hypotheses": [{"text": "a"}]}]
        result = self.run_on(lists, ["a", "a"])
        self.assertEqual(result.returncode, 1)
        self.assertIn("lists:2: expected a rescored list", result.stderr)
        self.assertIn("2 references for 1 lists", self.run_on(lists[:1], ["a", "a"]).stderr)
        self.assertIn("no list", self.run_on([], []).stderr)
        reported = [{"line": 1, "error": "in:1: bad"}]
        self.assertIn("malformed line", self.run_on(reported, ["a"]).stderr)


if __name__ == "__main__":
    unittest.main()
