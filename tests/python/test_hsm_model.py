"""scripts/hsm_model.py against the program: models of every cell, tied and untied, give each word the same
log-probability in Python as `hsm score` prints."""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import numpy as np

import hsm_model

PROGRAM = os.environ["HSM_PROGRAM"]
CELLS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
TOLERANCE = 1e-4


def text(seed, lines):
    """Sentences of 0 to 12 words from a small vocabulary with a few frequent words, some beyond ASCII."""
    draw = random.Random(seed)
    words = [f"w{i}" for i in range(47)] + ["naïve", "Ĉu", "水", "x\u00a0y"]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    sentences = [" ".join(draw.choices(words, weights, k=draw.randrange(13))) for _ in range(lines)]
    return "\n".join(sentences) + "\n"


class SameScores(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "train.txt").write_text(text(1, 150), encoding="utf-8")
        # Unknown words, a literal <unk>, edge marks, a tab, and a last line without newline.
        cls.sample = text(2, 12) + "zebra w1 <unk> w2 wolf\n<s> w3\tw4 </s>\n\nw5 水"
        (cls.folder / "sample.txt").write_text(cls.sample, encoding="utf-8")

    def train(self, name, **model):
        config = {
            "data": {"train": "train.txt"},
            "vocabulary": {"min_count": 2},
            "classes": {"clusters": 7, "shortlist": 5},
            "model": {"init_range": 0.5, **model},
            "train": {"epochs": 1, "batch": 3, "bptt": 7, "optimizer": {"learning_rate": 0.5}, "clip_norm": 1},
            "output": {"directory": name},
        }
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(config))
        self.run_program("train", "--config", path)
        return self.folder / name

    def run_program(self, *arguments):
        result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def compare(self, directory, context):
        output = self.run_program(
            "score", "--model", directory, "--by", "word", "--format", "jsonl", "--context", context,
            self.folder / "sample.txt",
        )
        scored = [json.loads(line) for line in output.splitlines()][:-1]
        model = hsm_model.Model(directory)
        state = model.start()
        lines = self.sample.split("\n")
        self.assertEqual(len(scored), len(lines))
        for line, expected in zip(lines, scored):
            tokens = model.tokens(line)
            self.assertEqual(tokens, expected["tokens"])
            parts, next_state = model.score(tokens, state)
            if context == "stream":
                state = next_state
            parts = np.array(parts)
            np.testing.assert_allclose(parts.sum(axis=1), expected["logprobs"], rtol=0, atol=TOLERANCE)
            np.testing.assert_allclose(parts[:, 0], expected["root_logprobs"], rtol=0, atol=TOLERANCE)

    def check(self, name, **model):
        directory = self.train(name, **model)
        for context in ("stream", "sentence"):
            with self.subTest(model=name, context=context):
                self.compare(directory, context)
        return directory

    def test_untied(self):
        for cell in CELLS:
            self.check(f"{cell}-untied", cell=cell, hidden=[11, 6], embedding=9)

    def test_tied(self):
        for cell in CELLS:
            self.check(f"{cell}-tied", cell=cell, hidden=13, layers=1, tie_embeddings=True)

    def test_tied_through_a_projection(self):
        self.check("projected", cell="lstm", hidden=[10, 7], embedding=5, tie_embeddings=True)

    def test_command_line_prints_what_the_program_prints(self):
        directory = self.train("command", cell="gru", hidden=8, layers=1)
        script = pathlib.Path(hsm_model.__file__)
        for options, read in ((["--words"], lambda line: sum(json.loads(line)["logprobs"])), ([], float)):
            result = subprocess.run(
                [os.sys.executable, script, directory, *options],
                input=self.sample, capture_output=True, text=True, encoding="utf-8",
            )
            self.assertEqual(result.returncode, 0, result.stderr)
            output = self.run_program(
                "score", "--model", directory, "--by", "sentence", "--format", "jsonl", self.folder / "sample.txt"
            )
            expected = [json.loads(line)["logprob"] for line in output.splitlines()][:-1]
            np.testing.assert_allclose([read(line) for line in result.stdout.splitlines()], expected, atol=1e-3)

    def test_probabilities_of_all_words_sum_to_one(self):
        model = hsm_model.Model(self.train("sum", cell="lstm", hidden=8, layers=1))
        head, _ = model.step(model.ids["w1"], model.start())
        total = sum(np.exp(sum(model.log_prob(head, word))) for word in range(len(model.words)))
        self.assertAlmostEqual(total, 1, places=5)


if __name__ == "__main__":
    unittest.main()
