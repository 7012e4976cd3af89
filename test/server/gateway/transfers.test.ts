import { expect, it } from "vitest";
import { transferOf } from "../../../server/gateway/ssh/transfers.ts";

const of = (command: string) => transferOf({ request: "exec", command });

it.each([
  ["scp -t /srv/file", "upload"],
  ["scp -r -p -d -t -- /srv", "upload"],
  ["scp -f /etc/hosts", "download"],
  ["/usr/bin/scp -v -f x", "download"],
  ["rsync --server -logDtpre.iLsfxCIvu . /srv/", "upload"],
  ["rsync --server --sender -logDtpre.iLsfxCIvu . /srv/", "download"],
  ["git-upload-pack '/srv/repository.git'", "download"],
  ["git-receive-pack '/srv/repository.git'", "upload"],
  ["git-upload-archive '/srv/repository.git'", "download"],
  ["/usr/lib/openssh/sftp-server", "both"],
])("%s is a transfer: %s", (command, direction) => {
  expect(of(command)).toMatchObject({ direction });
});

it.each([
  "",
  "ls",
  "scp",
  "scp file host:",
  "rsync -a /srv/ host:",
  "tar c /srv",
  "sh -c 'scp -t x'",
  "scp -t x; cat /etc/passwd",
  "scp -t x\ncat /etc/passwd",
  "scp -t $(cat /etc/passwd)",
  "git-upload-pack x | cat",
  "rsync --server . x && cat /etc/passwd",
  "git-receive-pack x > /dev/stdout",
  "scp -v -i -t '-oProxyCommand=cat /etc/passwd -' a:b c",
  "scp -t -S cat a",
  "scp a:b -t",
  "rsync --server --daemon --config=x .",
  "sftp-server -h",
  "git-upload-pack --help x",
])("%j is not recognized as a transfer", (command) => {
  expect(of(command)).toBeUndefined();
});

it("SFTP is a transfer, a shell is not", () => {
  expect(transferOf({ request: "subsystem", name: "sftp" })).toEqual({ program: "sftp", direction: "both" });
  expect(transferOf({ request: "shell" })).toBeUndefined();
});
