import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findOnPath } from "../../../provider/engine/processes.ts";
import {
  type Check,
  checksOf,
  expectContains,
  expectEqual,
  expectSameBytes,
  expectSameFile,
  type Output,
  PYTHON,
  type RunOptions,
  type Workspace,
  withoutModule,
  withoutPrograms,
} from "./check.ts";
import { expectInput, PIPED } from "./ssh.ts";

/**
 * Runs a command on the target with one client.
 * @param flags additional flags of the client
 */
type Exec = (
  workspace: Workspace,
  command: string,
  options?: RunOptions,
  flags?: readonly string[],
) => Promise<Output>;

/** Creates the checks that several clients share: running commands, with their exit codes, input and output. */
const execChecks = (client: string, without: string | undefined, exec: Exec): readonly Check[] => {
  const check = checksOf(client, without);
  return [
    check("exit codes", async (workspace) => {
      for (const code of [0, 1, 7, 127]) await exec(workspace, `exit ${code}`, { code });
    }),
    check("stdout and stderr separate", async (workspace) => {
      const { stdout, stderr } = await exec(workspace, "echo out; echo err >&2");
      expectEqual("stdout", stdout.toString(), "out\n");
      expectContains("stderr", stderr, "err\n");
    }),
    check("stdin, 5 MB", async (workspace) => {
      const input = randomBytes(PIPED);
      await exec(workspace, `${expectInput(input)} && exit 3`, { input, code: 3 });
    }),
    check("output, 5 MB", async (workspace) => {
      const command = "seq 1 800000 | head -c 5000000";
      const local = await workspace.run("sh", ["-c", command]);
      expectSameBytes("stdout", (await exec(workspace, command)).stdout, local.stdout);
    }),
    check("terminal: exit code", async (workspace) => {
      const options = { input: "open", code: 5 } as const;
      const { stdout } = await exec(workspace, "test -t 0 && echo terminal; exit 5", options, ["-t"]);
      expectContains("stdout", stdout.toString(), "terminal");
    }),
  ];
};

type KeyKind = keyof Workspace["target"]["keys"];

/** Returns the arguments of dbclient. Converts the private key to the format of dbclient. */
async function dropbear(workspace: Workspace, kind: KeyKind): Promise<readonly string[]> {
  const { target, here } = workspace;
  const key = join(here, "dropbear-key");
  await workspace.run("dropbearconvert", ["openssh", "dropbear", target.keys[kind], key]);
  return ["-y", "-y", "-i", key, "-p", String(target.port), "-l", target.user];
}

const execByDropbear =
  (kind: KeyKind): Exec =>
  async (workspace, command, options, flags = []) => {
    const args = [...flags, ...(await dropbear(workspace, kind)), "127.0.0.1", command];
    if (!flags.includes("-t")) return workspace.run("dbclient", args, options);
    // With `-t`, the client needs a local terminal.
    const line = ["dbclient", ...args].map((word) => `'${word}'`).join(" ");
    return workspace.run("script", ["-qec", line, "/dev/null"], options);
  };

const withoutDropbear = withoutPrograms("dbclient", "dropbearconvert", "script");

const dropbearKeyCheck = (kind: KeyKind): Check =>
  checksOf("dbclient", withoutDropbear)(`login with a key of the type ${kind}`, async (workspace) => {
    await execByDropbear(kind)(workspace, "exit 7", { code: 7 });
  });

const dropbearChecks: readonly Check[] = [
  ...execChecks("dbclient", withoutDropbear, execByDropbear("ed25519")),
  dropbearKeyCheck("rsa"),
  dropbearKeyCheck("ecdsa-521"),
  {
    client: "dbclient",
    operation: "rsync up and down, 30 MB",
    without: withoutDropbear ?? withoutPrograms("rsync"),
    async run(workspace) {
      const line = ["dbclient", ...(await dropbear(workspace, "ed25519"))].join(" ");
      const [remote, received] = [`127.0.0.1:${workspace.there}/sent`, join(workspace.here, "received")];
      await workspace.run("rsync", ["-e", line, workspace.big, remote]);
      await workspace.run("rsync", ["-e", line, remote, received]);
      expectSameFile(received, workspace.big);
    },
  },
];

/** Returns the arguments of PuTTY's clients. Converts the private key to PuTTY's format. */
async function putty(workspace: Workspace): Promise<readonly string[]> {
  const { target, here } = workspace;
  const key = join(here, "key.ppk");
  await workspace.run("puttygen", [target.keys.ed25519, "-O", "private", "-o", key]);
  const hostKeys = target.fingerprints.flatMap((fingerprint) => ["-hostkey", fingerprint]);
  return ["-batch", "-noagent", "-i", key, ...hostKeys, "-P", String(target.port), "-l", target.user];
}

const pscpChecks = (protocol: "-scp" | "-sftp"): readonly Check[] => {
  const client = `pscp ${protocol}`;
  const check = checksOf(client, withoutPrograms("pscp", "puttygen"));
  const pscp = async (workspace: Workspace, ...args: readonly string[]) =>
    workspace.run("pscp", [protocol, "-q", ...(await putty(workspace)), ...args]);
  return [
    check("up, 30 MB", async (workspace) => {
      await pscp(workspace, workspace.big, `127.0.0.1:${workspace.there}/sent`);
      expectSameFile(join(workspace.there, "sent"), workspace.big);
    }),
    check("down, 30 MB", async (workspace) => {
      await pscp(workspace, `127.0.0.1:${workspace.big}`, join(workspace.here, "received"));
      expectSameFile(join(workspace.here, "received"), workspace.big);
    }),
    check("-r up and down", async (workspace) => {
      const { here, there } = workspace;
      mkdirSync(join(here, "tree", "a folder"), { recursive: true });
      for (let index = 0; index < 20; index += 1) {
        writeFileSync(join(here, "tree", "a folder", `file ${index}`), randomBytes(index * 5000));
      }
      mkdirSync(join(here, "back"));
      await pscp(workspace, "-r", join(here, "tree"), `127.0.0.1:${there}`);
      await pscp(workspace, "-r", `127.0.0.1:${there}/tree`, join(here, "back"));
      await workspace.run("diff", ["-r", join(here, "tree"), join(here, "back", "tree")]);
    }),
  ];
};

const puttyChecks: readonly Check[] = [
  ...execChecks(
    "plink",
    withoutPrograms("plink", "puttygen"),
    async (workspace, command, options, flags = []) => {
      const args = ["-ssh", ...flags, ...(await putty(workspace)), "127.0.0.1", command];
      return workspace.run("plink", args, options);
    },
  ),
  ...pscpChecks("-scp"),
  ...pscpChecks("-sftp"),
  {
    client: "psftp",
    operation: "put, get, ls, mv, chmod, rm, 30 MB",
    without: withoutPrograms("psftp", "puttygen"),
    async run(workspace) {
      const { here, there, big } = workspace;
      const script = join(here, "script");
      const lines = [
        `mkdir ${there}/one`,
        `cd ${there}/one`,
        `put ${big} sent`,
        "chmod 640 sent",
        "mv sent moved",
        "ls",
        `get moved ${here}/received`,
        "rm moved",
        "cd ..",
        "rmdir one",
      ];
      writeFileSync(script, `${lines.join("\n")}\n`);
      const args = [...(await putty(workspace)), "-b", script, "127.0.0.1"];
      const { stdout } = await workspace.run("psftp", args);
      expectContains("ls", stdout.toString(), "-rw-r-----");
      expectSameFile(join(here, "received"), big);
    },
  },
];

/**
 * Returns a function that creates checks of a Python SSH module. Each check runs an operation of the module's helper
 * script.
 */
const pythonChecksOf = (module: string) => {
  const check = checksOf(module, withoutModule(module));
  const script = fileURLToPath(new URL(`${module}_client.py`, import.meta.url));
  return (operation: string, name: string, more: Partial<Check> = {}): Check =>
    check(
      operation,
      async (workspace) => {
        const { target, there } = workspace;
        const login = [String(target.port), target.user, target.keys.ed25519];
        await workspace.run(PYTHON, [script, name, ...login, there]);
      },
      more,
    );
};

const paramikoCheck = pythonChecksOf("paramiko");
const asyncsshCheck = pythonChecksOf("asyncssh");

const pythonChecks: readonly Check[] = [
  paramikoCheck("commands and exit codes", "commands"),
  paramikoCheck("stdin, 5 MB", "stdin"),
  paramikoCheck("terminal", "terminal"),
  paramikoCheck("putfo and getfo, 5 MB, 12 times", "files"),
  paramikoCheck("rename, listdir, stat, truncate", "folders"),
  asyncsshCheck("commands and exit codes", "commands"),
  asyncsshCheck("sftp put and get, 30 MB", "files"),
  asyncsshCheck("scp put and get, 5 MB", "scp"),
  asyncsshCheck("exit signal", "exit_signal"),
  asyncsshCheck("signal after the end of stdin", "signal", {
    notOnSshd: "sshd delivers no signals to commands of root",
  }),
];

/** The `ansible` program, from the folder of PYTHON or from the PATH. */
const ANSIBLE = findOnPath("ansible", { PATH: dirname(PYTHON) }) ?? "ansible";

const WITHOUT_ANSIBLE =
  spawnSync(ANSIBLE, ["--version"], { stdio: "ignore" }).status === 0
    ? undefined
    : "`ansible` is neither on the PATH nor beside PYTHON";

const ansibleChecks = (pipelining: "on" | "off"): readonly Check[] => {
  const client = `Ansible (pipelining ${pipelining})`;
  const check = checksOf(client, WITHOUT_ANSIBLE);
  const ansible = (workspace: Workspace, transfer: string, ...args: readonly string[]) => {
    const { target, here, there } = workspace;
    const inventory = join(here, "inventory");
    writeFileSync(inventory, "target ansible_python_interpreter=/usr/bin/python3\n");
    return workspace.run(ANSIBLE, ["target", "-i", inventory, ...args], {
      env: {
        ANSIBLE_PIPELINING: pipelining,
        ANSIBLE_SSH_COMMON_ARGS: `-F ${target.config}`,
        ANSIBLE_SSH_ARGS: "-C -o ControlMaster=auto -o ControlPersist=3s",
        ANSIBLE_SSH_TRANSFER_METHOD: transfer,
        ANSIBLE_REMOTE_TMP: join(there, ".ansible"),
        ANSIBLE_NOCOLOR: "1",
      },
    });
  };
  const copyCheck = (transfer: string): Check =>
    check(`copy by ${transfer}`, async (workspace) => {
      const [file, copy] = [join(workspace.here, "file"), join(workspace.there, "copy")];
      writeFileSync(file, randomBytes(1_000_000));
      await ansible(workspace, transfer, "-m", "copy", "-a", `src=${file} dest=${copy} mode=0644`);
      expectSameFile(copy, file);
    });
  return [
    check("ping", async (workspace) => {
      expectContains("stdout", (await ansible(workspace, "sftp", "-m", "ping")).stdout.toString(), "pong");
    }),
    copyCheck("sftp"),
    copyCheck("scp"),
    copyCheck("piped"),
    check("fetch", async (workspace) => {
      const { here, there } = workspace;
      writeFileSync(join(there, "file"), "text");
      await ansible(workspace, "sftp", "-m", "fetch", "-a", `src=${there}/file dest=${here}/file flat=yes`);
      expectEqual("the file", readFileSync(join(here, "file"), "utf8"), "text");
    }),
  ];
};

/** Checks of clients other than OpenSSH's. */
export const otherChecks: readonly Check[] = [
  ...dropbearChecks,
  ...puttyChecks,
  ...pythonChecks,
  ...ansibleChecks("off"),
  ...ansibleChecks("on"),
];
