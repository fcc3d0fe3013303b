"""Recipes of hsm for programs that train the same in another way: plain SGD, LSTM layers of one size, no more."""

import json
import re
import sys

DEFAULTS = {
    "model": {"cell": "lstm", "layers": 2, "hidden": 200, "init_range": 0.1},
    "train": {"epochs": 10, "batch": 20, "bptt": 35, "clip_norm": 0, "loss_reduction": "mean", "seed": 1},
}
FOLLOWED = {
    "data": {"train", "valid", "test"},
    "model": {"cell", "layers", "hidden", "embedding", "init_range", "dropout"},
    "model.dropout": {"input", "hidden", "output"},
    "train": {"epochs", "batch", "bptt", "optimizer", "schedule", "loss_reduction", "clip_norm", "seed"},
    "train.optimizer": {"name", "learning_rate"},
    "train.schedule": {"name", "after", "factor"},
}
PASSED_OVER = {"$schema", "classes", "output", "runtime", "train.calibrate"}


def check_followed(path, place, settings):
    for key, value in settings.items():
        name = f"{place}.{key}"
        if name in PASSED_OVER:
            continue
        if key not in FOLLOWED.get(place, ()):
            sys.exit(f"{path}: {name} cannot be followed here")
        if isinstance(value, dict):
            check_followed(path, name, value)


def read_recipe(path, changes=()):
    """The configuration with `changes` (NAME=VALUE) and defaults; ends the program at what cannot be followed."""
    text = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', lambda match: match[1] or "", path.read_text(encoding="utf-8"))
    given = json.loads(text)
    for change in changes:
        name, value = change.split("=", 1)
        section, key = name.split(".", 1)
        given.setdefault(section, {})[key] = json.loads(value)
    for section, settings in given.items():
        if section not in PASSED_OVER:
            check_followed(path, section, settings)
    config = {section: {**DEFAULTS.get(section, {}), **given.get(section, {})} for section in ("data", "model", "train")}
    model, train = config["model"], config["train"]
    model.setdefault("embedding", model["hidden"])
    train["optimizer"] = {"name": "sgd", "learning_rate": 1.0, **train.get("optimizer", {})}
    train["schedule"] = {"name": "constant", "after": 0, "factor": 0.5, **train.get("schedule", {})}
    for what, fits in (
        ("model.cell other than lstm", model["cell"] == "lstm"),
        ("model.embedding other than model.hidden", model["embedding"] == model["hidden"]),
        ("train.optimizer other than sgd", train["optimizer"]["name"] == "sgd"),
        ("this train.schedule", train["schedule"]["name"] in ("constant", "epoch_decay")),
    ):
        if not fits:
            sys.exit(f"{path}: {what} cannot be followed here")
    return config


def learning_rate(settings, epoch):
    rate, schedule = settings["optimizer"]["learning_rate"], settings["schedule"]
    if schedule["name"] == "constant":
        return rate
    return rate * schedule["factor"] ** max(0, epoch - schedule["after"])
