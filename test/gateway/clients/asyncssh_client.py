"""Operations of asyncssh: asyncssh_client.py <operation> <port> <user> <key> <folder of the target>"""

import asyncio
import os
import sys

import asyncssh

operation, port, user, key, folder = sys.argv[1:]


def connect():
    return asyncssh.connect(
        "127.0.0.1", int(port), username=user, client_keys=[key], known_hosts=None, config=None, agent_path=None
    )


def expect(what, actual, expected):
    if actual != expected:
        sys.exit(f"{what}: {actual!r:.200} instead of {expected!r:.200}")


async def commands():
    async with connect() as client:

        async def command(code):
            result = await client.run(f"echo out; echo err >&2; exit {code}")
            expect("the result", (result.stdout, result.stderr, result.exit_status), ("out\n", "err\n", code))

        for code in [0, 1, 7, 127]:
            await command(code)
        await asyncio.gather(*(command(code) for code in range(8)))
        sent = os.urandom(5_000_000)
        result = await client.run("cat", input=sent, encoding=None)
        expect("the output of cat", result.stdout == sent, True)


def create(size):
    with open("file", "wb") as file:
        file.write(os.urandom(size))


def expect_same():
    with open("file", "rb") as sent, open("back", "rb") as received:
        expect("the file", received.read() == sent.read(), True)


async def files():
    create(30_000_000)
    async with connect() as client, client.start_sftp_client() as sftp:
        await sftp.put("file", folder + "/sent", preserve=True)
        await sftp.get(folder + "/sent", "back")
        expect_same()
        await sftp.posix_rename(folder + "/sent", folder + "/moved")
        names = [name for name in await sftp.listdir(folder) if not name.startswith(".")]
        expect("the names", names, ["moved"])


async def scp():
    create(5_000_000)
    async with connect() as client:
        await asyncssh.scp("file", (client, folder + "/sent"))
        await asyncssh.scp((client, folder + "/sent"), "back")
    expect_same()


async def exit_signal():
    async with connect() as client:
        result = await client.run("kill -TERM $$")
        expect("the signal", result.exit_signal and result.exit_signal[0], "TERM")


async def signal():
    async with connect() as client:
        script = "trap 'echo caught; exit 9' TERM; cat > /dev/null; echo ready; while :; do sleep 0.1; done"
        process = await client.create_process(script)
        process.stdin.write_eof()
        expect("the output", await process.stdout.readline(), "ready\n")
        process.send_signal("TERM")
        result = await process.wait(timeout=20)
        expect("the result", (result.stdout, result.exit_status), ("caught\n", 9))


operations = {"commands": commands, "files": files, "scp": scp, "exit_signal": exit_signal, "signal": signal}
asyncio.run(operations[operation]())
