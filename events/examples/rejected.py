# Prints what the registry has rejected, also while this was away. Usage: python3 rejected.py [LAST], where LAST is the number
# before the last line that you dealt with. pip install nats-py
import asyncio, base64, json, os, re, sys
import nats

SUBJECT = "registry-rejected.>"

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), max_reconnect_attempts=-1)
    last = int(sys.argv[1]) if len(sys.argv) > 1 else 0

    async def get(question):
        try:
            return json.loads((await nc.request("$JS.API.STREAM.MSG.GET.REGISTRY_REJECTED", json.dumps(question).encode(), timeout=5)).data)
        except (nats.errors.Error, asyncio.TimeoutError) as err:
            return {"error": repr(err)}

    while True:
        answer = await get({"seq": last + 1, "next_by_subj": SUBJECT})  # the next one from there on
        if message := answer.get("message"):
            headers = dict(re.findall(r"^(\S+): (.*)\r$", base64.b64decode(message["hdrs"]).decode(), re.M))
            last = message["seq"]
            print(last, headers["Registry-Subject"], headers["Registry-Reason"], base64.b64decode(message.get("data", "")).decode("utf-8", "replace"), flush=True)
            continue
        if "'err_code': 10037" not in str(answer["error"]):  # 10037: there is none, yet
            print(answer["error"], file=sys.stderr)
        newest = (await get({"last_by_subj": SUBJECT})).get("message", {}).get("seq", last)
        if newest < last:
            print(f"the stream was lost and begins again: its newest number is {newest}, not {last}", file=sys.stderr)
            last = 0
        else:
            await asyncio.sleep(10)

asyncio.run(main())
