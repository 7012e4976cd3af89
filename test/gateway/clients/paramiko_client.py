"""Operations of paramiko: paramiko_client.py <operation> <port> <user> <key> <folder of the target>"""

import io
import os
import sys

import paramiko

operation, port, user, key, folder = sys.argv[1:]


def connect():
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    client.connect(
        "127.0.0.1",
        port=int(port),
        username=user,
        key_filename=key,
        look_for_keys=False,
        allow_agent=False,
        timeout=30,
    )
    return client


def expect(what, actual, expected):
    if actual != expected:
        sys.exit(f"{what}: {actual!r:.200} instead of {expected!r:.200}")


def commands():
    with connect() as client:
        for code in [0, 1, 7, 127] * 5:
            _, stdout, stderr = client.exec_command(f"echo out; echo err >&2; exit {code}")
            expect("stdout", stdout.read(), b"out\n")
            expect("stderr", stderr.read(), b"err\n")
            expect("the exit code", stdout.channel.recv_exit_status(), code)


def stdin():
    sent = os.urandom(5_000_000)
    with connect() as client:
        stdin, stdout, _ = client.exec_command("cat > " + folder + "/sent; wc -c < " + folder + "/sent; exit 3")
        stdin.write(sent)
        stdin.channel.shutdown_write()
        expect("stdout", stdout.read().strip(), b"5000000")
        expect("the exit code", stdout.channel.recv_exit_status(), 3)
    with open(folder + "/sent", "rb") as file:
        expect("the file", file.read() == sent, True)


def terminal():
    with connect() as client:
        channel = client.invoke_shell(term="vt100", width=77, height=33)
        channel.sendall(b"stty size; echo $TERM; exit 5\n")
        seen = b""
        while data := channel.recv(4096):
            seen += data
        expect("the size", b"33 77" in seen, True)
        expect("the exit code", channel.recv_exit_status(), 5)


def files():
    for index in range(12):
        sent = os.urandom(5_000_000)
        with connect() as client, client.open_sftp() as sftp:
            sftp.putfo(io.BytesIO(sent), folder + "/sent")
            received = io.BytesIO()
            sftp.getfo(folder + "/sent", received)
            expect(f"the file of round {index + 1}", received.getvalue() == sent, True)


def folders():
    with connect() as client, client.open_sftp() as sftp:
        sftp.chdir(folder)
        expect("the folder", sftp.getcwd(), folder)
        sftp.mkdir("one")
        with sftp.open("one/file", "w") as file:
            file.write("0123456789")
            file.flush()
            file.seek(3)
            file.write("abc")
        with sftp.open("one/file", "a") as file:
            file.write("end")
        with sftp.open("one/file") as file:
            file.prefetch()
            expect("the content", file.read(), b"012abc6789end")
            file.seek(-3, 2)
            expect("the end", file.read(), b"end")
        sftp.truncate("one/file", 4)
        expect("the size", sftp.stat("one/file").st_size, 4)
        sftp.rename("one/file", "one/other")
        with sftp.open("one/file", "wx") as file:
            file.write("new")
        sftp.posix_rename("one/file", "one/other")
        sftp.utime("one/other", (1_234_567_890, 1_234_567_891))
        expect("the time", sftp.stat("one/other").st_mtime, 1_234_567_891)
        expect("the names", sftp.listdir("one"), ["other"])
        sftp.symlink("other", "one/link")
        expect("the link", sftp.readlink("one/link"), "other")
        expect("the path", sftp.normalize("one/../one"), folder + "/one")
        try:
            sftp.stat("missing")
            sys.exit("no error for a missing file")
        except FileNotFoundError:
            pass
        for name in sftp.listdir("one"):
            sftp.remove("one/" + name)
        sftp.rmdir("one")


{"commands": commands, "stdin": stdin, "terminal": terminal, "files": files, "folders": folders}[operation]()
