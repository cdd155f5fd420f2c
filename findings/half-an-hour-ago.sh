#!/usr/bin/env bash
# Times as a person or a model says them, read by four libraries. It is 18:00 on Monday, 30 November 2026.
# Guess: each library returns the right time or nothing, since a word that it does not know makes the time uncertain.
# Seen: only dateparser 1.5.0 does. The other three skip a word that they do not know and return a wrong time without a sign of doubt:
# - parsedatetime 2.6 and timefhuman 0.1.5 take half an hour ago for an hour ago, and all three a quarter of an hour ago;
# - chrono-node 2.10.3 takes one and a half hours, and two and a half hours, for half an hour;
# - parsedatetime lets `ago` apply only to the last number: `2 days 3 hours ago` is in two days;
# - `in the last 2 hours` is two hours in the future for parsedatetime and timefhuman;
# - on a Monday evening, `last night` is the coming night for timefhuman, and the start of Sunday for chrono-node.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export TZ=UTC HOME="$directory"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check dateparser==1.5.0 parsedatetime==2.6 timefhuman==0.1.5
npm install --silent --no-audit --no-fund chrono-node@2.10.3
cat >phrases <<'END'
90 minutes ago
half an hour ago
a quarter of an hour ago
one and a half hours ago
two and a half hours ago
1 hour and 30 minutes ago
2 days 3 hours ago
in the last 2 hours
last night
END
cat >seen.mjs <<'JS'
import { readFileSync } from "node:fs";
import { parseDate } from "chrono-node";
for (const phrase of readFileSync("phrases", "utf8").trim().split("\n")) {
	console.log(parseDate(phrase, new Date("2026-11-30T18:00:00Z"))?.toISOString().slice(5, 16).replace("T", " ") ?? "nothing");
}
JS
cat >seen.py <<'PY'
import datetime
import pathlib
import subprocess
import warnings

import dateparser
import parsedatetime
import timefhuman

warnings.simplefilter("ignore")
NOW = datetime.datetime(2026, 11, 30, 18)
CHRONO = subprocess.run(["node", "seen.mjs"], capture_output=True, text=True, check=True).stdout.splitlines()
for phrase, chrono in zip(pathlib.Path("phrases").read_text().splitlines(), CHRONO, strict=True):
    times = {"dateparser": dateparser.parse(phrase, settings={"RELATIVE_BASE": NOW, "PREFER_DATES_FROM": "past"})}
    time, kind = parsedatetime.Calendar().parseDT(phrase, NOW)
    times["parsedatetime"] = time if kind else None
    found = timefhuman.timefhuman(phrase, config=timefhuman.tfhConfig(now=NOW))
    times["timefhuman"] = next(iter(found), None) if isinstance(found, list) else found
    read = [f"{name} {time:%m-%d %H:%M}" if time else f"{name} nothing" for name, time in times.items()]
    print(f"{phrase}: {', '.join(read)}, chrono-node {chrono}")
PY
env/bin/python seen.py | tee seen
diff seen - <<'END'
90 minutes ago: dateparser 11-30 16:30, parsedatetime 11-30 16:30, timefhuman 11-30 16:30, chrono-node 11-30 16:30
half an hour ago: dateparser nothing, parsedatetime 11-30 17:00, timefhuman 11-30 17:00, chrono-node 11-30 17:30
a quarter of an hour ago: dateparser nothing, parsedatetime 11-30 17:00, timefhuman 11-30 17:00, chrono-node 11-30 17:00
one and a half hours ago: dateparser nothing, parsedatetime nothing, timefhuman nothing, chrono-node 11-30 17:30
two and a half hours ago: dateparser nothing, parsedatetime nothing, timefhuman nothing, chrono-node 11-30 17:30
1 hour and 30 minutes ago: dateparser 11-30 16:30, parsedatetime 11-30 18:30, timefhuman 11-30 16:30, chrono-node 11-30 16:30
2 days 3 hours ago: dateparser 11-28 15:00, parsedatetime 12-02 15:00, timefhuman 11-28 15:00, chrono-node 11-28 15:00
in the last 2 hours: dateparser nothing, parsedatetime 11-30 20:00, timefhuman 11-30 20:00, chrono-node 11-30 16:00
last night: dateparser 11-29 20:00, parsedatetime 11-29 21:00, timefhuman 11-30 20:00, chrono-node 11-29 00:00
END
