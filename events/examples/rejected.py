# Prints what the registry has rejected, also while this was away. Usage: python3 rejected.py [LAST], where LAST is the number
# before the last line that you dealt with. pip install nats-py
import asyncio, base64, json, os, re, sys
import nats

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), max_reconnect_attempts=-1)
    last = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    while True:
        question = json.dumps({"seq": last + 1, "next_by_subj": "registry-rejected.>"}).encode()  # the next one from there on
        try:
            answer = json.loads((await nc.request("$JS.API.STREAM.MSG.GET.REGISTRY_REJECTED", question, timeout=5)).data)
        except (nats.errors.Error, asyncio.TimeoutError) as err:
            answer = {"error": {"code": 0, "description": repr(err)}}
        if "error" in answer:
            if answer["error"]["code"] != 404:  # 404: there is none, yet
                print(answer["error"], file=sys.stderr)
            await asyncio.sleep(10)
            continue
        message = answer["message"]
        headers = dict(re.findall(r"^(\S+): (.*)\r$", base64.b64decode(message["hdrs"]).decode(), re.M))
        last = message["seq"]
        print(last, headers["Registry-Subject"], headers["Registry-Reason"], base64.b64decode(message.get("data", "")).decode("utf-8", "replace"), flush=True)

asyncio.run(main())
