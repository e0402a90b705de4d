# Makes events of a table in CSV, one a line: python3 import.py [REVISION] < reports.csv > entries.ndjson
#
# The header names the columns below, in any order. Where there is no column revision, REVISION is that of every row: the time
# of the export in milliseconds, and a greater number for an export that corrects it. A row that is not understood is named with
# its line, and what to do; nothing is guessed. "registry publish --dry-run" then checks the rest by the registry's own rules.
import csv, io, json, re, sys
from datetime import datetime, timezone

TRUE, FALSE = ("t", "true", "1", "yes", "y", "prawda"), ("f", "false", "0", "no", "n", "fałsz")
COLUMNS = ["list", "id", "chat_id", "name", "reason", "verified", "proofs_id", "proofs_private", "report_id", "reported_at", "revision"]
LOST = ("null", "\\n", "none", "nil", "<nil>", "undefined", "nan", "#n/a")  # what databases and programs write for no value

def convert(row):
    def say(column, remedy):
        raise ValueError(f"{column}: {row[column]!r}: {remedy}")
    def text(column, may_be_empty=False):
        value = row[column].strip()
        if value == "" or value.lower() in LOST:
            return "" if may_be_empty else say(column, "no value: write the true one, or leave the row out")
        return value
    def boolean(column):
        value = row[column].strip().lower()
        return value in TRUE if value in TRUE + FALSE else say(column, "neither true nor false: write one of them")
    def whole(column):
        value = row[column].strip()
        return int(value) if value.isascii() and value.isdigit() else say(column, "not a whole number: write digits alone")
    def time(column):
        try:
            value = datetime.fromisoformat(text(column).replace("Z", "+00:00"))
            return value.astimezone(timezone.utc).isoformat() if value.tzinfo else say(column, "")
        except (ValueError, OverflowError):
            say(column, "write the time with its zone, such as 2025-11-21T10:15:00+01:00")
    if "E+" in row["chat_id"].upper() or "." in row["chat_id"]:
        say("chat_id", "a spreadsheet has cut the number: export it again as text")
    private, revision = boolean("proofs_private"), whole("revision")
    return {"specversion": "1.0", "id": f"registry.{text('list')}.{text('id')}@{revision}",
        "source": "https://moderation.example/import", "type": "registry.entry.listed", "data": {
            "list": text("list"), "entryId": text("id"), "chatId": text("chat_id"), "name": text("name"),
            "reason": text("reason", may_be_empty=True), "verified": boolean("verified"),
            "proofs": {"id": None if private else text("proofs_id", may_be_empty=True) or None, "private": private},
            "reportId": text("report_id"), "reportedAt": time("reported_at"), "revision": revision}}

def decode(data):
    try:
        return data.decode("utf-8-sig")  # with or without a byte order mark
    except UnicodeDecodeError as err:
        line = data[:err.start].count(10) + 1
    try:
        if b"\0" in data:  # UTF-16
            raise ValueError
        text = data.decode("cp1250")
    except ValueError:
        sys.exit(f"line {line}: neither UTF-8 nor Windows-1250: export again as \"CSV UTF-8\"")
    print(f"line {line}: not UTF-8: read as Windows-1250, as Excel saves in Poland; look at the letters of some names", file=sys.stderr)
    return text

sys.stdout.reconfigure(encoding="utf-8")  # also on Windows
data, bad = decode(sys.stdin.buffer.read()), 0
named = re.match(r"sep=(.)\r?\n", data)  # Excel's own first line
first = data[named.end():] if named else data
separator = named[1] if named else max(",;\t", key=first.partition("\n")[0].count)
rows = csv.DictReader(io.StringIO(first, newline=""), delimiter=separator, strict=True)
missing = [c for c in COLUMNS if c not in (rows.fieldnames or []) + ["revision"] * len(sys.argv[1:])]
if missing:
    sys.exit(f"line 1: no column {', '.join(missing)}: name the columns {', '.join(COLUMNS)}, or give the revision as an argument")
if len(rows.fieldnames) != len(set(rows.fieldnames)):
    sys.exit("line 1: a column is there twice: leave one out")
while True:
    line = rows.line_num + 1 + bool(named)
    try:
        row = next(rows)
        if None in row or None in row.values():
            raise ValueError("another number of cells than the header: look for a quote or a separator that is not quoted")
        print(json.dumps(convert({"revision": "".join(sys.argv[1:]), **row}), ensure_ascii=False))
    except StopIteration:
        break
    except (ValueError, csv.Error) as err:
        bad += 1
        print(f"line {line}: {err}", file=sys.stderr)
if bad:
    sys.exit(f"{bad} lines were left out: correct them, or the table that they come from, and begin again")
