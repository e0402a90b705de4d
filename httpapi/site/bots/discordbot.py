# Mówi moderatorom, kto z serwera jest na liście oszustów, i kiedy z niej znika. Sam nikogo nie
# banuje i nie wyrzuca.
#   pip install discord.py
#   DISCORD_TOKEN=… CHANNEL=<ID kanału moderatorów> python3 discordbot.py
# W ustawieniach bota włącz „Server Members Intent”. Na kanale bot musi móc pisać.
import asyncio
import hashlib
import json
import os
import re
import sys
import time
from datetime import datetime
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import discord

SITE = "https://registry.example"
AGAIN = 30  # s: po tylu ponawia, jeśli rejestr nie powie inaczej
FRESH = 300  # s: starsze dane to „nie wiadomo”
FILE = "powiedziane.json"  # co już powiedział: ID → {verdict, pages}
WORDS = {
    "ostrzeż": "🛑 Potwierdzone zgłoszenie: {} jest na liście oszustów.",
    "powiadom moderatora": "⚠️ Niesprawdzone zgłoszenie: {}. To nie dowód: nie banuj za samo zgłoszenie.",
    "nie wiadomo": "❔ Nie udało się sprawdzić: {} ({}). Ponawiam. To nie znaczy „czysto”.",
    "już wiadomo": "ℹ️ Udało się sprawdzić, brak wpisu: {}. To nie gwarancja.",
    "brak wpisu": "ℹ️ Brak wpisu: {} (wcześniej: „{}”). Kto ma karę za wpis, może wrócić. To nie gwarancja.",
}

client = discord.Client(intents=discord.Intents(guilds=True, members=True))
told = {}
if os.path.exists(FILE):
    with open(FILE, encoding="utf-8") as file:
        told = json.load(file)
changed = set()  # ID ze zmian: pyta o nie wprost, bo zakres może być sprzed zmiany
channel = following = None
feed = None  # {epoch, since, checked}: miejsce w zmianach
kept = {"prefix": None, "sequence": 0}  # ostatni zakres
turn = asyncio.Lock()  # jedno naraz, żeby starsza odpowiedź nie trafiła za nowszą


class NoAnswer(Exception):
    """503, 429, stare dane, brak odpowiedzi: „nie wiadomo”."""

    def __init__(self, text, status=0, wait=None):
        super().__init__(text)
        self.status = status
        self.wait = min(max(int(wait), 1), 300) if re.fullmatch("[0-9]{1,9}", wait or "") else AGAIN


def ask(path, sequence, seconds):
    headers = {"Registry-Min-Sequence": str(sequence)} if sequence else {}
    try:
        with urlopen(Request(SITE + path, headers=headers), timeout=seconds) as answer:
            body, headers = answer.read().decode(), answer.headers
        as_of = datetime.fromisoformat(headers["Registry-As-Of"].replace("Z", "+00:00"))
    except HTTPError as error:
        text = f"{path}: {error.code} {error.headers['Registry-Error'] or ''}".strip()
        raise NoAnswer(text, error.code, error.headers["Retry-After"]) from error
    except Exception as error:
        raise NoAnswer(f"{path}: {error}") from error
    if abs(time.time() - as_of.timestamp()) >= FRESH:
        raise NoAnswer(f"{path}: stare dane")
    return body, headers


async def get(path, sequence=0, seconds=5):
    return await asyncio.to_thread(ask, path, sequence, seconds)


def hash_of(chat_id):
    return hashlib.sha256(f"registry-id-v1\n{chat_id}".encode()).hexdigest()


async def listed(chat_id, sequence):
    """Mówi z zakresu, czy ktoś taki jest na liście. Rejestr nie dowiaduje się, o kogo chodzi."""
    global kept
    digest = hash_of(chat_id)
    prefix = digest[:3]
    if kept["prefix"] != prefix or kept["sequence"] < sequence or time.monotonic() - kept["at"] > 30:
        lines, headers = await get("/api/ranges/" + prefix)
        # Cały zakres ma 32, 48, 64, 96… wierszy po 30 bajtów; inny jest ucięty.
        if not (re.fullmatch("([0-9a-f]{26}:[0-9a-f]{2}\n)+", lines)
                and re.fullmatch("11?0{4,}", f"{len(lines) // 30:b}")):
            raise NoAnswer(f"zakres {prefix}: nie cały")
        kept = {"prefix": prefix, "lines": lines, "at": time.monotonic(),
                "sequence": int(headers["Registry-Sequence"])}
    if kept["sequence"] < sequence:
        raise NoAnswer(f"zakres {prefix}: stary")
    found = re.search(f"^{digest[3:29]}:(..)$", kept["lines"], re.MULTILINE)
    return found is not None and int(found[1], 16) & 0x0F != 0  # bez 0f: nikt albo zaufany


async def look(chat_id, sequence=0):
    """Mówi, co rejestr wie o koncie."""
    if chat_id not in changed and not await listed(chat_id, sequence):
        return "brak wpisu", []
    newest = max(sequence, kept["sequence"], feed["since"] if feed else 0)
    body, _ = await get(f"/api/check?id={chat_id}", newest)
    accused = [(f"{group['kind']}/{entry['_id']}", entry["verified"])
               for group in json.loads(body)["results"] if group["kind"] in ("scammers", "servers")
               for entry in group["entries"]]
    pages = [page for page, _ in accused]
    if any(verified for _, verified in accused):
        return "ostrzeż", pages
    return ("powiadom moderatora" if pages else "brak wpisu"), pages


async def tell(chat_id, verdict, pages, why=None):
    """Pisze do moderatorów, jeśli od ostatniego razu coś się zmieniło. Bez nazwy: wybiera ją oszust."""
    before = told[chat_id]["verdict"] if chat_id in told else "brak wpisu"
    if verdict != before:
        now = "już wiadomo" if (before, verdict) == ("nie wiadomo", "brak wpisu") else verdict
        text = WORDS[now].format(f"<@{chat_id}> (`{chat_id}`)", why or before)
        link = f"{SITE}/wpis/{pages[0]}" if pages else f"{SITE}/?search={chat_id}"
        await channel.send(f"{text}\n{link}", allowed_mentions=discord.AllowedMentions.none())
    if verdict == "brak wpisu":
        told.pop(chat_id, None)
    else:
        told[chat_id] = {"verdict": verdict, "pages": pages}
    with open(FILE + ".nowy", "w", encoding="utf-8") as new:
        json.dump(told, new)
    os.replace(FILE + ".nowy", FILE)


async def check(chat_id, sequence=0, say_unknown=False):
    """Sprawdza, aż się uda."""
    while True:
        try:
            async with turn:
                return await tell(chat_id, *await look(chat_id, sequence))
        except Exception as error:
            print(repr(error), flush=True)
            if say_unknown:
                async with turn:
                    if chat_id not in told:
                        await tell(chat_id, "nie wiadomo", [], error)
            await asyncio.sleep(getattr(error, "wait", AGAIN))


async def begin():
    """Sprawdza wszystkich, którzy są na serwerze albo byli na liście, i zaczyna śledzić zmiany."""
    global feed
    state = json.loads((await get("/api/changes"))[0])
    now = feed = {"epoch": state["epoch"], "since": state["sequence"], "checked": False}
    ids = {str(member.id) for member in channel.guild.members} | set(told)
    for chat_id in sorted(ids, key=hash_of):  # każdy zakres pobiera raz
        await check(chat_id, state["sequence"])
    now["checked"] = True


async def take(change):
    """Przyjmuje zmianę na liście: mówi o kimś, kto jest na serwerze albo o kim już mówił."""
    entry = change.get("entry")
    page = f"{change['list']}/{entry['_id'] if entry else change['_id']}"
    ids = {chat_id for chat_id, said in told.items() if page in said["pages"]}
    if entry and change["list"] != "legit":
        changed.add(entry["id"])
        here = entry["id"].isascii() and entry["id"].isdigit() and channel.guild.get_member(int(entry["id"]))
        if here or entry["id"] in told:
            ids.add(entry["id"])
    for chat_id in ids:
        changed.add(chat_id)
        await tell(chat_id, *await look(chat_id, change["seq"]))


async def follow():
    global feed
    while True:
        try:
            while not (feed and feed["checked"]):
                await begin()
            now = feed
            page = f"/api/changes/{now['epoch']}?since={now['since']}&wait=25"
            news = json.loads((await get(page, seconds=40))[0])
            for change in news["changes"]:
                async with turn:
                    await take(change)
            now["since"] = news["until"]
        except Exception as error:
            print(repr(error), flush=True)
            if getattr(error, "status", 0) == 410:
                feed = None  # inna historia: wszystkich od nowa
            await asyncio.sleep(getattr(error, "wait", AGAIN))


@client.event
async def on_member_join(member):
    if channel and member.guild.id == channel.guild.id:
        await check(str(member.id), say_unknown=True)


@client.event
async def on_ready():  # także po przerwie, w której ktoś mógł wejść
    global channel, feed, following
    channel, feed = client.get_channel(int(os.environ["CHANNEL"])), None
    if channel is None:
        return await client.close()
    following = following or asyncio.create_task(follow())


client.run(os.environ["DISCORD_TOKEN"])
if channel is None:
    sys.exit(f"CHANNEL={os.environ['CHANNEL']}: bot nie widzi takiego kanału serwera")
