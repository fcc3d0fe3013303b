"""The scripts as a newcomer's machine makes them behave: packages missing, no root, no network."""

import collections
import os
import pathlib
import subprocess
import tempfile
import unittest

import coverage_report

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = SOURCE / "scripts"


class NeedPackages(unittest.TestCase):
    """need_packages of lib.sh with stand-ins for apt, dpkg, id and sudo on PATH."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name) / "bin"
        self.bin.mkdir()
        self.calls = pathlib.Path(folder.name) / "calls"
        for tool in ("bash", "basename", "dirname", "sort", "comm", "sed", "grep", "tail", "mktemp", "rm", "env"):
            self.command(tool, f'exec {self.which(tool)} "$@"')
        self.command("id", "echo 0")
        self.command("apt-get", f'echo "$@" >> {self.calls}')
        self.command(
            "dpkg-query",
            'for name in "$@"; do case $name in gcc | make) echo "installed $name";; gone) echo "config-files gone";; esac; done',
        )

    @staticmethod
    def which(tool):
        return next(path for path in (f"/usr/bin/{tool}", f"/bin/{tool}") if os.path.exists(path))

    def command(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def need(self, *packages, **environment):
        return subprocess.run(
            [self.which("bash"), "-c", f'. {SCRIPTS}/lib.sh; need_packages "a test" {" ".join(packages)}'],
            env={"PATH": str(self.bin), **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )

    def test_nothing_missing_calls_no_apt(self):
        result = self.need("gcc", "make")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertFalse(self.calls.exists())

    def test_missing_and_removed_packages_are_installed(self):
        self.assertEqual(self.need("gcc", "ninja", "gone").returncode, 0)
        update, install = self.calls.read_text().splitlines()
        self.assertEqual(update.split()[0], "update")
        self.assertEqual(install.split()[-2:], ["gone", "ninja"])

    def test_failure_of_apt_names_the_packages_and_the_log(self):
        self.command("apt-get", 'echo "E: Unable to fetch" >&2; exit 100')
        result = self.need("ninja")
        self.assertEqual(result.returncode, 1)
        self.assertIn("E: Unable to fetch", result.stderr)
        self.assertIn("could not install: ninja", result.stderr)
        log = pathlib.Path(result.stderr.split("whole output: ")[1].strip())
        self.assertIn("Unable to fetch", log.read_text())
        log.unlink()

    def test_without_root_and_sudo_the_command_to_ask_for_is_shown(self):
        self.command("id", "echo 1000")
        result = self.need("gcc", "ninja", "ccache")
        self.assertEqual(result.returncode, 1)
        self.assertIn("apt-get install ccache ninja", result.stderr)
        self.assertFalse(self.calls.exists())

    def test_sudo_that_would_ask_for_a_password_is_not_used_without_a_terminal(self):
        self.command("id", "echo 1000")
        self.command("sudo", "exit 1")
        self.assertIn("apt-get install ninja", self.need("ninja").stderr)

    def test_sudo_is_used_when_it_works(self):
        self.command("id", "echo 1000")
        self.command("sudo", f'[ "$1" = -n ] && exit 0; echo sudo >> {self.calls}; exec "$@"')
        self.assertEqual(self.need("ninja").returncode, 0)
        self.assertEqual(self.calls.read_text().splitlines().count("sudo"), 2)

    def test_another_distribution_is_told_what_to_install(self):
        (self.bin / "apt-get").unlink()
        result = self.need("ninja", "gcc")
        self.assertEqual(result.returncode, 1)
        self.assertIn("ninja gcc", result.stderr)
        self.assertIn("HSM_NO_APT=1", result.stderr)
        self.assertEqual(self.need("ninja", HSM_NO_APT="1").returncode, 0)


class Options(unittest.TestCase):
    def test_help_of_every_script(self):
        scripts = [path for path in SCRIPTS.iterdir() if not path.suffix and path.is_file()]
        self.assertIn(SCRIPTS / "setup", scripts)
        for script in scripts:
            with self.subTest(script=script.name):
                result = subprocess.run([script, "--help"], capture_output=True, text=True, cwd="/")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(f"usage: scripts/{script.name}", result.stdout)

    def test_setup_refuses_unknown_options(self):
        result = subprocess.run([SCRIPTS / "setup", "--tpu"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("unknown option --tpu", result.stderr)


class GpuCheck(unittest.TestCase):
    def test_the_pack_holds_source_and_libraries_and_is_small(self):
        if subprocess.run(["git", "-C", SOURCE, "rev-parse"], capture_output=True).returncode != 0:
            self.skipTest("the source is not a git checkout")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "pack"
            result = subprocess.run([SCRIPTS / "gpu-check", "--pack", folder], capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            for path in ("CMakeLists.txt", "scripts/gpu-check", "src/main.cpp", "COMMIT", "third_party/include/zlib.h",
                         "third_party/include/CLI/CLI.hpp", "third_party/lib/libzstd.a",
                         "third_party/googletest/CMakeLists.txt"):
                self.assertTrue((folder / path).exists(), path)
            self.assertLess(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()), 64e6)
            again = subprocess.run([SCRIPTS / "gpu-check", "--pack", folder], capture_output=True, text=True)
            self.assertEqual(again.returncode, 1)
            self.assertIn("is not empty", again.stderr)


class KingJamesCorpus(unittest.TestCase):
    """make-kjv with a stand-in for the program that prints the text."""

    def make(self, lines):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        (root / "bible").write_text("#!/bin/sh\ncat <<'TEXT'\n" + "\n".join(lines) + "\nTEXT\n")
        (root / "bible").chmod(0o755)
        environment = {**os.environ, "PATH": f"{root}:{os.environ['PATH']}", "HSM_NO_APT": "1"}
        result = subprocess.run([SCRIPTS / "make-kjv", root / "out"], env=environment, capture_output=True, text=True)
        return result, root / "out"

    def test_words_and_parts(self):
        lines = [f"Ps{chapter}:1 Chapter {'I' * (chapter % 3 + 1)}." for chapter in range(1, 1190)]
        lines[0] = "Ps1:1 The sons' LORD'S loving-kindness; (sin--) is it not?"
        result, out = self.make(lines)
        self.assertEqual(result.returncode, 0, result.stderr)
        parts = {name: (out / f"{name}.txt").read_text().splitlines() for name in ("train", "valid", "test")}
        self.assertEqual(parts["train"][0], "the sons ' lord's loving-kindness ; ( sin - - ) is it not ?")
        self.assertEqual({name: len(verses) for name, verses in parts.items()}, {"train": 1071, "valid": 59, "test": 59})
        self.assertEqual(parts["valid"][0], "chapter ii .")  # chapter 10
        self.assertEqual(parts["test"][0], "chapter iii .")  # chapter 20

    def test_a_truncated_text_is_refused(self):
        result, out = self.make(["Ge1:1 In the beginning"])
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("1 chapters; expected 1189", result.stderr)
        self.assertFalse((out / "train.txt").exists())


class CoverageReport(unittest.TestCase):
    def test_a_line_has_run_when_any_object_ran_it(self):
        lines = collections.defaultdict(dict)
        for counts in ({3: 0, 4: 2, 9: 0}, {3: 1, 4: 0}):
            document = {
                "current_working_directory": "/project/build",
                "files": [
                    {"file": "../src/base/a.h", "lines": [{"line_number": n, "count": c} for n, c in counts.items()]},
                    {"file": "/usr/include/c++/12/string", "lines": [{"line_number": 1, "count": 1}]},
                    {"file": "../tests/base/a_test.cpp", "lines": [{"line_number": 1, "count": 1}]},
                ],
            }
            coverage_report.record(document, pathlib.Path("/project"), lines)
        self.assertEqual(lines, {pathlib.Path("src/base/a.h"): {3: True, 4: True, 9: False}})


if __name__ == "__main__":
    unittest.main()
