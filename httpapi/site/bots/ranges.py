# python3 ranges.py ID…
import hashlib
import json
import re
import sys
import time
from datetime import datetime
from urllib.error import HTTPError
from urllib.request import Request, urlopen

API = "https://registry.example/api"
KEEP = 30  # s: tyle pamiętamy zakres
FRESH = 300  # s: starsze dane to „nie wiadomo”
ranges = {}  # lokalna lista: prefiks → zakres


def get(path, headers):
    try:
        answer = urlopen(Request(API + path, headers=headers), timeout=5)
    except HTTPError as error:
        if error.code != 304:
            raise ValueError(f"{path}: {error.code} {error.headers['Registry-Error']}") from error
        answer = error
    with answer:
        body = answer.read().decode()
    as_of = datetime.fromisoformat(answer.headers["Registry-As-Of"].replace("Z", "+00:00"))
    if abs(time.time() - as_of.timestamp()) >= FRESH:
        raise ValueError(f"{path}: stare dane")
    return answer.status, answer.headers, body


def get_range(prefix):
    kept = ranges.get(prefix)
    if kept and time.monotonic() - kept["at"] < KEEP:
        return kept
    tag = {"If-None-Match": kept["tag"]} if kept else {}
    status, headers, lines = get("/ranges/" + prefix, tag)
    if kept and status == 304:
        lines = kept["lines"]
    # Cały zakres ma 32, 48, 64, 96… wierszy po 30 bajtów; inny jest ucięty.
    if not (re.fullmatch("([0-9a-f]{26}:[0-9a-f]{2}\n)+", lines)
            and re.fullmatch("11?0{4,}", f"{len(lines) // 30:b}")):
        raise ValueError(f"{prefix}: nie cały zakres")
    ranges[prefix] = {"at": time.monotonic(), "lines": lines, "tag": headers["ETag"],
                      "sequence": headers["Registry-Sequence"]}
    return ranges[prefix]


def check(chat_id):
    try:
        if not re.fullmatch("[0-9]{15,20}", str(chat_id)):
            raise ValueError("zgubiona wartość")
        digest = hashlib.sha256(f"registry-id-v1\n{chat_id}".encode()).hexdigest()
        kept = get_range(digest[:3])
        found = re.search(f"^{digest[3:29]}:(..)$", kept["lines"], re.MULTILINE)
        bits = int(found[1], 16) if found else 0
        if bits & 0x0F == 0:
            return "brak wpisu"  # nikt albo osoba zaufana
        # Dopiero teraz pada ID, i to tylko kogoś, kto jest na liście.
        # Odpowiedź ma być co najmniej tak nowa jak zakres.
        _, _, body = get(f"/check?id={chat_id}", {"Registry-Min-Sequence": kept["sequence"]})
        accused = [entry for group in json.loads(body)["results"]
                   if group["kind"] in ("scammers", "servers")
                   for entry in group["entries"]]
        if any(entry["verified"] for entry in accused):
            return "ostrzeż"
        return "powiadom moderatora" if accused else "brak wpisu"
    except Exception as error:  # 503, stare dane, brak odpowiedzi; co dokładnie, mówi powód
        print(chat_id, repr(error), file=sys.stderr)
        return "nie wiadomo"


for chat_id in sys.argv[1:]:
    print(chat_id, check(chat_id))
