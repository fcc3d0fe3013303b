"""bench/: how programs are measured and compared, and the generator of Zipf corpora."""

import collections
import io
import math
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import compare  # noqa: E402
import measured_run  # noqa: E402
import recipe  # noqa: E402
import zipf_corpus  # noqa: E402

# Writes a line, holds 64 MiB, and then is at a window more every 20 ms.
PROGRAM = """
import time
print("ready", flush=True)
time.sleep(0.2)
held = bytearray(64 << 20)
for window in range(0, 10000, 4):
    print(f"epoch 1/3  window {window}/9999 and more", flush=True)
    time.sleep(0.08)
"""


class Measure(unittest.TestCase):
    def test_start_up_counts_for_nothing_and_memory_is_what_was_added(self):
        result = measured_run.measure([sys.executable, "-c", PROGRAM], 0.8, warm_up=0.2)
        self.assertLess(result.windows_per_second, 52)  # it sleeps that long
        self.assertGreater(result.windows_per_second, 0)
        self.assertGreater(result.growth, 60 << 20)
        self.assertLess(result.growth, 90 << 20)

    def test_a_program_that_ends_too_early_fails_with_what_it_said(self):
        with self.assertRaises(measured_run.Failed) as failure:
            measured_run.measure([sys.executable, "-c", "print('no such file')"], 1)
        self.assertIn("no such file", str(failure.exception))


class Recipe(unittest.TestCase):
    def test_a_recipe_is_read_with_its_comments_changes_and_defaults(self):
        config = recipe.read_recipe(CONFIGS / "ptb-medium.json", ["train.epochs=3", 'data.train="a//b.txt"'])
        self.assertEqual(config["data"]["train"], "a//b.txt")
        self.assertEqual(config["train"]["epochs"], 3)
        self.assertEqual(config["train"]["seed"], 1)
        self.assertEqual(config["model"]["embedding"], 650)
        self.assertEqual(config["model"]["dropout"], {"input": 0.5, "hidden": 0.5, "output": 0.5})
        rates = [recipe.learning_rate(config["train"], epoch) for epoch in (1, 6, 7, 8)]
        for rate, expected in zip(rates, (1, 1, 1 / 1.2, 1 / 1.44)):
            self.assertAlmostEqual(rate, expected)

    def test_what_cannot_be_followed_is_refused_by_name(self):
        for name, key in (("quickstart", "vocabulary.min_count"), ("awd-ptb", "model.tie_embeddings")):
            with self.subTest(recipe=name), self.assertRaises(SystemExit) as stop:
                recipe.read_recipe(CONFIGS / f"{name}.json")
            self.assertIn(key, str(stop.exception))
        for change in ('model.cell="gru"', 'train.optimizer={"name": "adam"}', 'train.schedule={"warmup_steps": 3}'):
            with self.subTest(change=change), self.assertRaises(SystemExit):
                recipe.read_recipe(CONFIGS / "ptb-small.json", [change])


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_folder_stands_for_its_training_text(self):
        text = self.folder / "wiki.train.tokens"
        with self.assertRaises(SystemExit):
            compare.find_text(self.folder)
        text.write_text("a\n")
        (self.folder / "wiki.test.tokens").write_text("a\n")
        self.assertEqual(compare.find_text(self.folder), text)
        self.assertEqual(compare.find_text(text), text)

    def test_ratios_are_medians_over_rounds_not_ratios_of_medians(self):
        ours = [measured_run.Measurement(speed, 0, 1) for speed in (10, 40, 30)]
        theirs = [measured_run.Measurement(speed, 0, 1) for speed in (10, 10, 20)]
        self.assertEqual(compare.median_ratio(ours, theirs, lambda m: m.windows_per_second), 1.5)

    def test_options_that_contradict_each_other_are_refused(self):
        for options in (["--peers", "fulll"], ["--processor-time"]):
            with self.subTest(options=options), self.assertRaises(SystemExit) as stop, \
                    unittest.mock.patch("sys.stderr", io.StringIO()):
                compare.parse(["text", "--program", "hsm", *options])
            self.assertEqual(stop.exception.code, 2)

    def test_the_configurations_are_such_as_hsm_takes(self):
        options = compare.parse(["text", "--program", "hsm"])
        text = self.folder / "train.txt"
        text.write_text("a b c\n" * 2000)
        hsm = compare.Hsm(os.environ["HSM_PROGRAM"], self.folder, options)
        configuration = hsm.write_configuration(text, 7, "once", max_steps=3)
        measured_run.run_seconds([hsm.program, "train", "--config", str(configuration)])
        self.assertTrue((self.folder / "once" / "model.safetensors").exists())


class Zipf(unittest.TestCase):
    def test_every_type_is_there_and_frequencies_fall_as_one_by_rank(self):
        out = io.StringIO()
        zipf_corpus.write(tokens=200_000, types=3000, sentence=24, seed=1, out=out)
        lines = out.getvalue().splitlines()
        counts = collections.Counter(word for line in lines for word in line.split())
        self.assertEqual(sum(counts.values()), 200_000)
        self.assertEqual(len(counts), 3000)
        self.assertEqual(max(len(line.split()) for line in lines), 24)
        harmonic = sum(1 / rank for rank in range(1, 3001))
        for rank in (1, 10, 100):
            expected = 200_000 / rank / harmonic
            self.assertLess(abs(counts[zipf_corpus.spell(rank - 1)] - expected), 5 * math.sqrt(expected))

    def test_words_differ(self):
        self.assertEqual(len({zipf_corpus.spell(rank) for rank in range(20_000)}), 20_000)


if __name__ == "__main__":
    unittest.main()
