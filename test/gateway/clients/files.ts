import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import {
  type Check,
  checksOf,
  expectEqual,
  expectSameFile,
  type Output,
  type Workspace,
  withoutPrograms,
} from "./check.ts";

/** A file name that is not valid UTF-8: `caf\xe9 \xff`. */
const NOT_UTF8 = Buffer.from("636166e920ff", "hex");
/** The modification time, in seconds, of files whose times the checks compare after a transfer. */
const TIME = 1_234_567_890;

const within = (folder: string, name: Buffer): Buffer => Buffer.concat([Buffer.from(`${folder}/`), name]);

/** Creates a folder with files and subfolders, whose names have all kinds of characters. */
function createTree(path: string, files = 30): void {
  mkdirSync(join(path, "inner folder", "deep"), { recursive: true });
  for (let index = 0; index < files; index += 1) {
    writeFileSync(join(path, index % 2 ? "inner folder" : ".", `file-${index}`), randomBytes(index * 1000));
  }
  writeFileSync(join(path, "inner folder", "deep", "name with 'quotes' and $signs"), "text");
  writeFileSync(within(path, NOT_UTF8), "not UTF-8");
}

async function expectSameTree(workspace: Workspace, one: string, other: string): Promise<void> {
  await workspace.run("diff", ["-r", "--no-dereference", one, other]);
}

/** Creates the checks of `scp` for one of its two protocols, which the flags select. */
const scpChecks = (client: string, flags: readonly string[]): readonly Check[] => {
  const check = checksOf(client, withoutPrograms("ssh", "scp"));
  const scp = (workspace: Workspace, ...args: readonly string[]) =>
    workspace.run("scp", ["-F", workspace.target.config, ...flags, ...args]);
  // With the older protocol (`-O`), a shell on the device parses the path.
  const spaced = (path: string) => (flags.includes("-O") ? path.replaceAll(" ", "\\ ") : path);
  return [
    check("up, 30 MB", async (workspace) => {
      await scp(workspace, workspace.big, `target:${workspace.there}/sent`);
      expectSameFile(join(workspace.there, "sent"), workspace.big);
    }),
    check("down, 30 MB", async (workspace) => {
      await scp(workspace, `target:${workspace.big}`, join(workspace.here, "received"));
      expectSameFile(join(workspace.here, "received"), workspace.big);
    }),
    check(
      "up and down, 30 MB, 20 times",
      async (workspace) => {
        const [sent, received] = [join(workspace.there, "sent"), join(workspace.here, "received")];
        for (let time = 0; time < 20; time += 1) {
          await scp(workspace, workspace.big, `target:${sent}`);
          expectSameFile(sent, workspace.big);
          await scp(workspace, `target:${sent}`, received);
          expectSameFile(received, workspace.big);
        }
      },
      { timeLimit: 300_000 },
    ),
    check(
      "up and down, 1 GB",
      async (workspace) => {
        const at = (folder: string) => join(folder, "gigabyte");
        const { here, there } = workspace;
        execFileSync("dd", ["if=/dev/urandom", `of=${at(here)}`, "bs=1M", "count=1000", "status=none"]);
        await scp(workspace, at(here), `target:${at(there)}`);
        await workspace.run("cmp", [at(here), at(there)]);
        await scp(workspace, `target:${at(there)}`, `${at(here)}-back`);
        await workspace.run("cmp", [at(here), `${at(here)}-back`]);
      },
      { timeLimit: 300_000 },
    ),
    check("a missing file is an error", async (workspace) => {
      const args = ["-F", workspace.target.config, ...flags, `target:${workspace.there}/missing`];
      await workspace.run("scp", [...args, workspace.here], { code: 1 });
    }),
    check("-r up, with names not UTF-8", async (workspace) => {
      const tree = join(workspace.here, "tree");
      createTree(tree);
      await scp(workspace, "-r", tree, `target:${workspace.there}`);
      await expectSameTree(workspace, tree, join(workspace.there, "tree"));
    }),
    check("-r down, with names not UTF-8", async (workspace) => {
      const tree = join(workspace.there, "tree");
      createTree(tree);
      await scp(workspace, "-r", `target:${tree}`, workspace.here);
      await expectSameTree(workspace, tree, join(workspace.here, "tree"));
    }),
    check("-p keeps times and modes", async (workspace) => {
      const [file, sent, received] = [
        join(workspace.here, "file"),
        join(workspace.there, "sent"),
        join(workspace.here, "received"),
      ];
      writeFileSync(file, "text");
      chmodSync(file, 0o754);
      utimesSync(file, TIME, TIME);
      await scp(workspace, "-p", file, `target:${sent}`);
      await scp(workspace, "-p", `target:${sent}`, received);
      for (const path of [sent, received]) {
        const { mtimeMs, mode } = statSync(path);
        expectEqual("time and mode", [mtimeMs / 1000, (mode & 0o777).toString(8)], [TIME, "754"]);
      }
    }),
    check("names with spaces", async (workspace) => {
      const file = join(workspace.here, "a name");
      writeFileSync(file, "text");
      await scp(workspace, file, `target:${spaced(join(workspace.there, "another  name"))}`);
      await scp(workspace, `target:${spaced(join(workspace.there, "another  name"))}`, `${file} back`);
      expectSameFile(`${file} back`, file);
    }),
    check("12 files in sequence", async (workspace) => {
      const file = join(workspace.here, "file");
      for (let index = 0; index < 12; index += 1) {
        writeFileSync(file, randomBytes(100_000 * index + index));
        await scp(workspace, file, `target:${workspace.there}/sent`);
        await scp(workspace, `target:${workspace.there}/sent`, `${file}-back`);
        expectSameFile(`${file}-back`, file);
      }
    }),
  ];
};

/** Runs `sftp` with a batch of commands. The batch ends at the first error. */
function sftp(workspace: Workspace, commands: readonly (string | Buffer)[], flags: readonly string[] = []) {
  const batch = join(workspace.here, "batch");
  writeFileSync(batch, Buffer.concat(commands.flatMap((line) => [Buffer.from(line), Buffer.from("\n")])));
  return workspace.run("sftp", ["-F", workspace.target.config, "-b", batch, ...flags, "target"]);
}

const sftpCheck = checksOf("sftp", withoutPrograms("ssh", "sftp"));

const sftpChecks: readonly Check[] = [
  sftpCheck("put, 30 MB", async (workspace) => {
    await sftp(workspace, [`put ${workspace.big} ${workspace.there}/sent`]);
    expectSameFile(join(workspace.there, "sent"), workspace.big);
  }),
  sftpCheck("get, 30 MB", async (workspace) => {
    await sftp(workspace, [`get ${workspace.big} received`]);
    expectSameFile(join(workspace.here, "received"), workspace.big);
  }),
  sftpCheck("put -f and get, small requests", async (workspace) => {
    const file = join(workspace.here, "file");
    writeFileSync(file, randomBytes(1_000_000));
    const sent = join(workspace.there, "sent");
    await sftp(workspace, [`put -f ${file} ${sent}`, `get ${sent} back`], ["-B", "1000", "-R", "256"]);
    expectSameFile(join(workspace.here, "back"), file);
  }),
  sftpCheck("put -r and get -r", async (workspace) => {
    const [tree, sent] = [join(workspace.here, "tree"), join(workspace.there, "tree")];
    createTree(tree, 200);
    await sftp(workspace, [`put -r ${tree} ${sent}`, `get -r ${sent} back`]);
    await expectSameTree(workspace, tree, sent);
    await expectSameTree(workspace, tree, join(workspace.here, "back"));
  }),
  sftpCheck("put over a longer file", async (workspace) => {
    const [file, sent] = [join(workspace.here, "file"), join(workspace.there, "sent")];
    writeFileSync(file, "short");
    await sftp(workspace, [`put ${workspace.big} ${sent}`, `put ${file} ${sent}`]);
    expectSameFile(sent, file);
  }),
  sftpCheck("put -p and get -p keep times and modes", async (workspace) => {
    const [file, sent] = [join(workspace.here, "file"), join(workspace.there, "sent")];
    writeFileSync(file, "text");
    chmodSync(file, 0o754);
    utimesSync(file, TIME, TIME);
    await sftp(workspace, [`put -p ${file} ${sent}`, `get -p ${sent} back`]);
    for (const path of [sent, join(workspace.here, "back")]) {
      const { mtimeMs, mode } = statSync(path);
      expectEqual("time and mode", [mtimeMs / 1000, (mode & 0o777).toString(8)], [TIME, "754"]);
    }
  }),
  sftpCheck("rename over an existing file", async (workspace) => {
    const at = (name: string) => join(workspace.there, name);
    const file = join(workspace.here, "file");
    writeFileSync(file, "new");
    await sftp(workspace, [
      `put ${file} ${at("new")}`,
      `put batch ${at("old")}`,
      `rename ${at("new")} ${at("old")}`,
    ]);
    expectEqual("files", [existsSync(at("new")), readFileSync(at("old"), "utf8")], [false, "new"]);
  }),
  sftpCheck("rename -l refuses an existing file", async (workspace) => {
    const at = (name: string) => join(workspace.there, name);
    await sftp(workspace, [
      `put batch ${at("new")}`,
      `put batch ${at("old")}`,
      `-rename -l ${at("new")} ${at("old")}`,
    ]);
    expectEqual("files", [existsSync(at("new")), existsSync(at("old"))], [true, true]);
  }),
  sftpCheck("ls, put and get of names not UTF-8", async (workspace) => {
    writeFileSync(within(workspace.there, NOT_UTF8), "text");
    const quoted = (path: Buffer) => Buffer.concat([Buffer.from('"'), path, Buffer.from('"')]);
    const copy = within(workspace.there, Buffer.concat([NOT_UTF8, Buffer.from("2")]));
    const back = within(workspace.here, NOT_UTF8);
    const { stdout } = await sftp(workspace, [
      `ls -1 ${workspace.there}`,
      Buffer.concat([
        Buffer.from("get "),
        quoted(within(workspace.there, NOT_UTF8)),
        Buffer.from(" "),
        quoted(back),
      ]),
      Buffer.concat([Buffer.from("put "), quoted(back), Buffer.from(" "), quoted(copy)]),
    ]);
    // Some clients print escapes for invalid UTF-8.
    const listed = stdout.toString("latin1");
    if (!listed.includes("caf\\351 \\377") && !listed.includes(NOT_UTF8.toString("latin1"))) {
      throw new Error(`ls: ${JSON.stringify(listed)}`);
    }
    expectEqual("the copy", readFileSync(copy, "utf8"), "text");
  }),
  sftpCheck("ls -l", async (workspace) => {
    const file = join(workspace.there, "file");
    writeFileSync(file, "1234567");
    chmodSync(file, 0o640);
    symlinkSync("file", join(workspace.there, "link"));
    utimesSync(file, TIME, TIME);
    const { stdout } = await sftp(workspace, [`ls -la ${workspace.there}`]);
    const lines = stdout.toString().split("\n");
    const isListed = lines.some((line) => /^-rw-r-----\s.*\s7 Feb 13\s+2009 \S*file$/.test(line));
    if (!isListed) throw new Error(`no line of the usual form for the file: ${JSON.stringify(lines)}`);
    if (!lines.some((line) => line.startsWith("l"))) throw new Error(`no link: ${JSON.stringify(lines)}`);
  }),
  sftpCheck("ls of 2,000 files", async (workspace) => {
    for (let index = 0; index < 2000; index += 1) writeFileSync(join(workspace.there, `file-${index}`), "");
    const { stdout } = await sftp(workspace, [`ls -1 ${workspace.there}`]);
    expectEqual("entries", stdout.toString().match(/file-\d+/g)?.length, 2000);
  }),
  sftpCheck("symlink", async (workspace) => {
    const link = join(workspace.there, "link");
    await sftp(workspace, [`put batch ${workspace.there}/file`, `symlink ${workspace.there}/file ${link}`]);
    expectEqual("the link", readlinkSync(link), join(workspace.there, "file"));
  }),
  sftpCheck("ln (hard link)", async (workspace) => {
    const [file, link] = [join(workspace.there, "file"), join(workspace.there, "link")];
    await sftp(workspace, [`put batch ${file}`, `ln ${file} ${link}`]);
    expectEqual("the inode", lstatSync(link).ino, lstatSync(file).ino);
  }),
  sftpCheck("df", async (workspace) => {
    const { stdout } = await sftp(workspace, [`df ${workspace.there}`]);
    if (!/\d+%/.test(stdout.toString())) throw new Error(`df: ${JSON.stringify(stdout.toString())}`);
  }),
  sftpCheck("mkdir, cd, pwd, rmdir, rm", async (workspace) => {
    const { there } = workspace;
    const { stdout } = await sftp(workspace, [
      `mkdir ${there}/one`,
      `mkdir ${there}/one/two`,
      `cd ${there}/one/two`,
      "pwd",
      "put batch three",
      "rm three",
      "cd ../..",
      "rmdir one/two",
      "rmdir one",
    ]);
    if (!stdout.toString().includes(`${there}/one/two`)) throw new Error(`pwd: ${stdout}`);
    expectEqual("entries", readdirSync(there), []);
  }),
  sftpCheck("rmdir of a folder with files is an error", async (workspace) => {
    await sftp(workspace, [`mkdir ${workspace.there}/one`, `put batch ${workspace.there}/one/file`]);
    await sftp(workspace, [`-rmdir ${workspace.there}/one`]);
    expectEqual("entries", readdirSync(workspace.there), ["one"]);
  }),
  sftpCheck("chmod", async (workspace) => {
    const file = join(workspace.there, "file");
    await sftp(workspace, [`put batch ${file}`, `chmod 4711 ${file}`]);
    expectEqual("the mode", (statSync(file).mode & 0o7777).toString(8), "4711");
  }),
  sftpCheck("chown to the own group", async (workspace) => {
    const file = join(workspace.there, "file");
    await sftp(workspace, [`put batch ${file}`]);
    await sftp(workspace, [`chgrp ${statSync(file).gid} ${file}`]);
  }),
  sftpCheck("reput and reget, 4 times", async (workspace) => {
    const { here, there, big } = workspace;
    // A resumed upload appends to a partial file. A server that processes write requests concurrently swaps parts of
    // the file, but not in every run. The check therefore runs several times.
    for (let index = 0; index < 4; index += 1) {
      for (const part of [join(there, "sent"), join(here, "received")]) {
        writeFileSync(part, readFileSync(big).subarray(0, 10_000_001));
        chmodSync(part, 0o666);
      }
      await sftp(workspace, [`reput ${big} ${there}/sent`, `reget ${big} ${here}/received`]);
      expectSameFile(join(there, "sent"), big);
      expectSameFile(join(here, "received"), big);
    }
  }),
  sftpCheck("a missing file is an error", async (workspace) => {
    const batch = join(workspace.here, "batch");
    writeFileSync(batch, `get ${workspace.there}/missing\n`);
    const args = ["-F", workspace.target.config, "-b", batch, "target"];
    await workspace.run("sftp", args, { code: 1 });
  }),
  sftpCheck("copy on the device (copy-data)", async (workspace) => {
    const [file, copy] = [join(workspace.there, "file"), join(workspace.there, "copy")];
    await sftp(workspace, [`put ${workspace.big} ${file}`, `copy ${file} ${copy}`]);
    expectSameFile(copy, workspace.big);
  }),
];

const rsyncCheck = checksOf("rsync", withoutPrograms("ssh", "rsync"));

/** The flags of `rsync -a` without `-o` and `-g`, because only root can set owners. */
const RSYNC = ["-rlptD", "--itemize-changes"];

function rsync(workspace: Workspace, ...args: readonly string[]): Promise<Output> {
  return workspace.run("rsync", [...RSYNC, "-e", `ssh -F ${workspace.target.config}`, ...args]);
}

const rsyncChecks: readonly Check[] = [
  rsyncCheck("up, with names not UTF-8", async (workspace) => {
    const tree = join(workspace.here, "tree");
    createTree(tree, 200);
    await rsync(workspace, `${tree}/`, `target:${workspace.there}/tree/`);
    await expectSameTree(workspace, tree, join(workspace.there, "tree"));
  }),
  rsyncCheck("down, with names not UTF-8", async (workspace) => {
    const tree = join(workspace.there, "tree");
    createTree(tree, 200);
    linkSync(join(tree, "file-4"), join(tree, "linked"));
    symlinkSync("file-4", join(tree, "link"));
    await rsync(workspace, `target:${tree}/`, `${workspace.here}/tree/`);
    await expectSameTree(workspace, tree, join(workspace.here, "tree"));
  }),
  rsyncCheck("up and down, 30 MB", async (workspace) => {
    await rsync(workspace, workspace.big, `target:${workspace.there}/sent`);
    await rsync(workspace, `target:${workspace.there}/sent`, `${workspace.here}/received`);
    expectSameFile(join(workspace.here, "received"), workspace.big);
  }),
  rsyncCheck("incremental, --delete, -z", async (workspace) => {
    const tree = join(workspace.here, "tree");
    createTree(tree);
    const sync = () => rsync(workspace, "-z", "--delete", `${tree}/`, `target:${workspace.there}/tree/`);
    await sync();
    expectEqual("changes without a change", (await sync()).stdout.toString(), "");
    appendFileSync(join(tree, "file-28"), "more");
    unlinkSync(join(tree, "file-2"));
    truncateSync(join(tree, "inner folder", "file-29"), 7);
    const changes = (await sync()).stdout.toString().trim().split("\n");
    const named = changes.map((line) => line.replace(/^\S+\s+/, "")).filter((name) => name.includes("file-"));
    expectEqual("changes", named.toSorted(), ["file-2", "file-28", "inner folder/file-29"]);
    await expectSameTree(workspace, tree, join(workspace.there, "tree"));
  }),
];

const gitCheck = checksOf("git", withoutPrograms("ssh", "git"))("push and clone", async (workspace) => {
  const env = {
    GIT_SSH_COMMAND: `ssh -F ${workspace.target.config}`,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_AUTHOR_NAME: "a",
    GIT_AUTHOR_EMAIL: "a@example.org",
    GIT_COMMITTER_NAME: "a",
    GIT_COMMITTER_EMAIL: "a@example.org",
  };
  const git = (cwd: string, ...args: readonly string[]) => workspace.run("git", args, { cwd, env });
  const repository = join(workspace.there, "repository.git");
  const [work, clone] = [join(workspace.here, "work"), join(workspace.here, "clone")];
  // git rejects a repository that belongs to a different user. The target's user therefore creates the repository, over
  // SSH.
  await workspace.ssh(`git init -q --bare ${repository}`);
  await git(workspace.here, "init", "-q", "-b", "main", work);
  for (let index = 0; index < 3; index += 1) {
    writeFileSync(join(work, `file-${index}`), randomBytes(1_000_000));
    await git(work, "add", ".");
    await git(work, "commit", "-q", "-m", `commit ${index}`);
    await git(work, "push", "-q", `target:${repository}`, "main");
  }
  await git(workspace.here, "clone", "-q", "-b", "main", `target:${repository}`, clone);
  const [one, other] = [await git(work, "rev-parse", "HEAD"), await git(clone, "rev-parse", "HEAD")];
  expectEqual("the commit", other.stdout.toString(), one.stdout.toString());
});

/** Checks of OpenSSH's `scp` and `sftp`, of rsync and of git. */
export const fileChecks: readonly Check[] = [
  ...scpChecks("scp (SFTP)", []),
  ...scpChecks("scp -O", ["-O"]),
  ...sftpChecks,
  ...rsyncChecks,
  gitCheck,
];
