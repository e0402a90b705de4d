"""What the Python examples use of nats-py, which the tests' machines cannot install: its names and errors, on the real protocol."""
import asyncio, itertools, json, uuid
from types import SimpleNamespace
from urllib.parse import urlsplit

class Error(Exception): pass
class NoRespondersError(Error): pass
class ConnectionClosedError(Error): pass
class TimeoutError(asyncio.TimeoutError): pass
class APIError(Error): pass
errors = SimpleNamespace(Error=Error, NoRespondersError=NoRespondersError, TimeoutError=TimeoutError, ConnectionClosedError=ConnectionClosedError)

class Client:
    def __init__(self, url):
        self.url, self.inbox, self.count, self.waiting, self.writer = urlsplit(url), f"_INBOX.{uuid.uuid4().hex}", itertools.count(), {}, None

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection(self.url.hostname, self.url.port)
        await self.reader.readline()  # INFO
        self.writer.write(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB %s.* 1\r\n' % self.inbox.encode())
        self.reading = asyncio.create_task(self.read())

    async def read(self):
        try:
            while line := await self.reader.readline():
                words = line.split()
                if words[0] == b"PING":
                    self.writer.write(b"PONG\r\n")
                elif words[0] in (b"MSG", b"HMSG"):
                    data = await self.reader.readexactly(int(words[-1]))
                    await self.reader.readexactly(2)
                    head, body = (data[:int(words[-2])], data[int(words[-2]):]) if words[0] == b"HMSG" else (b"", data)
                    if waiter := self.waiting.pop(words[1].decode(), None):
                        if head.startswith(b"NATS/1.0 503"):
                            waiter.set_exception(NoRespondersError("nats: no responders available for request"))
                        else:
                            waiter.set_result(SimpleNamespace(data=body))
        except (OSError, asyncio.IncompleteReadError):
            pass
        self.writer.close()
        self.writer = None

    async def request(self, subject, payload, timeout=1, headers=None):
        if self.writer is None:
            try:
                await self.open()
            except OSError as err:
                raise ConnectionClosedError(str(err))
        inbox = f"{self.inbox}.{next(self.count)}"
        head = b"NATS/1.0\r\n" + b"".join(f"{k}: {v}\r\n".encode() for k, v in (headers or {}).items()) + b"\r\n" if headers else b""
        sizes = f"{len(head)} {len(head) + len(payload)}" if headers else f"{len(payload)}"
        self.waiting[inbox] = answer = asyncio.get_running_loop().create_future()
        self.writer.write(f"{'HPUB' if headers else 'PUB'} {subject} {inbox} {sizes}\r\n".encode() + head + payload + b"\r\n")
        try:
            return await asyncio.wait_for(answer, timeout)
        except asyncio.TimeoutError:
            raise TimeoutError("nats: timeout")

    def jetstream(self):
        async def publish(subject, payload, headers=None):
            ack = json.loads((await self.request(subject, payload, 5, headers)).data)
            if "error" in ack:
                raise APIError(ack["error"])
            return SimpleNamespace(**ack)
        return SimpleNamespace(publish=publish)

    async def drain(self):
        self.writer.close()

async def connect(url, **options):
    client = Client(url)
    await client.open()
    return client
